//! Random lists of operations: every promise in each.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use selvedge_kgroup::check::operations::{Summary, run};
use selvedge_sim::histories;
use selvedge_sim::histories::seeds;

/// The number of cases, unless the environment sets another one.
const LISTS: u64 = 120;

fn list(seed: u64) -> Vec<u8> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut bytes = vec![0; 400];
    rng.fill_bytes(&mut bytes);
    bytes
}

#[test]
fn random_lists_keep_every_promise() {
    let mut all = Summary::default();
    let ran = histories(seeds(LISTS), |seed| {
        let summary = run(&list(seed)).unwrap_or_else(|broken| panic!("{broken}"));
        all.add(&summary);
    });
    println!("{ran} lists: {all:?}");
    for (what, count) in all.counts() {
        assert!(count > 0 || ran < LISTS, "no list had {what}");
    }
}

/// Random lists that once broke a promise.
#[test]
fn lists_that_broke_hold() {
    // A leader went on from its stored facts, and took the answer to its former life for one to its
    // own.
    let answer: &[u8] = &[247, 223, 0, 0, 0, 0, 0, 0, 0, 25, 7, 19];
    // A group of one had decided a command, and its leader went on from its stored facts: it gave
    // the command a second time, though the delivery was once at most.
    let again: &[u8] = &[0, 202, 0, 0, 173, 0, 17, 0, 12, 27, 25];
    // Two nodes reported to others that they run, and had stored nothing of the group when they
    // lost power.
    let named: &[u8] = &[
        23, 195, 0, 9, 0, 0, 30, 242, 9, 0, 0, 13, 0, 12, 11, 0, 0, 127, 14, 13, 5, 5, 25, 0, 153,
    ];
    for bytes in [answer, again, named] {
        let held = run(bytes);
        assert!(held.as_ref().is_ok_and(|it| it.healed > 0), "{held:?}");
    }
}
