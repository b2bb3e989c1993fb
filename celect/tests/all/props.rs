//! Random operations on a small mesh: the promises hold under their assumptions, and broken rules are
//! detected.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use proptest::prelude::*;
use selvedge_celect::Published;
use selvedge_celect::check::operations::{Summary, run, run_under};
use selvedge_sim::histories;

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn short_histories_keep_every_promise(
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
    ) {
        if let Err(broken) = run(&bytes) {
            prop_assert!(false, "{}", broken);
        }
    }
}

/// Operations that once broke a promise.
#[test]
fn histories_that_broke_hold() {
    // When the leader left, the node that got its place on a list took no part in the election.
    let place: &[u8] = &[
        216, 0, 10, 89, 80, 128, 200, 27, 2, 86, 13, 147, 58, 135, 23, 0, 0, 179, 0, 0, 0, 0, 93,
        61, 157, 135, 251, 208, 123, 192, 23, 151, 130,
    ];
    // An answer hid the lowest node behind the former life of a node that was passed over.
    let life: &[u8] = &[
        16, 1, 18, 224, 0, 7, 5, 28, 18, 188, 2, 123, 1, 90, 119, 137, 126, 117, 11, 0, 0, 15, 2,
        0, 0, 7, 0,
    ];
    for bytes in [place, life] {
        let held = run(bytes);
        assert!(held.as_ref().is_ok_and(|it| it.elections > 0), "{held:?}");
    }
}

fn long(seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; 2_000];
    ChaCha8Rng::seed_from_u64(seed).fill_bytes(&mut bytes);
    bytes
}

/// Longer operations, from seeds, with a minimum of activity. `SELVEDGE_HISTORIES` sets their number.
#[test]
fn long_histories_keep_every_promise_and_meet_every_trouble() {
    let mut all = Summary::default();
    let ran = histories(selvedge_sim::histories::seeds(1_000), |seed| {
        let one = match run(&long(seed)) {
            Ok(summary) => summary,
            Err(broken) => panic!("{broken}"),
        };
        all.add(&one);
    });
    println!("{ran} histories: {all:#?}");
    if ran >= 1_000 {
        assert_eq!(all.missing(), None);
    }
}

/// A test of the tests above. Of the two rules that are left out, one only costs messages; the other
/// leaves a node waiting, which mostly learns of another node's election, and the model check has it.
#[test]
fn a_broken_rule_is_noticed() {
    use Published as P;
    for rule in [
        P::OwnerLeftOut,
        P::NoDiscovery,
        P::LowestWins,
        P::LastWins,
        P::RetriesTheDead,
        P::SkipsLocally,
        P::AnyRun,
    ] {
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

/// A node restarts twice while it is asked, and only an answer names its last life.
#[test]
fn a_life_that_was_asked_makes_way_for_one_that_was_met() {
    let bytes = [
        61, 26, 49, 0, 128, 34, 0, 133, 0, 164, 61, 0, 211, 27, 3, 83, 224, 1, 111, 65, 15, 72, 15,
        11, 22, 0, 71, 22, 0, 32, 0, 22, 0, 22, 0, 125, 0, 0, 0, 0, 0, 0, 83, 0, 0, 207, 2, 0, 29,
        59, 16, 140, 0, 14, 65, 28, 32, 8, 206, 65, 0, 251, 48, 214, 0, 0, 0, 90, 0, 251, 208, 0,
        61, 118, 0, 0, 29, 93, 155, 22, 0, 22, 0, 0, 0, 22, 0, 0, 22, 0, 0, 26, 79, 2, 221, 103, 0,
        12, 0, 0, 154, 0,
    ];
    run(&bytes).unwrap();
}
