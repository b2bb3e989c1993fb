//! Active and passive feedback (thesis, section 3.2).

#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use crate::lone;

use lone::{Lone, pings, quiet, says_that_it_lives};
use proptest::prelude::*;
use selvedge_core::{Effect, Member, NodeId, Ratio};
use selvedge_membership::{Body, Command, Event, Membership, Message, PassiveFeedback, Phase};

/// Distances with inverses in the proportions 43, 30, 17 and 10.
const WORKED: [u32; 4] = [510, 731, 1_290, 2_193];

fn worked_example() -> Lone {
    Lone::new(quiet().with_exponent(1), &WORKED)
}

fn rounded(shares: &[f64]) -> Vec<u32> {
    shares
        .iter()
        .map(|share| (share * 100.0).round() as u32)
        .collect()
}

#[test]
fn the_worked_example_of_algorithm_1_comes_out() {
    let mut lone = worked_example();
    assert_eq!(rounded(&lone.shares(4)), [43, 30, 17, 10]);
    lone.receive(Member::new(5, 0), Message::bare(Body::Unlucky));
    assert_eq!(
        rounded(&lone.shares(4)),
        [43, 30, 17, 10],
        "not before the period ends"
    );
    lone.period(None);
    assert_eq!(rounded(&lone.shares(4)), [31, 27, 17, 25]);
}

#[test]
fn a_boost_is_permanent() {
    let mut lone = worked_example();
    lone.receive(Member::new(5, 0), Message::bare(Body::Unlucky));
    for _ in 0..50 {
        lone.period(None);
    }
    assert_eq!(rounded(&lone.shares(4)), [31, 27, 17, 25]);
}

#[test]
fn without_active_feedback_reports_are_not_heeded() {
    let config = quiet().with_active(None).with_exponent(1);
    let mut lone = Lone::new(config, &WORKED);
    lone.receive(Member::new(5, 0), Message::bare(Body::Unlucky));
    lone.period(None);
    assert_eq!(rounded(&lone.shares(4)), [43, 30, 17, 10]);
}

proptest! {
    #[test]
    fn what_is_given_is_what_is_taken(
        distances in proptest::collection::vec(1_u32..5_000, 2..12),
        reports in proptest::collection::vec(0_usize..12, 1..8),
        exponent in 0_u8..6,
    ) {
        let mut lone = Lone::new(quiet()
.with_exponent(exponent)
.with_unit_distance(10), &distances);
        let total = lone.driver.machine().member(NodeId(2)).unwrap().share().1;
        for report in reports {
            let id = 2 + (report % distances.len()) as u64;
            let before = lone.driver.machine().member(NodeId(id)).unwrap().share().0;
            lone.receive(Member::new(id, 0), Message::bare(Body::Unlucky));
            lone.period(None);
            let (after, sum) = lone.driver.machine().member(NodeId(id)).unwrap().share();
            prop_assert_eq!(sum, total);
            prop_assert!(after >= before);
        }
        let weights = (2..).take(distances.len()).map(|id| {
            lone.driver.machine().member(NodeId(id)).unwrap().share().0
        });
        prop_assert_eq!(weights.sum::<u64>(), total);
    }
}

#[test]
fn who_is_never_probed_reports_to_its_neighbours_alone() {
    let config = quiet().with_neighbour_distance(2);
    let mut lone = Lone::new(config, &[1, 2, 3, 9]);
    for _ in 0..40 {
        lone.period(None);
    }
    let reported = lone.reported_to();
    assert!(reported.len() >= 2, "{reported:?}");
    assert!(
        reported.iter().all(|&id| id == 2 || id == 3),
        "{reported:?}"
    );
}

#[test]
fn who_is_probed_each_period_reports_nothing() {
    let mut lone = Lone::new(quiet(), &[1, 1, 1]);
    for _ in 0..200 {
        lone.period(Some(Member::new(2, 0)));
    }
    assert!(lone.reported_to().is_empty());
}

/// The average starts at 1 and gets 1/8 of each new interval. After a gap of 25 periods it is
/// 7/8 + 25/8 = 4: not above ACTIVE_TIMEOUT, which is 4. After 26 it is.
#[test]
fn the_average_moves_by_an_eighth() {
    for (gap, reports) in [(25, 0), (26, 1)] {
        let mut lone = Lone::new(quiet(), &[1]);
        for _ in 0..gap {
            lone.period(None);
        }
        assert_eq!(lone.reported_to().len(), reports, "after {gap} periods");
    }
}

/// A gap in the life before is no gap in this one.
#[test]
fn who_comes_back_counts_its_probes_anew() {
    let mut lone = Lone::new(quiet(), &[1]);
    for _ in 0..25 {
        lone.period(None);
    }
    lone.command(Command::Leave);
    while lone.driver.machine().phase() != Phase::Idle {
        lone.period(None);
    }
    lone.command(Command::Join { seeds: vec![] });
    lone.receive(Member::new(2, 0), says_that_it_lives(2));
    for _ in 0..25 {
        lone.period(None);
    }
    assert!(lone.reported_to().is_empty());
    lone.period(None);
    assert_eq!(lone.reported_to(), [2]);
}

fn passive(lone_distance: u32) -> Lone {
    let config = quiet()
        .with_passive(Some(PassiveFeedback {
            chance: Ratio::ALWAYS,
            timeout: 5,
        }))
        .with_selection(selvedge_membership::Selection::Plain)
        .with_exponent(5);
    Lone::new(config, &[1, 1, lone_distance])
}

#[test]
fn a_silent_member_is_probed_however_far_it_is() {
    let mut lone = passive(1_000);
    for _ in 0..30 {
        lone.period(None);
    }
    let probed = pings(&lone.effects);
    // One in 10^15 by weight.
    assert!(probed.contains(&Member::new(4, 0)), "{probed:?}");
}

#[test]
fn without_passive_feedback_the_far_are_left_alone() {
    let mut lone = passive(1_000);
    let config = lone.driver.machine().config().clone().with_passive(None);
    lone.command(Command::SetConfig(Box::new(config)));
    for _ in 0..30 {
        lone.period(None);
    }
    assert!(!pings(&lone.effects).contains(&Member::new(4, 0)));
}

#[test]
fn feedback_declares_nobody_failed() {
    let mut lone = passive(7);
    for _ in 0..100 {
        lone.period(None);
    }
    let is_failure = |effect: &Effect<Membership>| {
        matches!(
            effect,
            Effect::Event(Event::Changed(selvedge_core::Delta::Failed(_)))
        )
    };
    assert!(!lone.effects.iter().any(is_failure));
}
