//! Random lists of operations.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use selvedge_replica::Published::{AdoptsConfirmed, AnyBallot, ForgetfulVotes, SeparateSuccessors};
use selvedge_replica::check::operations::{Summary, run, run_under};

fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut bytes = vec![0; len];
    rng.fill_bytes(&mut bytes);
    bytes
}

fn count(seeds: core::ops::Range<u64>, len: usize) -> Summary {
    let mut all = Summary::default();
    selvedge_sim::histories(seeds, |seed| match run(&bytes(seed, len)) {
        Ok(summary) => {
            all.operations += summary.operations;
            all.applied += summary.applied;
            all.read += summary.read;
            all.configured += summary.configured;
            all.installed += summary.installed;
            all.led += summary.led;
            all.restarts += summary.restarts;
            all.unavailable += summary.unavailable;
            all.hostile += summary.hostile;
        }
        Err(broken) => panic!("{broken}"),
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

/// Each published rule breaks a promise in some list.
#[test]
fn published_rules_break() {
    for rule in [
        AnyBallot,
        AdoptsConfirmed,
        ForgetfulVotes,
        SeparateSuccessors,
    ] {
        let broken = (0..20_000).find_map(|seed| {
            let broken = run_under(&bytes(seed, 400), &[rule]).err()?;
            let is_unsafe = ["applies", "sees version", "the state of"]
                .iter()
                .any(|it| {
                    let story = broken.split("\nafter").next().unwrap_or_default();
                    story.contains(it)
                });
            is_unsafe.then_some((seed, broken))
        });
        let Some((seed, broken)) = broken else {
            panic!("{rule:?} breaks nothing");
        };
        println!("{rule:?}, seed {seed}: {broken:.100}");
    }
}
