//! A single node, by hand: its handling of messages that it should not get, and its limits.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_camera::estimate::{
    Command, Config, ConfigError, Estimator, Event, Failure, MESSAGE_MAX_LEN, Message,
    Misbehaviour, Reject, Timer, Walk,
};
use selvedge_core::{Delta, Driver, Effect, Input, Member, Ratio, Span, Time};

use super::member;

/// A node that the tests drive by hand.
struct Lone {
    driver: Driver<Estimator>,
    rng: ChaCha8Rng,
    sent: Vec<(Member, Message)>,
    notified: Vec<Event>,
    now: Time,
}

impl Lone {
    fn new(config: Config, neighbours: core::ops::Range<usize>) -> Self {
        let mut lone = Self {
            driver: Driver::new(Estimator::new(member(0), config).unwrap()),
            rng: ChaCha8Rng::seed_from_u64(5),
            sent: Vec::new(),
            notified: Vec::new(),
            now: Time::ZERO,
        };
        for other in neighbours {
            let joined = Delta::Joined(member(other));
            lone.step(Input::Membership(joined)).unwrap();
        }
        lone
    }

    fn step(&mut self, input: Input<Estimator>) -> Result<(), Reject> {
        let (sent, notified) = (&mut self.sent, &mut self.notified);
        self.driver
            .step(self.now, &mut self.rng, input, |effect| match effect {
                Effect::Send { to, message } => sent.push((to, message)),
                Effect::Event(event) => notified.push(event),
                Effect::Multicast { .. } => panic!("nothing is for everyone"),
            })
    }

    fn estimate(&mut self) -> Result<(), Reject> {
        self.step(Input::Command(Command::Estimate))
    }

    fn receive(&mut self, from: usize, message: Message) -> Result<(), Reject> {
        let from = member(from);
        self.step(Input::Message { from, message })
    }

    fn wait(&mut self, span: Span) {
        self.now = self.now + span;
        let sent = &mut self.sent;
        self.driver.expire(self.now, &mut self.rng, |effect| {
            if let Effect::Send { to, message } = effect {
                sent.push((to, message));
            }
        });
    }

    fn walks(&mut self) -> Vec<Walk> {
        self.sent
            .drain(..)
            .map(|(_, message)| match message {
                Message::Walk(walk) => walk,
                Message::Sample { .. } => panic!("a walk was expected: {message:?}"),
            })
            .collect()
    }
}

const fn answer(walk: Walk) -> Message {
    Message::Sample {
        origin: walk.origin,
        estimate: walk.estimate,
        number: walk.number,
    }
}

fn walk_of(origin: usize) -> Walk {
    Walk {
        origin: member(origin),
        estimate: 1,
        number: 3,
        budget: 1 << 42,
        hops: 9,
    }
}

