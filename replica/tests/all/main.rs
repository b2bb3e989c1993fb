//! All tests as one program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    clippy::wildcard_enum_match_arm,
    clippy::cast_possible_truncation,
    reason = "a test that cannot go on fails"
)]

#[path = "../../../core/tests/golden/frames.rs"]
mod frames;

mod configuration;
mod errata;
mod group;
mod model;
mod props;
mod slow;
mod wire;
