//! Every published rule that breaks a promise, run twice: it must break, and ours must hold.
//!
//! `docs/errata.md` names the source of each rule.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{Choose, WeightTree};
use selvedge_core::{Driver, Effect, Input, Member, Time, Weights};
use selvedge_membership::check::scenarios;
use selvedge_membership::{
    Body, Claim, Command, Config, Membership, Message, Metadata, Published, Record, Selection,
};
use selvedge_sim::check::verify_published;

/// `tests/all/model.rs` checks that ours hold in the same scenarios.
#[test]
fn published_rules_break_in_so_many_steps_where_ours_hold() {
    assert_eq!(verify_published(&scenarios()).unwrap(), 5);
}

/// Runs one node for 100 periods among neighbours that answer and never probe it. Returns the
/// number of times that it reported itself as unlucky.
fn reports_of_a_node_that_nobody_probes(machine: Membership) -> usize {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let me = machine.me();
    let mut driver = Driver::new(machine);
    driver
        .step(
            Time::ZERO,
            &mut rng,
            Input::Command(Command::Join { seeds: vec![] }),
            |_| (),
        )
        .unwrap();
    let neighbours = [Member::new(2, 0), Member::new(3, 0)];
    let mut news = Message::bare(Body::Ack { origin: None });
    news.records.extend(neighbours.map(|member| Record {
        member,
        revision: 0,
        claim: Claim::Alive(Metadata::default()),
    }));
    let input = Input::Message {
        from: neighbours[0],
        message: news,
    };
    driver.step(Time::ZERO, &mut rng, input, |_| ()).unwrap();

    let mut reports = 0;
    let end = Time::ZERO + driver.machine().config().period * 100;
    while let Some(now) = driver.deadline().filter(|&at| at < end) {
        let mut probed = Vec::new();
        driver.expire(now, &mut rng, |effect| {
            if let Effect::Send { to, message } = effect {
                match message.body {
                    Body::Unlucky => reports += 1,
                    Body::Ping { .. } => probed.push(to),
                    _ => {}
                }
            }
        });
        for from in probed {
            assert_ne!(from, me);
            let message = Message::bare(Body::Ack { origin: None });
            driver
                .step(now, &mut rng, Input::Message { from, message }, |_| ())
                .unwrap();
        }
    }
    reports
}

#[test]
fn an_average_that_moves_only_when_a_probe_comes_never_notices_that_none_does() {
    let me = Member::new(1, 0);
    let config = Config::default();
    let rule = Published::AverageOnArrival;
    let theirs = Membership::published(me, config.clone(), &[rule]).unwrap();
    assert_eq!(reports_of_a_node_that_nobody_probes(theirs), 0);
    let ours = Membership::new(me, config).unwrap();
    assert!(reports_of_a_node_that_nobody_probes(ours) > 0);
}

/// The number of probes in the bag: the sum of all weights over the smallest. The distances are
/// between 49 nodes at random in 15 m x 15 m, in centimetres, m = 3.
fn probes_in_a_bag(rng: &mut ChaCha8Rng) -> u64 {
    let points: Vec<(i64, i64)> = (0..49)
        .map(|_| {
            (
                rng.below(1_500).cast_signed(),
                rng.below(1_500).cast_signed(),
            )
        })
        .collect();
    let mut weights = WeightTree::default();
    for &(x, y) in points.iter().skip(1) {
        let (x0, y0) = points[0];
        let squared = (x - x0).pow(2) + (y - y0).pow(2);
        let distance = squared.cast_unsigned().isqrt().max(1);
        weights.push((1 << 50) / distance.pow(3));
    }
    let smallest = (0..weights.len()).map(|i| weights.weight(i)).min().unwrap();
    weights.total() / smallest
}

#[test]
fn the_bound_of_the_time_bounded_bag_is_nearly_empty_and_ours_is_not() {
    let mut rng = ChaCha8Rng::seed_from_u64(49);
    let mut bags: Vec<u64> = (0..201).map(|_| probes_in_a_bag(&mut rng)).collect();
    bags.sort_unstable();
    let median = bags[100];
    let Selection::BoundedMix { every } = Config::default().selection else {
        panic!("the default is the bounded mix");
    };
    let ours = 48 * u64::from(every);
    println!("seed 49: a bag lasts {median} probes in the median, our bound is {ours}");
    assert!(
        median > 5 * ours,
        "a bag lasts {median} probes, our bound is {ours}"
    );
}