#[test]
fn each_walk_counts_once_and_only_in_its_estimate_and_life() {
    let config = Config::default().with_at_once(2).with_hits(3);
    let mut lone = Lone::new(config, 1..5);
    lone.estimate().unwrap();
    assert_eq!(lone.estimate(), Err(Reject::Busy));
    let first = lone.walks();
    assert_eq!(
        first.iter().map(|walk| walk.number).collect::<Vec<_>>(),
        [0, 1]
    );
    lone.receive(4, answer(first[1])).unwrap();
    assert_eq!(lone.walks()[0].number, 2, "another one sets out at once");

    // Again, of another life, of another estimate, of a walk that never set out.
    let former = Member::new(0, 0);
    for stale in [
        answer(first[1]),
        answer(Walk {
            origin: former,
            ..first[0]
        }),
        answer(Walk {
            estimate: 2,
            ..first[0]
        }),
        answer(Walk {
            number: 9,
            ..first[0]
        }),
        Message::Walk(first[1]),
        Message::Walk(Walk {
            origin: former,
            ..first[0]
        }),
        Message::Walk(Walk {
            estimate: 0,
            ..first[0]
        }),
    ] {
        lone.receive(3, stale).unwrap();
        assert!(lone.sent.is_empty(), "{stale:?}");
    }
    assert_eq!(lone.driver.machine().counters().stale, 7);

    lone.receive(9, answer(first[0])).unwrap();
    let third = lone.walks()[0];
    lone.receive(9, answer(third)).unwrap();
    let fourth = lone.walks()[0];
    assert!(lone.notified.is_empty());
    lone.receive(1, answer(fourth)).unwrap();
    // Known were five; 4, 9, 9 and 1 answered.
    let [
        Event::Estimated {
            known,
            samples,
            fresh,
            nodes,
            ..
        },
    ] = lone.notified[..]
    else {
        panic!("{:?}", lone.notified);
    };
    assert_eq!((known, samples, fresh), (5, 4, 1));
    assert!((6..10).contains(&nodes), "{nodes}");
    assert_eq!(lone.driver.deadline(), None);

    // A later answer belongs to no estimate, not even to the next one.
    lone.receive(
        2,
        answer(Walk {
            number: 2,
            ..first[0]
        }),
    )
    .unwrap();
    lone.estimate().unwrap();
    let second = lone.walks();
    assert!(second.iter().all(|walk| walk.estimate == 2));
    lone.receive(2, answer(first[0])).unwrap();
    assert!(lone.walks().is_empty());
    lone.receive(2, answer(second[0])).unwrap();
    assert_eq!(lone.walks().len(), 1);
}

#[test]
fn a_walk_that_does_not_come_back_is_started_again_under_its_number() {
    let config = Config::default().with_at_once(2);
    let mut lone = Lone::new(config, 1..5);
    lone.estimate().unwrap();
    let first = lone.walks();
    lone.wait(Span::millis(600));
    lone.receive(1, answer(first[0])).unwrap();
    assert_eq!(lone.walks().len(), 1);
    // Only the second one is overdue.
    lone.wait(Span::millis(500));
    let again = lone.walks();
    assert_eq!((again.len(), again[0].number), (1, 1));
    assert_eq!(lone.driver.machine().counters().restarted, 1);
    // The late answer counts; the answer of the restarted walk does not any more.
    lone.receive(2, answer(first[1])).unwrap();
    assert_eq!(lone.walks().len(), 1);
    lone.receive(2, answer(again[0])).unwrap();
    assert!(lone.walks().is_empty());
}

#[test]
fn a_walk_ends_by_budget_or_hops_whatever_its_sender_claims() {
    let config = Config::default().with_hop_limit(20);
    let mut lone = Lone::new(config, 1..5);
    // No budget for the shortest stay.
    let poor = Walk {
        budget: 1,
        ..walk_of(7)
    };
    lone.receive(2, Message::Walk(poor)).unwrap();
    assert_eq!(lone.sent.pop(), Some((member(7), answer(poor))));
    // Nor hops left.
    let tired = Walk {
        hops: 0,
        ..walk_of(7)
    };
    lone.receive(2, Message::Walk(tired)).unwrap();
    assert_eq!(lone.sent.pop(), None);
    assert_eq!(lone.driver.machine().counters().capped, 1);
    // A claim is cut to the allowed number.
    let boundless = Walk {
        hops: u16::MAX,
        ..walk_of(7)
    };
    lone.receive(2, Message::Walk(boundless)).unwrap();
    let on = lone.walks()[0];
    assert_eq!(on.hops, 19);
    assert!(on.budget < boundless.budget);
    // No settings give such budgets.
    for budget in [0, (1 << 42) + 1] {
        let limit = 1 << 42;
        assert_eq!(
            lone.receive(
                2,
                Message::Walk(Walk {
                    budget,
                    ..walk_of(7)
                })
            ),
            Err(Misbehaviour::Budget { budget, limit }.into())
        );
    }
    assert_eq!(
        lone.receive(0, Message::Walk(walk_of(7))),
        Err(Misbehaviour::OwnId(member(0)).into())
    );
    // The walk ends at a node that knows no other.
    let mut hermit = Lone::new(Config::default(), 0..0);
    hermit.receive(2, Message::Walk(walk_of(7))).unwrap();
    assert_eq!(hermit.sent, [(member(7), answer(walk_of(7)))]);
}

