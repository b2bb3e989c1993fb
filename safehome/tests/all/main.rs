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

mod at_rest;
mod bases;
mod doubt;
mod edges;
mod errata;
mod exhaustive;
mod hands;
mod home;
mod late;
mod leases;
mod long_hold;
mod model;
mod promises;
mod props;
mod questions;
mod refusals;
mod rollbacks;
mod rules;
mod runs;
mod save;
mod stored;
mod strangers;
mod tables;
mod timeline;
mod urgency;
mod waits;
