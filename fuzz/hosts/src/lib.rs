//! Fuzz targets of hosts as plain functions: they take bytes, and panic when a promise is broken.
//!
//! A target runs in two ways:
//!
//! - under libFuzzer, for hours, from the workspace `hosts`:
//!   `cargo +nightly fuzz run --fuzz-dir ../fuzz/hosts agent_api --features libfuzzer --sanitizer none`;
//! - in `cargo test -p selvedge-hosts-fuzz`, on stable Rust: over the committed corpus and over inputs made from
//!   a fixed seed.
//!
//! The targets of the hub, of functions and of MQTT are in their packages, and so are the tests that replay their
//! corpora.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "a target panics where a promise is broken, and hosts have the standard library"
)]

mod agent_api;

pub use agent_api::{agent_api, seeds};
