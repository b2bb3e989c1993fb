//! The errata that depend on no order of messages: each is computed, with the paper's rule and with ours.
//! The others are scenarios that [`super::model`] runs both ways.
//!
//! `docs/errata.md` lists the places of all rules.

use std::collections::BTreeSet;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng as _;
use selvedge_core::{Choose as _, Driver, Effect, Input, Member, NodeId, Ratio, Span, Time};
use selvedge_pcm::check::verdict;
use selvedge_pcm::gateway::{self, Gateway};
use selvedge_pcm::{Answer, DutyCycle, Libraries, Limits, Message, Published};
use selvedge_replica::Configuration;

use super::world::World;

const HALF: &[Published] = &[Published::FirstHalf];

fn value(value: u8) -> Option<Answer> {
    Some(Answer::Value([value].into_iter().collect()))
}

/// The outcomes for electors that returned these values, the orchestrator first, over all orders in which
/// their votes may arrive.
fn verdicts(values: &[u8], rules: &[Published]) -> BTreeSet<Option<Answer>> {
    let votes: Vec<(u64, u8)> = (1..).zip(values.iter().copied()).collect();
    let mut all = BTreeSet::new();
    let mut orders = vec![(Vec::new(), votes)];
    while let Some((cast, open)) = orders.pop() {
        if open.is_empty() {
            all.insert(verdict(values.len() as u64, &cast, rules));
        }
        for at in 0..open.len() {
            let (mut cast, mut open) = (cast.clone(), open.clone());
            cast.push(open.remove(at));
            orders.push((cast, open));
        }
    }
    all
}

#[test]
fn q5_half_of_the_votes_may_contradict_all_of_them_and_ours_never_do() {
    // The orchestrator prefers its own value in a tie, and may have sent the other's by then.
    assert_eq!(verdicts(&[1, 2], HALF), [value(1), value(2)].into());
    assert_eq!(verdicts(&[1, 2], &[]), [value(1)].into());
    // No other elector returned the orchestrator's value: the first value with two votes wins.
    assert_eq!(
        verdicts(&[3, 1, 1, 2, 2], HALF),
        [value(1), value(2)].into()
    );
    // Two against one, and two that differ: no rule determines the outcome.
    assert_eq!(verdicts(&[1, 1, 2, 3, 4], HALF), [None].into());
    for values in [&[3, 1, 1, 2, 2], &[1, 1, 2, 3, 4]] {
        assert_eq!(verdicts(values, &[]), [Some(Answer::NoMajority)].into());
    }
}

#[test]
fn q5_all_orders_of_up_to_five_votes_come_to_one_answer_and_by_the_paper_to_two() {
    let mut differ = 0;
    for count in 1..=5_u32 {
        for nth in 0..3_u32.pow(count) {
            let values: Vec<u8> = (0..count)
                .map(|at| (nth / 3_u32.pow(at) % 3) as u8)
                .collect();
            let ours = verdicts(&values, &[]);
            assert_eq!(ours.len(), 1, "{values:?}: {ours:?}");
            assert!(!ours.contains(&None), "{values:?}");
            differ += u32::from(verdicts(&values, HALF).len() > 1);
        }
    }
    assert_eq!(differ, DIFFER, "of 363 lists of values");
}

const DIFFER: u32 = 42;

/// Of a unit of `all`, `disconnected` are cut off and `wrong` of the others are wrong. Returns true if the
/// right value is decided for each choice of the wrong ones; if `is_orchestrator_right`, only for choices
/// without the orchestrator.
fn tolerates(all: u32, disconnected: u32, wrong: u32, is_orchestrator_right: bool) -> bool {
    let connected = all - disconnected;
    let all_wrong = (0..1_u32 << connected).filter(|it| it.count_ones() == wrong);
    let mut considered = all_wrong.filter(|it| !(is_orchestrator_right && it & 1 == 1));
    considered.all(|who| {
        let votes = (0..connected).map(|at| (u64::from(at) + 1, (1 + (who >> at & 1)) as u8));
        let votes: Vec<(u64, u8)> = votes.collect();
        verdict(connected.into(), &votes, &[]) == value(1)
    })
}

