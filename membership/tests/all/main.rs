//! All tests of the crate in one program, which is quicker to build than many.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::std_instead_of_alloc,
    clippy::unreachable,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking, and so do its helpers"
)]

#[path = "../../../core/tests/counting/allocator.rs"]
mod allocator;
mod bounds;
mod budget;
mod convergence;
mod distances;
mod ends;
mod errata;
mod false_distances;
mod far_lives;
mod feedback;
mod few_tombstones;
mod frames;
mod hearsay;
mod histories;
mod history;
mod lies;
mod lives;
mod lone;
mod metadata;
mod metadata_order;
mod model;
mod pages;
mod probes;
mod props;
mod quiet_probes;
mod relays;
mod ring;
mod round_trips;
mod selection;
mod sites;
mod strangers;
mod tombstones;
mod wire;
