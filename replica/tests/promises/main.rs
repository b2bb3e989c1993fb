//! The promises of the crate's page, against random networks, clocks, storage and orders of events.
//! `selvedge_sim::histories` explains how to run more of them, or one.

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

mod apart;
mod asked;
mod damage;
mod garbage;
mod network;
mod oracle;
mod pinned;
mod quorums;
mod story;
mod world;

use selvedge_sim::histories::{random, seeds};
use story::Totals;

#[test]
fn what_the_page_promises_is_so() {
    let mut all = Totals::default();
    let ran = random(seeds(150), |choices| story::describe(choices, &mut all));
    eprintln!("{ran} histories: {all:?}");
    if ran > 100 {
        assert!(all.applied > ran && all.read > ran && all.configured > ran / 4);
        assert!(all.alive > (ran - all.hopeless) / 2 && all.restarts > ran / 4);
        assert!(all.hopeless > ran / 10);
        assert!(all.dropped > ran / 20);
    }
}
