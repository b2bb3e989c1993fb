//! Scripts and automations of Home Assistant.
