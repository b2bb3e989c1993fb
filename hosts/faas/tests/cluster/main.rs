//! Processes over real brokers: tasks, kills, modules, and invalid input.
//!
//! `SELVEDGE_FAAS_SECONDS` is the time for which tasks are submitted while processes are killed: 20
//! by default. `SELVEDGE_MOSQUITTO` names the program of a mosquitto that is not in the path; if
//! `SELVEDGE_MOSQUITTO_REQUIRED` is set, a missing one is a failure.

#![allow(
    clippy::disallowed_methods,
    clippy::std_instead_of_core,
    clippy::unwrap_used,
    reason = "a test of processes, which take time, and fails where it cannot start them"
)]

mod demo;
#[cfg(target_os = "linux")]
mod local;
mod measurements;
mod modules;
mod small;
#[path = "../support/mod.rs"]
mod support;
mod tasks;
