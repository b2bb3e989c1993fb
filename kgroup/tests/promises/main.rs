//! The promises of the crate's page, against a network, hosts, storage, devices and an order of their
//! own. How to run more of them, or one, stands in `selvedge_sim::histories`.

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

mod devices;
mod end;
mod garbage;
mod maps;
mod network;
mod oracle;
mod runs;
mod site;
mod sites;
mod spared;
mod states;
mod story;
mod times;
mod world;

use selvedge_sim::histories::{random, seeds};
use story::{Kind, Totals};

fn run(kind: Kind, many: u64) -> (u64, Totals) {
    let mut all = Totals::default();
    let ran = random(seeds(many), |choices| {
        story::describe(kind, choices, &mut all)
    });
    eprintln!("{ran} histories: {all:?}");
    (ran, all)
}

#[test]
fn maps_keep_the_promises_of_the_page() {
    let (ran, all) = run(Kind::Maps, 10);
    if ran >= 10 {
        assert!(all.changed > 5 * ran && all.read > ran && all.watched > ran);
        assert!(all.restarts > ran / 2 && all.alive > 0);
    }
}

#[test]
fn buildings_keep_the_promises_of_the_page() {
    let (ran, all) = run(Kind::Buildings, 12);
    if ran >= 10 {
        assert!(all.commands > ran && all.reports > ran && all.triggers > ran);
        assert!(all.changed > ran && all.read > ran && all.restarts > ran / 4);
        assert!(all.moved > ran && all.executing > ran && all.hurried > ran / 4);
        assert!(all.alive > 0);
    }
}

#[test]
fn triggers_of_time_keep_the_promises_of_the_page() {
    let (ran, all) = run(Kind::Times, 10);
    if ran >= 10 {
        assert!(all.started > 10 * ran && all.late > ran / 4);
        assert!(all.restarts > ran / 4 && all.moved > ran && all.alive > 0);
    }
}

#[test]
fn sites_that_change_keep_the_promises_of_the_page() {
    let (ran, all) = run(Kind::Sites, 12);
    if ran >= 12 {
        assert!(all.sites > 2 * ran && all.renewed > ran && all.reports > 5 * ran);
        assert!(all.added > ran / 2 && all.removed > ran / 4 && all.restarts > ran / 4);
        assert!(all.rolled > ran / 4 && all.overtaken > ran / 12 && all.alive > ran / 2);
    }
}

#[test]
fn triggers_of_time_keep_the_promises_of_the_page_while_sites_change() {
    let (ran, all) = run(Kind::TimedSites, 10);
    if ran >= 10 {
        assert!(all.started > 10 * ran && all.sites > ran && all.retimed > ran / 4);
        assert!(all.restarts > ran / 4 && all.spared > ran && all.alive > ran / 2);
    }
}

#[test]
fn low_limits_cost_progress_at_most() {
    let (ran, all) = run(Kind::Limits, 6);
    if ran >= 6 {
        assert!(all.changed > ran);
    }
}

#[test]
fn peers_that_lie_leave_memory_and_frames_bounded() {
    let (ran, all) = run(Kind::Liars, 2);
    if ran >= 20 {
        assert!(all.size_max < 4_000_000 && all.lies > 100 * ran && all.refused > ran);
    }
}
