//! Random operations on a small mesh: local promises hold for any messages of the others, and a
//! broken rule is noticed.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use proptest::prelude::*;
use selvedge_membership::Published;
use selvedge_membership::check::operations::{Summary, run, run_under};

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn short_histories_keep_every_local_promise(
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
    ) {
        if let Err(broken) = run(&bytes) {
            prop_assert!(false, "{}", broken);
        }
    }
}

fn long(seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; 6_000];
    ChaCha8Rng::seed_from_u64(seed).fill_bytes(&mut bytes);
    bytes
}

/// Longer runs, from seeds, with a check that they are not empty.
#[test]
fn long_histories_keep_every_local_promise_and_every_budget() {
    let mut all = Summary::default();
    for seed in 0..400 {
        match run(&long(seed)) {
            Ok(summary) => all.add(&summary),
            Err(broken) => panic!("seed {seed}: {broken}"),
        }
    }
    println!("seeds 0 to 399: {all:?}");
    assert!(
        all.operations > 100_000 && all.delivered > 20_000 && all.deltas > 5_000,
        "{all:?}"
    );
    assert!(all.longest_frame > 127, "{all:?}");
}

/// Shows that the tests above can fail. The rules that are left out break promises of a mesh as a
/// whole, or time bounds: the model check has them, and `errata.rs`.
#[test]
fn a_broken_rule_is_noticed() {
    for rule in [Published::NoTimerForNews, Published::RefutedTimerActs] {
        let noticed = (0..1_000).find_map(|seed| {
            run_under(&long(seed), &[rule])
                .err()
                .map(|what| (seed, what))
        });
        let Some((seed, what)) = noticed else {
            panic!("{rule:?} is not noticed");
        };
        println!("{rule:?}, seed {seed}: {what}");
    }
}