#[test]
fn q5_n_followers_tolerate_d_that_are_silent_and_b_that_are_wrong_where_n_is_2b_d_1() {
    let mut beyond_the_paper = BTreeSet::new();
    for all in 1..=7 {
        for disconnected in 0..all {
            for wrong in 0..=all - disconnected {
                let is_tolerated = tolerates(all, disconnected, wrong, false);
                assert_eq!(is_tolerated, all > 2 * wrong + disconnected);
                if wrong < all - disconnected {
                    let with_honest = tolerates(all, disconnected, wrong, true);
                    assert_eq!(with_honest, all >= 2 * wrong + disconnected);
                }
                // "At least n + 2 servers to be able to tolerate n failures."
                if wrong + disconnected + 2 == all && !is_tolerated {
                    beyond_the_paper.insert((all, disconnected, wrong));
                }
            }
        }
    }
    // It holds where one follower at most is wrong, and nowhere else.
    let claimed =
        (2..=7).flat_map(|all| (0..=all - 2).map(move |wrong| (all, all - 2 - wrong, wrong)));
    let expected: BTreeSet<_> = claimed.filter(|it| it.2 > 1).collect();
    assert_eq!(beyond_the_paper, expected);
}

/// The probability that somewhere among a hundred keep-alives `in_a_row` in a row are lost, when each is
/// lost with 5%.
fn purged(in_a_row: usize) -> f64 {
    // At each place the probability that exactly that number of the last keep-alives were lost, and never
    // `in_a_row`.
    let mut lost = vec![0.0; in_a_row];
    lost[0] = 1.0;
    for _ in 0..100 {
        let received = lost.iter().sum::<f64>() * 0.95;
        lost.rotate_right(1);
        for it in lost.iter_mut().skip(1) {
            *it *= 0.05;
        }
        lost[0] = received;
    }
    1.0 - lost.iter().sum::<f64>()
}

#[test]
fn q8_a_purge_after_one_and_a_half_periods_takes_nearly_each_live_follower() {
    let rounded = |in_a_row| (purged(in_a_row) * 1_000.0).round();
    assert_eq!([1, 2, 3].map(rounded), [994.0, 211.0, 12.0]);
}

/// The number of `followers` that a gateway purges within a hundred seconds, when each sends a keep-alive a
/// second and one of twenty is lost.
fn purges(followers: u64, purge_after: u16, seed: u64) -> usize {
    let hub = Member::new(1, 0);
    let config = gateway::Config::new().with_purge_after(purge_after);
    let gateway = Gateway::new(hub, config, Configuration::of([hub]), Limits::new()).unwrap();
    let mut gateway = Driver::new(gateway);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut network = ChaCha8Rng::seed_from_u64(seed + 1);
    let mut purged = BTreeSet::new();
    let start = Input::Command(gateway::Command::Start);
    gateway.step(Time::ZERO, &mut rng, start, drop).unwrap();
    for second in 0..=100 {
        let now = Time(second * 1_000_000);
        gateway.expire(now, &mut rng, |effect| {
            if let Effect::Event(gateway::Event::Purged(id)) = effect {
                purged.insert(id);
            }
        });
        for id in 0..followers {
            let is_lost = second > 0 && network.chance(Ratio::new(1, 20));
            if is_lost || purged.contains(&NodeId(100 + id)) {
                continue;
            }
            let from = Member::new(100 + id, 0);
            let message = Message::KeepAlive {
                number: 1,
                duty: DutyCycle::always(),
                libraries: Libraries::new(),
            };
            gateway
                .step(now, &mut rng, Input::Message { from, message }, drop)
                .unwrap();
        }
    }
    assert!(
        gateway
            .machine()
            .tables()
            .is_some_and(|it| it.clustered() > 0)
    );
    purged.len()
}

#[test]
fn q8_a_gateway_purges_as_many_live_followers_as_computed() {
    const FOLLOWERS: u64 = 400;
    for (purge_after, in_a_row) in [(15, 1), (25, 2), (35, 3)] {
        let seed = 8;
        let count = purges(FOLLOWERS, purge_after, seed) as f64;
        let p = purged(in_a_row);
        let (mean, variance) = (FOLLOWERS as f64 * p, FOLLOWERS as f64 * p * (1.0 - p));
        println!("seed {seed}, {purge_after} tenths: {count} of {FOLLOWERS}, {mean:.1} expected");
        assert!(
            (count - mean).abs() <= 4.0 * variance.sqrt(),
            "seed {seed}: {count}, {mean}"
        );
    }
}

#[test]
fn q9_one_or_two_followers_form_a_unit_once() {
    for followers in [1, 2] {
        let mut world = World::new(9, 1, gateway::Config::new(), Limits::new());
        for at in 0..followers {
            world.add_follower(DutyCycle::always(), at);
        }
        let clustered = |world: &World| {
            let tables = world.gateways[0]
                .driver
                .as_ref()
                .unwrap()
                .machine()
                .tables();
            tables.map(|it| (it.clustered(), it.units()))
        };
        world.run(Span::secs(30));
        let before = clustered(&world);
        assert!(before.is_some_and(|it| it.0 > 0 && it.1 == 1), "{before:?}");
        world.run(Span::secs(100));
        assert_eq!(clustered(&world), before);
    }
}
