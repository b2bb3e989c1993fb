//! The cost of an update at all members together, codec excluded: the leader proposes it, and it is
//! applied at the leader. The notice of its commit is part of the next one.

#![allow(clippy::expect_used, reason = "a bench of nothing ends")]

use core::hint::black_box;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use selvedge_core::{Driver, Effect, Input, Member, Time};
use selvedge_replica::{Command, Config, Configuration, Event, Message, Replica, State};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Sum(u64);

impl State for Sum {
    type Update = u64;
    type Outcome = u64;

    fn apply(&mut self, add: &u64) -> u64 {
        self.0 = self.0.wrapping_add(*add);
        self.0
    }
}

struct Group {
    members: Vec<Driver<Replica<Sum>>>,
    rng: ChaCha8Rng,
    /// Receiver, sender and message.
    wire: Vec<(usize, Member, Message<u64>)>,
    applied: u64,
}

fn member(node: u64) -> Member {
    Member::new(node, 0)
}

impl Group {
    /// The first member leads.
    fn new(members: u64) -> Self {
        let first = Configuration::of((0..members).map(member));
        let make = |node| {
            let machine = Replica::new(member(node), Config::new(), first.clone(), Sum(0));
            Driver::new(machine.expect("sound settings"))
        };
        let mut group = Self {
            members: (0..members).map(make).collect(),
            rng: ChaCha8Rng::seed_from_u64(members),
            wire: Vec::with_capacity(64),
            applied: 0,
        };
        group.run(Input::Command(Command::Campaign));
        group
    }

    /// Passes an input to the leader, and delivers all messages that follow from it.
    fn run(&mut self, input: Input<Replica<Sum>>) {
        self.step(0, input);
        while let Some((to, from, message)) = self.wire.pop() {
            self.step(to, Input::Message { from, message });
        }
    }

    fn step(&mut self, at: usize, input: Input<Replica<Sum>>) {
        let (wire, applied) = (&mut self.wire, &mut self.applied);
        let driver = self.members.get_mut(at).expect("a member");
        let me = driver.machine().me();
        let taken = driver.step(Time::ZERO, &mut self.rng, input, |effect| match effect {
            Effect::Send { to, message } => {
                let to = usize::try_from(to.id.0).expect("few members");
                wire.push((to, me, message));
            }
            Effect::Event(Event::Applied { outcome, .. }) => {
                black_box(outcome);
                *applied += 1;
            }
            Effect::Multicast { .. } | Effect::Event(_) => {}
        });
        assert!(taken.is_ok());
    }
}

fn updates(criterion: &mut Criterion) {
    let mut benches = criterion.benchmark_group("an update, all members together");
    for members in [3, 5] {
        let mut group = Group::new(members);
        let mut proposed = 0;
        benches.bench_function(BenchmarkId::from_parameter(members), |bencher| {
            bencher.iter(|| {
                proposed += 1;
                group.run(Input::Command(Command::Propose(proposed)));
            });
        });
        // The last one is known to the leader alone.
        let known = (proposed * members).saturating_sub(members - 1);
        assert_eq!(group.applied, known);
    }
    benches.finish();
}

/// As many as the default settings have in flight in one frame.
const TOGETHER: u64 = 64;

fn updates_together(criterion: &mut Criterion) {
    let mut benches = criterion.benchmark_group("64 updates proposed together, all members");
    for members in [3, 5] {
        let mut group = Group::new(members);
        let mut proposed = 0;
        benches.throughput(Throughput::Elements(TOGETHER));
        benches.bench_function(BenchmarkId::from_parameter(members), |bencher| {
            bencher.iter(|| {
                let updates = (proposed..proposed + TOGETHER).collect();
                proposed += TOGETHER;
                group.run(Input::Command(Command::ProposeAll(updates)));
            });
        });
        let known = (proposed * members).saturating_sub((members - 1) * TOGETHER);
        assert_eq!(group.applied, known);
    }
    benches.finish();
}

criterion_group!(benches, updates, updates_together);
criterion_main!(benches);
