//! Tests of a gateway.
