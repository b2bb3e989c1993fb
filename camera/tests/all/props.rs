//! Random operations on a small mesh: the promises hold whatever happens within what they rest on,
//! and where a rule is broken it is noticed.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use proptest::prelude::*;
use selvedge_camera::Published;
use selvedge_camera::check::operations::{Summary, run, run_under};

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

/// A ring of five, room for three nodes, a takeover: a request that forgot a rival that was out took
/// it for one that it had never met when it asked again.
#[test]
fn what_a_request_met_is_remembered_until_it_ends() {
    let bytes = [52, 6, 212, 200, 0, 2, 232, 0, 16, 148, 121, 0, 48, 29, 16];
    run(&bytes).unwrap();
}

fn long(seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; 3_000];
    ChaCha8Rng::seed_from_u64(seed).fill_bytes(&mut bytes);
    bytes
}

/// Longer ones, from seeds; and they do something.
#[test]
fn long_histories_keep_every_promise_and_meet_every_trouble() {
    let mut all = Summary::default();
    for seed in 0..1_000 {
        let one = match run(&long(seed)) {
            Ok(summary) => summary,
            Err(broken) => panic!("seed {seed}: {broken}"),
        };
        for (sum, one) in [
            (&mut all.operations, one.operations),
            (&mut all.delivered, one.delivered),
            (&mut all.hostile, one.hostile),
            (&mut all.refused, one.refused),
            (&mut all.entries, one.entries),
            (&mut all.slow, one.slow),
            (&mut all.eager, one.eager),
            (&mut all.rebuilt, one.rebuilt),
            (&mut all.compared, one.compared),
            (&mut all.died_inside, one.died_inside),
            (&mut all.restarts, one.restarts),
            (&mut all.false_failures, one.false_failures),
            (&mut all.passed_over, one.passed_over),
            (&mut all.served, one.served),
            (&mut all.no_room, one.no_room),
        ] {
            *sum += one;
        }
        all.longest_frame = all.longest_frame.max(one.longest_frame);
    }
    println!("seeds 0 to 999: {all:?}");
    assert!(
        all.operations > 1_000_000 && all.entries > 10_000 && all.served > 300,
        "{all:?}"
    );
    for met in [
        all.compared * 2 / all.entries,
        all.slow / 1_000,
        all.eager / 50,
        all.rebuilt / 500,
        all.hostile / 10_000,
        all.refused,
        all.died_inside / 500,
        all.restarts / 5_000,
        all.false_failures / 10_000,
        all.passed_over / 10,
        all.no_room,
    ] {
        assert!(met > 0, "{all:?}");
    }
    assert!(all.longest_frame > 100, "{all:?}");
}

/// So that the tests above mean something. Of the rules that are left out two only make somebody wait
/// for longer where requests are sent again, and a tree that is not built anew only counts fewer; an
/// abstention has to come twice around an entry to matter, which `model.rs` sees to.
#[test]
fn a_broken_rule_is_noticed() {
    use Published as P;
    for rule in [
        P::AskWhoIsNotListed,
        P::NoQuorum,
        P::FailureEndsWait,
        P::OwnOksAreNotAsked,
        P::FailureForgets,
        P::NoTombstones,
        P::OneLife,
        P::OkForAnyRequest,
        P::NumberIsToken,
        P::ReleaseById,
        P::SnapshotInExit,
        P::RootIgnoresRivals,
        P::AdoptedStaySilent,
        P::LateCaching,
    ] {
        let noticed = (0..10_000).find_map(|seed| {
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

#[test]
fn a_node_that_forgot_an_end_hears_it_again() {
    // Five in a line, and each remembers three. Two are gone. Older messages name one of them
    // again to nodes that have heard of its end and forgotten it.
    let bytes = [
        56, 50, 208, 200, 138, 0, 36, 0, 0, 0, 0, 0, 0, 0, 0, 0, 28, 16, 0, 0, 0, 0, 0, 0, 0, 0,
        62, 62, 112, 14, 2, 157, 96, 125, 16, 12, 0, 12,
    ];
    let summary = run(&bytes).expect("all are served");
    assert!(summary.served >= 3, "{summary:?}");
}
