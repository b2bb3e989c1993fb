//! Random lists of operations: every promise in each.

use std::env;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use selvedge_kgroup::check::operations::{Summary, run};

/// How many lists `SELVEDGE_HISTORIES` asks for.
fn wanted(otherwise: u64) -> u64 {
    let wanted = env::var("SELVEDGE_HISTORIES").ok();
    wanted.and_then(|it| it.parse().ok()).unwrap_or(otherwise)
}

fn list(seed: u64) -> Vec<u8> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut bytes = vec![0; 400];
    rng.fill_bytes(&mut bytes);
    bytes
}

#[test]
fn random_lists_keep_every_promise() {
    let mut all = Summary::default();
    let ran = selvedge_sim::histories(0..wanted(60), |seed| {
        let summary = run(&list(seed)).unwrap_or_else(|broken| panic!("{broken}"));
        all.add(&summary);
    });
    println!("{ran} lists: {all:?}");
    for (what, count) in all.counts() {
        assert!(count > 0 || ran < 60, "no list had {what}");
    }
}
