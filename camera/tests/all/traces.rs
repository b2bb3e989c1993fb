//! Whole meshes through random histories: the beliefs of nodes about each other come from recorded
//! runs of the membership protocol under churn, loss and partitions, so they are wrong as in practice.
//!
//! Every history ends with faults over; then every node that still wants to enter must enter. With
//! `SELVEDGE_HISTORIES` set to a number, each test runs that many.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::std_instead_of_alloc,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use crate::history;

use history::{Counts, Family, run};
use selvedge_sim::histories;
use selvedge_sim::histories::seeds;

/// Runs the requested number of histories, by default `usual`; returns the counts of all of them, or
/// `None` if they were fewer than usual, and so need not cover everything.
fn run_all(family: Family, usual: u64) -> Option<Counts> {
    let mut all = Counts::default();
    let ran = histories(seeds(usual), |seed| all.add(&run(family, seed)));
    println!("{ran} histories: {all:#?}");
    (ran >= usual).then_some(all)
}

/// No two nodes are inside together, tokens rise, and every node is served, for any beliefs of the
/// membership service.
#[test]
fn one_at_a_time_is_inside_and_all_are_served() {
    let Some(all) = run_all(Family::Certain, 400) else {
        return;
    };
    assert_eq!(all.missing(), None, "none in any history");
}

/// With a takeover two may be inside, but one of them was passed over, and is notified.
#[test]
fn who_was_passed_over_is_told_and_its_writes_are_refused() {
    let Some(all) = run_all(Family::Takeover, 400) else {
        return;
    };
    assert_eq!(all.missing(), None, "none in any history");
    assert!(all.passed_over > 0, "nobody was passed over");
    assert!(all.two_inside > 0, "a holder was never passed over");
    assert!(all.fenced > 0, "no holder was told");
    assert!(all.refused_writes > 0, "no write was refused");
}
