//! Random histories of whole buildings: nodes, devices, routines and maps under all faults at once,
//! against a network, clocks, devices and an order of their own.
//!
//! With `SELVEDGE_HISTORIES` set to a number so many histories are run, with `5000..9000` those of these
//! seeds; `SELVEDGE_SEED` runs one alone.

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

mod asked;
mod home;
mod oracle;
mod story;
mod world;

use std::env;

use selvedge_sim::histories;
use story::Totals;

#[test]
fn whole_buildings_keep_what_the_page_promises() {
    let text = env::var("SELVEDGE_HISTORIES").unwrap_or_else(|_| "12".into());
    let (first, end) = text.split_once("..").unwrap_or(("0", &text));
    let parse = |it: &str| {
        it.parse::<u64>()
            .expect("SELVEDGE_HISTORIES: a number, or two")
    };
    let mut all = Totals::default();
    let ran = histories(parse(first)..parse(end), |seed| story::tell(seed, &mut all));
    eprintln!("{ran} histories: {all:?}");
    if ran > 10 {
        assert!(all.runs > ran && all.commands > ran && all.restarts > ran / 4);
        assert!(all.unseen * 20 < all.stored, "most must be judged");
        assert!(all.stored > ran && all.found > ran && all.changes > ran);
    }
}

/// What random ones broke once.
#[test]
fn histories_that_broke_hold() {
    // Two nodes stopped that had said that they were here; news that led nowhere was asked for each time
    // that it was told, by all that told it. Former members were told of members before those that they
    // knew, and asked these no more. A leader named others while it held a quorum for gone.
    for seed in [45_901, 254_379, 332_433, 460_419, 661_774, 871_332] {
        story::tell(seed, &mut Totals::default());
    }
}
