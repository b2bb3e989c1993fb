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

mod blocks;
mod book;
mod clause;
mod days;
mod file;
mod home_assistant;
mod hostile;
mod lints;
mod mutations;
mod routine;
mod section;
mod state;
mod trigger;
mod yaml;
