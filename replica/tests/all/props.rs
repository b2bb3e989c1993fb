//! Random lists of operations.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use selvedge_replica::check::operations::{Summary, run};

fn count(seeds: core::ops::Range<u64>, len: usize) -> Summary {
    let mut all = Summary::default();
    selvedge_sim::histories(seeds, |seed| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut bytes = vec![0; len];
        rng.fill_bytes(&mut bytes);
        match run(&bytes) {
            Ok(summary) => {
                all.operations += summary.operations;
                all.applied += summary.applied;
                all.read += summary.read;
                all.configured += summary.configured;
                all.installed += summary.installed;
                all.led += summary.led;
                all.restarts += summary.restarts;
                all.unavailable += summary.unavailable;
            }
            Err(broken) => panic!("{broken}"),
        }
    });
    all
}

#[test]
fn random_lists_keep_every_promise() {
    let n = std::env::var("N")
        .ok()
        .and_then(|it| it.parse().ok())
        .unwrap_or(500);
    let from = std::env::var("FROM")
        .ok()
        .and_then(|it| it.parse().ok())
        .unwrap_or(0);
    let all = count(from..from + n, 400);
    println!("{all:?}");
    assert!(all.applied > 0 && all.read > 0 && all.configured > 0 && all.installed > 0);
}
