//! The cost of handling a message, and of running an election, at 64, 512 and 4,096 members.

#![allow(clippy::expect_used, reason = "a bench of nothing ends")]

extern crate alloc;

use alloc::sync::Arc;
use core::hint::black_box;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use selvedge_celect::{
    Ballot, Celect, Command, Config, LeaderState, Lowest, Members, Message, Protocol,
};
use selvedge_core::{Delta, Driver, Effect, Input, Member, Sha256Sortition, Sortition, Span, Time};

const SIZES: [u64; 3] = [64, 512, 4_096];

type Node = Driver<Celect>;

/// Node 0 of a mesh of `members` nodes. It tolerates c = 8 and f = 2 and suspected every seventh
/// node.
fn node(members: u64, protocol: Protocol) -> (Node, ChaCha8Rng) {
    let mut rng = ChaCha8Rng::seed_from_u64(members);
    let config = Config::new(8, 2).with_protocol(protocol);
    let by_hash = Lowest::new(Sha256Sortition, b"");
    let machine = Celect::new(Member::new(0, 0), config, by_hash).expect("sound settings");
    let mut driver = Driver::new(machine);
    for id in 1..members {
        let member = Member::new(id, 0);
        let joined = Input::Membership(Delta::Joined(member));
        let mut notified = driver.step(Time::ZERO, &mut rng, joined, drop).is_ok();
        if id % 7 == 0 {
            let suspected = Input::Membership(Delta::Suspected(member));
            notified &= driver.step(Time::ZERO, &mut rng, suspected, drop).is_ok();
        }
        assert!(notified);
    }
    (driver, rng)
}

fn step(driver: &mut Node, rng: &mut ChaCha8Rng, input: Input<Celect>) {
    let taken = driver.step(Time::ZERO, rng, input, |effect| {
        if let Effect::Send { to, message } = &effect {
            black_box((to, message));
        }
    });
    assert!(taken.is_ok());
}

/// Begins an election and returns the members asked, and the ballot.
fn elect(driver: &mut Node, rng: &mut ChaCha8Rng) -> (Vec<Member>, Ballot) {
    let (mut asked, mut by) = (Vec::with_capacity(16), None);
    let elect = Input::Command(Command::Elect);
    let begun = driver.step(Time::ZERO, rng, elect, |effect| {
        if let Effect::Send {
            to,
            message: Message::Query { ballot, .. },
        } = effect
        {
            asked.push(to);
            by = Some(ballot);
        }
    });
    assert!(begun.is_ok());
    (asked, by.expect("somebody is asked"))
}

fn response(ballot: Ballot, candidates: &Members) -> Message {
    Message::Response {
        ballot,
        candidates: candidates.clone(),
        unhealthy: Members::new(),
        known: Members::new(),
    }
}

/// The lowest `count` of the other nodes.
fn lowest(members: u64, count: usize) -> Members {
    let mut all: Vec<Member> = (1..members).map(|id| Member::new(id, 0)).collect();
    all.sort_by_key(|it| Sha256Sortition.rank(b"", it.id));
    all.into_iter().take(count).collect()
}

fn queries(criterion: &mut Criterion) {
    for (name, x, y) in [("a QUERY, x = 1", 1, 0), ("a QUERY, x = 5 and y = 5", 5, 5)] {
        let mut group = criterion.benchmark_group(name);
        for members in SIZES {
            let (mut driver, mut rng) = node(members, Protocol::Base);
            let from = Member::new(members / 2, 0);
            let mut epoch = 0;
            group.bench_function(BenchmarkId::from_parameter(members), |bencher| {
                bencher.iter(|| {
                    epoch += 1;
                    let message = Message::Query {
                        ballot: Ballot {
                            epoch,
                            initiator: from,
                            step: 0,
                        },
                        lowest: x,
                        suspected: y,
                        want: 0,
                        no_majority: false,
                        exclude: Members::new(),
                    };
                    step(&mut driver, &mut rng, Input::Message { from, message });
                });
            });
        }
        group.finish();
    }
}

fn responses(criterion: &mut Criterion) {
    for (protocol, x) in [(Protocol::Base, 1), (Protocol::Hybrid, 5)] {
        let mut group = criterion.benchmark_group(format!("a RESPONSE, {protocol:?}"));
        for members in SIZES {
            let candidates = lowest(members, x);
            let (mut driver, mut rng) = node(members, protocol);
            let (asked, ballot) = elect(&mut driver, &mut rng);
            let from = *asked.first().expect("somebody is asked");
            // The same message repeatedly: it is absorbed each time, and counted once.
            group.bench_function(BenchmarkId::from_parameter(members), |bencher| {
                bencher.iter(|| {
                    let message = response(ballot, &candidates);
                    step(&mut driver, &mut rng, Input::Message { from, message });
                });
            });
        }
        group.finish();
    }
}

fn elections(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("an election, at its initiator");
    for members in SIZES {
        let candidates = lowest(members, 1);
        let leader = *candidates.first().expect("there are others");
        let notified: Vec<Member> = (0..members).map(|id| Member::new(id, 0)).collect();
        let notified: Arc<[Member]> = notified.into();
        let (driver, _) = node(members, Protocol::Base);
        group.bench_function(BenchmarkId::from_parameter(members), |bencher| {
            let mut rng = ChaCha8Rng::seed_from_u64(1);
            bencher.iter_batched_ref(
                || Driver::new(driver.machine().clone()),
                |driver| {
                    let (asked, mut ballot) = elect(driver, &mut rng);
                    for from in asked {
                        let message = response(ballot, &candidates);
                        step(driver, &mut rng, Input::Message { from, message });
                    }
                    ballot.step += 1;
                    let message = Message::Leader {
                        ballot,
                        leader,
                        renewal: 0,
                        lease: Span::ZERO,
                        state: LeaderState::Leading,
                        covered: Arc::clone(&notified),
                    };
                    let from = leader;
                    step(driver, &mut rng, Input::Message { from, message });
                    assert!(!driver.machine().is_electing());
                },
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, queries, responses, elections);
criterion_main!(benches);
