//! Random lists of operations: every promise in each.

use std::env;
use std::ops::Range;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use selvedge_pcm::check::operations::{Summary, run};

/// So many are run where nobody asks for others.
const LISTS: u64 = 1_500;

/// The seeds that `SELVEDGE_HISTORIES` asks for: so many from 0, or `5000..9000`.
fn wanted(otherwise: u64) -> Range<u64> {
    match env::var("SELVEDGE_HISTORIES") {
        Err(env::VarError::NotPresent) => 0..otherwise,
        Err(error) => panic!("SELVEDGE_HISTORIES: {error}"),
        Ok(text) => seeds(&text).unwrap_or_else(|| {
            panic!("SELVEDGE_HISTORIES is {text:?}: set it to a number from 1, or to a range as 5000..9000")
        }),
    }
}

fn seeds(text: &str) -> Option<Range<u64>> {
    let (first, end) = text.split_once("..").unwrap_or(("0", text));
    let seeds = first.parse().ok()?..end.parse().ok()?;
    (!seeds.is_empty()).then_some(seeds)
}

#[test]
fn seeds_are_a_number_of_them_or_a_range() {
    assert_eq!(seeds("300"), Some(0..300));
    assert_eq!(seeds("5000..9000"), Some(5_000..9_000));
    for text in [
        "", "many", "0", "5..5", "5..", "..5", "5..=9", "-1", "1 000",
    ] {
        assert_eq!(seeds(text), None, "{text:?}");
    }
}

fn list(seed: u64) -> Vec<u8> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut bytes = vec![0; 40 + (seed % 4) as usize * 60];
    rng.fill_bytes(&mut bytes);
    bytes
}

#[test]
fn random_lists_keep_every_promise() {
    let mut all = Summary::default();
    let ran = selvedge_sim::histories(wanted(LISTS), |seed| {
        let summary = run(&list(seed)).unwrap_or_else(|broken| panic!("{broken}"));
        all.add(&summary);
    });
    println!("{ran} lists: {all:?}");
    for (what, count) in all.counts() {
        assert!(count > 0 || ran < LISTS, "no list had {what}");
    }
}

/// A configuration ends without the gateway that led it. It alone had stored what was decided last, and gave
/// the tables whole to one that goes on.
#[test]
fn what_was_decided_last_is_known_from_a_leader_that_is_left_out() {
    run(&list(949_123)).unwrap_or_else(|broken| panic!("{broken}"));
}
