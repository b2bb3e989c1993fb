//! The promises of the crate's page, against a network, clocks, storage and an order of their own.
//!
//! `SELVEDGE_HISTORIES` is the number of histories, or a range of seeds (`5000..9000`); `SELVEDGE_SEED`
//! runs one history.

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
mod node;
mod oracle;
mod pinned;
mod quorums;
mod step;
mod storage;
mod story;
mod world;

use std::env;

use selvedge_sim::histories;
use story::Totals;

#[test]
fn what_the_page_promises_is_so() {
    let text = env::var("SELVEDGE_HISTORIES").unwrap_or_else(|_| "150".into());
    let (first, end) = text.split_once("..").unwrap_or(("0", &text));
    let parse = |it: &str| it.parse().expect("SELVEDGE_HISTORIES: a number, or two");
    let mut all = Totals::default();
    let ran = histories(parse(first)..parse(end), |seed| story::tell(seed, &mut all));
    eprintln!("{ran} histories: {all:?}");
    if ran > 100 {
        assert!(all.applied > ran && all.read > ran && all.configured > ran / 4);
        assert!(all.alive > (ran - all.hopeless) / 2 && all.restarts > ran / 4);
        assert!(all.hopeless > ran / 10);
        assert!(all.dropped > ran / 20);
    }
}