#[test]
fn an_estimate_without_neighbours_is_refused_and_a_stray_tick_ignored() {
    let mut lone = Lone::new(Config::default(), 0..1);
    assert_eq!(lone.driver.machine().degree(), 0, "oneself is no neighbour");
    assert_eq!(lone.estimate(), Err(Reject::Alone));
    let tick = Timer::Walk(0);
    let before = lone.driver.machine().clone();
    assert_eq!(lone.step(Input::Tick(tick)), Ok(()));
    assert_eq!(*lone.driver.machine(), before);
    assert!(lone.sent.is_empty());
}

#[test]
fn memory_stays_within_the_limits() {
    let config = Config::default()
        .with_neighbour_limit(10)
        .with_sample_limit(200);
    let mut lone = Lone::new(config, 1..1_001);
    assert_eq!(lone.driver.machine().degree(), 10);
    assert_eq!(lone.driver.machine().counters().neighbours_refused, 990);
    lone.estimate().unwrap();
    let mut strangers = 5_000..;
    // Every sample is someone new, so there is never a hit, and no bound.
    // Eight walks at once.
    for _ in 0..200 / 8 {
        for walk in lone.walks() {
            lone.receive(strangers.next().unwrap(), answer(walk))
                .unwrap();
        }
    }
    let none = Failure::Unbounded {
        samples: 200,
        hits: 0,
    };
    assert_eq!(lone.notified, [Event::Failed(none)]);
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let default = Config::default;
    let new = |config| Estimator::new(member(0), config).map(drop);
    for miss in [
        Ratio::NEVER,
        Ratio::ALWAYS,
        Ratio::new(1, 0),
        Ratio::new(9, 1_000_000),
    ] {
        let found = new(default().with_miss(miss));
        assert_eq!(found, Err(ConfigError::Miss(miss)));
    }
    for skew in [Ratio::new(3, 2), Ratio::new(0, 0)] {
        let found = new(default().with_skew(skew));
        assert_eq!(found, Err(ConfigError::Skew(skew)));
    }
    for (config, expected) in [
        (default().with_hits(0), "hits"),
        (default().with_sample_limit(63), "sample_limit"),
        (default().with_length(3), "length"),
        (default().with_hop_limit(15), "hop_limit"),
        (default().with_at_once(65), "at_once"),
        (default().with_timeout(Span::ZERO), "timeout"),
        (default().with_patience(0), "patience"),
        (
            default().with_neighbour_limit((1 << 20) + 1),
            "neighbour_limit",
        ),
    ] {
        match new(config) {
            Err(ConfigError::Range(outside)) => assert_eq!(outside.0.name, expected),
            other => panic!("{expected}: {other:?}"),
        }
    }
}

#[cfg(feature = "serde")]
#[test]
fn messages_are_as_long_as_they_say() {
    let walk = Walk {
        origin: Member::new(u64::MAX, u32::MAX),
        estimate: u32::MAX,
        number: u32::MAX,
        budget: u64::MAX,
        hops: u16::MAX,
    };
    for (message, len) in [
        (Message::Walk(walk), MESSAGE_MAX_LEN),
        (answer(walk), 26),
        (Message::Walk(walk_of(1)), 13),
        (answer(walk_of(1)), 5),
    ] {
        let bytes = postcard::to_allocvec(&message).unwrap();
        assert_eq!(
            (bytes.len(), message.encoded_len()),
            (len, len),
            "{message:?}"
        );
        assert_eq!(postcard::from_bytes::<Message>(&bytes), Ok(message));
    }
}
