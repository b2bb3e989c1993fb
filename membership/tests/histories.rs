//! Whole meshes through random histories of churn, loss, partitions and healing.
//!
//! Every history ends with faults over; then all lists must equal the truth. On the way nobody may
//! learn of a failure later than 15 periods after its first detection, incarnations must not go
//! back, and who left must not come back.

#![allow(
    clippy::unwrap_used,
    clippy::std_instead_of_alloc,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod history;

use history::History;
use selvedge_sim::histories;

use core::cell::Cell;

/// A run that judged no failures would prove nothing about them.
fn run(seeds: core::ops::Range<u64>, history: fn(u64) -> History, at_least: u64) {
    let judged = Cell::new(0);
    histories(seeds, |seed| judged.set(judged.get() + history(seed).run()));
    let judged = judged.get();
    println!("{judged} failures judged");
    let is_single = std::env::var_os("SELVEDGE_SEED").is_some();
    assert!(
        judged >= at_least || is_single,
        "only {judged} failures were judged"
    );
}

#[test]
fn lists_end_as_the_truth_in_500_histories() {
    run(0..500, History::new, 300);
}

#[test]
fn lists_end_as_the_truth_in_500_more_histories() {
    run(500..1_000, History::new, 300);
}

#[test]
fn lists_end_as_the_truth_in_large_meshes() {
    run(1_000..1_010, History::large, 15);
}
