//! All tests of the crate in one program, which is quicker to build than many.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::std_instead_of_alloc,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking, and so do its helpers"
)]

extern crate alloc;

#[path = "../../../core/tests/golden/frames.rs"]
mod frames;

mod contract;
mod entry;
mod errata;
mod estimate;
mod history;
mod model;
mod orders;
mod props;
mod sections;
mod slow;
mod traces;
mod trees;
mod wire;
