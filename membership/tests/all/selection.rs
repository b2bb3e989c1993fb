//! The choice of probe targets.

#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use crate::lone;

use lone::{Lone, pings, quiet};
use proptest::prelude::*;
use selvedge_core::{Effect, Member, NodeId};
use selvedge_membership::{
    Age, Body, Claim, Command, Message, Metadata, PassiveFeedback, Record, Selection,
};

/// The number of probes of each of the members 2, 3 and so on, in `periods` periods.
fn targets(lone: &mut Lone, members: usize, periods: usize) -> Vec<usize> {
    lone.effects.clear();
    for _ in 0..periods {
        lone.period(None);
    }
    let mut counts = vec![0; members];
    for target in pings(&lone.effects) {
        counts[target.id.0 as usize - 2] += 1;
    }
    counts
}

#[test]
fn draws_follow_the_inverse_power_of_the_distance() {
    let distances = [1_u32, 2, 3, 5];
    for exponent in 0..=5 {
        let config = quiet()
            .with_exponent(exponent)
            .with_selection(Selection::Plain);
        let mut lone = Lone::new(config, &distances);
        let periods = 20_000;
        let counts = targets(&mut lone, 4, periods);
        let weight = |distance: u32| f64::from(distance).powi(-i32::from(exponent));
        let total: f64 = distances.iter().map(|&distance| weight(distance)).sum();
        for (count, &distance) in counts.iter().zip(&distances) {
            let share = weight(distance) / total;
            let expected = share * periods as f64;
            // Five standard deviations; the seed is fixed.
            let slack = 5.0 * (expected * (1.0 - share)).sqrt() + 1.0;
            let off = (*count as f64 - expected).abs();
            assert!(
                off < slack,
                "m = {exponent}, distance {distance}: {count}, not {expected}"
            );
        }
    }
}

#[test]
fn whose_distance_nobody_told_is_drawn_as_at_the_default_distance() {
    let config = quiet().with_default_distance(3);
    let mut lone = Lone::new(config, &[3]);
    lone.receive(Member::new(3, 0), lone::says_that_it_lives(3));
    assert_eq!(lone.shares(2), [0.5, 0.5]);
}

/// A bag holds each weight; a draw takes off the smallest. Weights 8, 4, 1, 1 make 14 draws.
#[test]
fn a_bag_is_emptied_in_proportion_and_filled_again() {
    let config = quiet()
        .with_exponent(1)
        .with_selection(Selection::TimeBounded);
    let mut lone = Lone::new(config, &[1, 2, 8, 8]);
    for _ in 0..20 {
        assert_eq!(targets(&mut lone, 4, 14), [8, 4, 1, 1]);
    }
}

/// And not only in the next bag, which may be thousands of draws away.
#[test]
fn who_comes_back_is_in_the_bag_again() {
    let config = quiet().with_selection(Selection::TimeBounded);
    let mut lone = Lone::new(config, &[1, 1, 100]);
    assert_eq!(targets(&mut lone, 3, 10).iter().sum::<usize>(), 10);
    let claims = [
        Claim::Failed(Metadata::default(), Age::default()),
        Claim::Alive(Metadata::default()),
    ];
    for (revision, claim) in (0..).zip(claims) {
        let member = Member::new(2, 0);
        let mut message = Message::bare(Body::Ack { origin: None });
        message.records.push(Record {
            member,
            revision,
            claim,
        });
        lone.receive(Member::new(3, 0), message);
    }
    let counts = targets(&mut lone, 3, 40);
    assert!(counts[0] > 10 && counts[1] > 10, "{counts:?}");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 60,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// The promise of the bounded mix, for any weights and with passive feedback on.
    #[test]
    fn every_member_is_probed_within_n_times_every_periods(
        distances in proptest::collection::vec(1_u32..100_000, 1..14),
        every in 1_u16..6,
        exponent in 0_u8..9,
        is_passive in any::<bool>(),
    ) {
        let passive = is_passive.then(PassiveFeedback::default);
        let selection = Selection::BoundedMix { every };
        let mut lone = Lone::new(quiet()
.with_selection(selection)
.with_exponent(exponent)
.with_passive(passive), &distances);
        let bound = distances.len() * usize::from(every);
        for _ in 0..3 {
            let counts = targets(&mut lone, distances.len(), bound);
            prop_assert!(counts.iter().all(|&count| count > 0), "{:?} in {}", counts, bound);
        }
    }
}

#[test]
fn the_dead_are_not_probed() {
    let mut lone = Lone::new(quiet(), &[1; 5]);
    let mut message = Message::bare(Body::Ack { origin: None });
    for (id, claim) in [
        (2, Claim::Left(Age::default())),
        (3, Claim::Failed(Metadata::default(), Age::default())),
    ] {
        let member = Member::new(id, 0);
        message.records.push(Record {
            member,
            revision: 0,
            claim,
        });
    }
    lone.receive(Member::new(4, 0), message);
    let counts = targets(&mut lone, 5, 200);
    assert_eq!((counts[0], counts[1]), (0, 0));
    assert!(counts[2..].iter().all(|&count| count > 0));
}

/// Relays are drawn when an answer is late: none twice, not the target, not the node itself.
#[test]
fn relays_are_distinct_and_others() {
    let mut lone = Lone::new(quiet().with_relays(4), &[1, 2, 3, 4, 5, 6]);
    lone.effects.clear();
    // Before the first of them is declared failed.
    for _ in 0..14 {
        let now = lone.driver.deadline().unwrap();
        lone.silence(now);
    }
    let mut asked: Vec<(Member, Vec<NodeId>)> = Vec::new();
    for effect in &lone.effects {
        if let Effect::Send { to, message } = effect
            && let Body::PingRequest { target } = message.body
        {
            match asked.last_mut() {
                Some((of, relays)) if *of == target && relays.len() < 4 => relays.push(to.id),
                _ => asked.push((target, vec![to.id])),
            }
        }
    }
    assert!(asked.len() >= 5, "{asked:?}");
    for (target, mut relays) in asked {
        assert!(!relays.contains(&target.id) && !relays.contains(&NodeId(1)));
        relays.sort_unstable();
        relays.dedup();
        assert_eq!(relays.len(), 4, "{relays:?} for {target:?}");
    }
    lone.command(Command::Leave);
}
