//! Random lists of operations: every promise in each.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use selvedge_pcm::check::operations::{Summary, run};
use selvedge_sim::histories;
use selvedge_sim::histories::seeds;

/// The number of lists that run by default.
const LISTS: u64 = 500;

fn list(seed: u64) -> Vec<u8> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut bytes = vec![0; 40 + (seed % 4) as usize * 60];
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
    assert!(
        ran < LISTS || all.missing().is_none(),
        "{:?}",
        all.missing()
    );
}

/// A configuration ends without the gateway that led it. That gateway alone had stored the last decision,
/// and sent the tables whole to one that continues.
#[test]
fn what_was_decided_last_is_known_from_a_leader_that_is_left_out() {
    run(&list(949_123)).unwrap_or_else(|broken| panic!("{broken}"));
}
