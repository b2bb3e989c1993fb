//! All tests of the crate in one program, which is quicker to build than many.

#![allow(
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

mod answers;
mod ballot;
mod closed_loop;
mod differ;
mod entry;
mod errata;
mod estimate;
mod histories;
mod measuring;
mod mesh;
mod model;
mod props;
mod returns;
mod sleep;
mod traces;
mod wire;
