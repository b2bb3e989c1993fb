//! Tests of the checker: its exploration, its findings, and that it never takes a run that was cut
//! short for a proof.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

#[cfg(feature = "stateright")]
mod agrees;
mod bounds;
mod choices;
mod durable;
mod lives;
mod near;
mod panics;
mod toy;
mod verdicts;
