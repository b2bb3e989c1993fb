//! The promises of the crate's page, against a network, mailboxes, clocks, storage and an oracle of their
//! own. `selvedge_sim::histories` describes how to run more of them, or a single one.

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

mod end;
mod forge;
mod gateways;
mod network;
mod node;
mod oracle;
mod pinned;
mod runs;
mod settings;
mod step;
mod story;
mod updates;
mod votes;
mod world;

use selvedge_sim::histories::{random, seeds};
use story::Totals;

#[test]
fn what_the_page_promises_is_so() {
    let mut all = Totals::default();
    let ran = random(seeds(100), |choices| story::describe(choices, &mut all));
    eprintln!("{ran} histories: {all:?}");
    if ran >= 40 {
        let count = |what| all.counts.get(what).copied().unwrap_or(0);
        assert!(count("value") > ran && count("runs") > ran && count("failed") > ran / 4);
        assert!(all.restarts > ran && all.forged > ran && all.right > ran / 8);
        assert!(count("accused") > ran / 4, "those that lie are found out");
    }
}

/// The oracle once waited for the periods that followers have in the end. A follower of this history shortens
/// its own from 120 s to 1 s after its unit got a task, which is tried again after eight of the former ones.
#[test]
fn a_unit_has_the_periods_that_its_followers_had_when_it_got_a_task() {
    random(22_253..22_254, |choices| {
        story::describe(choices, &mut Totals::default());
    });
}
