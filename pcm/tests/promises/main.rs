//! The promises of the crate's page, against a network, mailboxes, clocks, storage and an oracle of their
//! own.
//!
//! `SELVEDGE_HISTORIES` is the number of histories, or a range of seeds (`5000..9000`); `SELVEDGE_SEED` runs
//! one history.

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

use std::env;

use selvedge_sim::histories;
use story::Totals;

#[test]
fn what_the_page_promises_is_so() {
    let text = env::var("SELVEDGE_HISTORIES").unwrap_or_else(|_| "40".into());
    let (first, end) = text.split_once("..").unwrap_or(("0", &text));
    let parse = |it: &str| it.parse().expect("SELVEDGE_HISTORIES: a number, or two");
    let mut all = Totals::default();
    let ran = histories(parse(first)..parse(end), |seed| story::tell(seed, &mut all));
    eprintln!("{ran} histories: {all:?}");
    if ran >= 40 {
        let count = |what| all.counts.get(what).copied().unwrap_or(0);
        assert!(count("value") > ran && count("runs") > ran && count("failed") > ran / 4);
        assert!(all.restarts > ran && all.forged > ran && all.right > ran / 8);
        assert!(count("accused") > ran / 4, "those that lie are found out");
    }
}
