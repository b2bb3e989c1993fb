//! Active and passive feedback (thesis, section 3.2).

#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use proptest::prelude::*;
use selvedge_core::{Driver, Effect, Input, Member, NodeId, Ratio, Time};
use selvedge_membership::{
    Body, Claim, Command, Config, Digest, Event, Membership, Message, Metadata, PassiveFeedback,
    Record,
};

/// One node with neighbours that exist in its list only.
struct Lone {
    driver: Driver<Membership>,
    rng: ChaCha8Rng,
    effects: Vec<Effect<Membership>>,
}

impl Lone {
    /// `distances` are those of the neighbours, whose ids are 2, 3 and so on.
    fn new(config: Config, distances: &[u32]) -> Self {
        let machine = Membership::new(Member::new(1, 0), config).unwrap();
        let mut lone = Self {
            driver: Driver::new(machine),
            rng: ChaCha8Rng::seed_from_u64(5),
            effects: Vec::new(),
        };
        lone.command(Command::Join { seeds: vec![] });
        for (id, &distance) in (2..).zip(distances) {
            let member = Member::new(id, 0);
            let mut message = Message::bare(Body::Ack { origin: None });
            message.records.0.push(Record {
                member,
                revision: 0,
                claim: Claim::Alive(Metadata::default()),
            });
            lone.hear(member, message);
            let id = member.id;
            lone.command(Command::SetDistance { id, distance });
        }
        lone.effects.clear();
        lone
    }

    fn command(&mut self, command: Command) {
        self.step(Input::Command(command));
    }

    fn hear(&mut self, from: Member, message: Message) {
        self.step(Input::Message { from, message });
    }

    fn step(&mut self, input: Input<Membership>) {
        let effects = &mut self.effects;
        let now = Time::ZERO;
        self.driver
            .step(now, &mut self.rng, input, |effect| effects.push(effect))
            .unwrap();
    }

    /// Lets a period pass in which every probe is answered, and nobody probes but `pinger`.
    fn period(&mut self, pinger: Option<Member>) {
        let until = self.driver.deadline().unwrap() + self.driver.machine().config().period;
        while let Some(now) = self.driver.deadline().filter(|&at| at < until) {
            let start = self.effects.len();
            let effects = &mut self.effects;
            self.driver
                .expire(now, &mut self.rng, |effect| effects.push(effect));
            let probed: Vec<Member> = pings(&self.effects[start..]);
            for target in probed {
                self.hear(target, Message::bare(Body::Ack { origin: None }));
            }
        }
        if let Some(pinger) = pinger {
            let digest = Digest::default();
            self.hear(
                pinger,
                Message::bare(Body::Ping {
                    digest,
                    origin: None,
                }),
            );
        }
    }

    fn shares(&self, count: u64) -> Vec<f64> {
        (2..2 + count)
            .map(|id| {
                let (weight, total) = self.driver.machine().member(NodeId(id)).unwrap().share();
                weight as f64 / total as f64
            })
            .collect()
    }

    fn reported_to(&self) -> Vec<u64> {
        self.effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Send { to, message } if message.body == Body::Unlucky => Some(to.id.0),
                _ => None,
            })
            .collect()
    }
}

fn pings(effects: &[Effect<Membership>]) -> Vec<Member> {
    effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Send { to, message } if matches!(message.body, Body::Ping { .. }) => Some(*to),
            _ => None,
        })
        .collect()
}

/// No chance, no other traffic: what is left is what the test is about.
fn quiet() -> Config {
    Config {
        passive: None,
        reconnect_every: 0,
        sync_after: 0,
        ..Config::default()
    }
}

/// Distances whose inverses are to each other as 43, 30, 17 and 10.
const WORKED: [u32; 4] = [510, 731, 1_290, 2_193];

fn worked_example() -> Lone {
    Lone::new(
        Config {
            exponent: 1,
            ..quiet()
        },
        &WORKED,
    )
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
    lone.hear(Member::new(5, 0), Message::bare(Body::Unlucky));
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
    lone.hear(Member::new(5, 0), Message::bare(Body::Unlucky));
    for _ in 0..50 {
        lone.period(None);
    }
    assert_eq!(rounded(&lone.shares(4)), [31, 27, 17, 25]);
}

#[test]
fn without_active_feedback_reports_are_not_heeded() {
    let config = Config {
        active: None,
        exponent: 1,
        ..quiet()
    };
    let mut lone = Lone::new(config, &WORKED);
    lone.hear(Member::new(5, 0), Message::bare(Body::Unlucky));
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
        let mut lone = Lone::new(Config { exponent, unit_distance: 10, ..quiet() }, &distances);
        let total = lone.driver.machine().member(NodeId(2)).unwrap().share().1;
        for report in reports {
            let id = 2 + (report % distances.len()) as u64;
            let before = lone.driver.machine().member(NodeId(id)).unwrap().share().0;
            lone.hear(Member::new(id, 0), Message::bare(Body::Unlucky));
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
    let config = Config {
        neighbour_distance: 2,
        ..quiet()
    };
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

fn passive(lone_distance: u32) -> Lone {
    let config = Config {
        passive: Some(PassiveFeedback {
            chance: Ratio::ALWAYS,
            timeout: 5,
        }),
        selection: selvedge_membership::Selection::Plain,
        exponent: 5,
        ..quiet()
    };
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
    let config = Config {
        passive: None,
        ..lone.driver.machine().config().clone()
    };
    lone.command(Command::Configure(Box::new(config)));
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
            Effect::Event(Event::Membership(selvedge_core::Delta::Failed(_)))
        )
    };
    assert!(!lone.effects.iter().any(is_failure));
}
