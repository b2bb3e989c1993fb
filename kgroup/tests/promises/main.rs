//! The promises of the crate's page, against a network, hosts, storage, devices and an order of their
//! own. It uses what the page shows and nothing else.
//!
//! With `SELVEDGE_HISTORIES` set to a number so many histories are run, with `5000..9000` those of these
//! seeds; `SELVEDGE_SEED` runs one alone, and `TRACE` prints what happens in it.

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
mod node;
mod oracle;
mod runs;
mod site;
mod step;
mod storage;
mod story;
mod world;

use std::env;

use selvedge_sim::histories;
use story::{Kind, Totals};

fn run(kind: Kind, many: u64) -> (u64, Totals) {
    let text = env::var("SELVEDGE_HISTORIES").unwrap_or_else(|_| many.to_string());
    let parse = |text: &str| -> u64 {
        text.parse()
            .expect("SELVEDGE_HISTORIES: a number, or two with `..` between")
    };
    let (first, end) = text.split_once("..").unwrap_or(("0", &text));
    let mut all = Totals::default();
    let ran = histories(parse(first)..parse(end), |seed| {
        story::tell(kind, seed, &mut all);
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
    let (ran, all) = run(Kind::Buildings, 10);
    if ran >= 10 {
        assert!(all.commands > ran && all.reports > ran && all.triggers > ran);
        assert!(all.alive > 0);
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
