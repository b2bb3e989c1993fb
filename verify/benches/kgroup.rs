//! The cost of choosing groups: one among 100 nodes from an empty state, and all of an epoch. The
//! cost of quiet devices, of a run of a routine, and of a change of a map, all nodes together.

#![allow(clippy::expect_used, reason = "a bench of nothing ends")]

use core::hint::black_box;
use std::collections::VecDeque;
use std::sync::Arc;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use selvedge_core::{Delta, Driver, Effect, Input, Member, NodeId, Sha256Sortition, Span, Time};
use selvedge_groups::{
    Chooser, Cluster, GroupId, Locality, Node, Place, Policy, Selection, Start, Target, clusters,
    store::{Expected, Operation, StoreCommand, StoreEvent},
};
use selvedge_kgroup::routines::Definition;
use selvedge_kgroup::{
    Command, Config, Event, Kgroup, LeaderEvent, Outcome, Site, TriggerId, devices,
};
use selvedge_routine::{Routine, Step};

const UNIFORM: Selection = Selection::new().with_policy(Policy::Uniform);
const NEAR: Selection = Selection::new().with_policy(Policy::Near(Locality::for_spacing(1)));

/// A floor of devices, one apart.
fn place(at: usize) -> Place {
    let at = i32::try_from(at).expect("few devices");
    Place([at / 100, at % 100, 0])
}

fn node(at: usize) -> Node {
    Node::new(at as u64, place(at))
}

fn one(bench: &mut Criterion) {
    let nodes: Vec<Node> = (0..100).map(node).collect();
    let mut group = bench.benchmark_group("kgroup/one group among 100 nodes");
    for (name, config) in [("uniform", UNIFORM), ("near", NEAR)] {
        group.bench_function(BenchmarkId::from_parameter(name), |bench| {
            let mut epoch = 0;
            bench.iter(|| {
                epoch += 1;
                let nodes = nodes.iter().copied();
                let chooser = Chooser::new(config, &Sha256Sortition, epoch, nodes);
                let target = Target {
                    id: GroupId(1),
                    place: Some(place(50)),
                    neighbours: &[],
                };
                black_box(chooser.map(|it| it.choose(target)))
            });
        });
    }
}

fn epoch(bench: &mut Criterion) {
    let devices: Vec<(NodeId, Place)> = (0..10_000)
        .map(|at| (NodeId(at as u64), place(at)))
        .collect();
    let all: Vec<Cluster> = clusters(devices, 400);
    let nodes: Vec<Node> = (0..10_000).filter(|at| at % 5 < 2).map(node).collect();
    let mut group = bench.benchmark_group("kgroup/an epoch of 10,000 devices and 4,000 nodes");
    group.sample_size(10);
    for (name, config) in [("uniform", UNIFORM), ("near", NEAR)] {
        group.bench_function(BenchmarkId::from_parameter(name), |bench| {
            let mut epoch = 0;
            bench.iter(|| {
                epoch += 1;
                let nodes = nodes.iter().copied();
                let chooser = Chooser::new(config, &Sha256Sortition, epoch, nodes).expect("sound");
                for (id, cluster) in (0..).map(GroupId).zip(&all) {
                    let devices = cluster.devices.iter();
                    let devices = devices.map(|it| (*it, place(it.0 as usize)));
                    let centre = chooser.representative(id, devices);
                    let target = Target {
                        id,
                        place: centre.map(|it| it.1),
                        neighbours: &[],
                    };
                    black_box(chooser.choose(target).is_ok());
                }
            });
        });
    }
}

/// Nodes without faults, on a network that takes no time. Devices carry out every command.
struct Building {
    nodes: Vec<Driver<Kgroup>>,
    rng: ChaCha8Rng,
    now: Time,
    inputs: VecDeque<(usize, Input<Kgroup>)>,
    asked: u64,
    /// Finished requests: map entries changed, runs begun.
    done: u64,
}

const DEVICES: u64 = 40;

impl Building {
    fn new(nodes: u64) -> Self {
        let smart = (0..nodes).map(|at| Node::new(at, place(at as usize)));
        let device = |at: u64| NodeId(100_000 + at);
        let simple = (0..DEVICES).map(|at| (device(at), place(at as usize)));
        let site = Site::new(Selection::new().with_failures(1), smart, simple, 4);
        let steps = [1, 2].map(|at| Step::new(device(at), "on".into())).into();
        let site = site.and_then(|it| it.with_routine(Definition::new(Routine { steps })));
        let site = Arc::new(site.expect("sound"));
        let node = |id| {
            let me = Member::new(id, 0);
            let node = Kgroup::new(me, Config::new(), Arc::clone(&site), Start::Fresh);
            Driver::new(node.expect("sound"))
        };
        let mut building = Self {
            nodes: (0..nodes).map(node).collect(),
            rng: ChaCha8Rng::seed_from_u64(1),
            now: Time::ZERO,
            inputs: VecDeque::new(),
            asked: 0,
            done: 0,
        };
        for at in 0..building.nodes.len() {
            building.input(at, Input::Command(Command::SetEpoch(1)));
            for id in (0..nodes).filter(|id| *id != at as u64) {
                let delta = Delta::Joined(Member::new(id, 0));
                building.input(at, Input::Membership(delta));
            }
        }
        building.run(Span::secs(20));
        building
    }

    fn input(&mut self, at: usize, input: Input<Kgroup>) {
        self.inputs.push_back((at, input));
        self.settle();
    }

    fn take(
        &mut self,
        at: usize,
        call: impl FnOnce(&mut Driver<Kgroup>, Time, &mut ChaCha8Rng, &mut dyn FnMut(Effect<Kgroup>)),
    ) {
        let Self {
            nodes,
            rng,
            now,
            inputs,
            done,
            ..
        } = self;
        let Some(node) = nodes.get_mut(at) else {
            return;
        };
        let from = node.machine().me();
        call(node, *now, rng, &mut |effect| match effect {
            Effect::Send { to, message } => {
                inputs.push_back((to.id.0 as usize, Input::Message { from, message }));
            }
            Effect::Event(Event::Leader {
                event: LeaderEvent::Devices(event),
                ..
            }) => {
                let command = match event {
                    devices::Event::Ping { device } => {
                        let value = Some("on".into());
                        Command::Reported { device, value }
                    }
                    devices::Event::Act { ticket, .. } => {
                        let outcome = Outcome::Done;
                        Command::Acted { ticket, outcome }
                    }
                    _ => return,
                };
                inputs.push_back((at, Input::Command(command)));
            }
            Effect::Event(
                Event::Triggered { .. }
                | Event::Map {
                    event: StoreEvent::Changed { .. },
                    ..
                },
            ) => *done += 1,
            Effect::Multicast { .. } | Effect::Event(_) => {}
        });
    }

    fn settle(&mut self) {
        while let Some((at, input)) = self.inputs.pop_front() {
            self.take(at, |node, now, rng, out| {
                node.step(now, rng, input, out)
                    .expect("a correct node takes it");
            });
        }
    }

    fn run(&mut self, span: Span) {
        let until = self.now + span;
        loop {
            let due = self.nodes.iter().enumerate();
            let due = due.filter_map(|(at, it)| Some((it.deadline()?, at))).min();
            let Some((when, at)) = due.filter(|it| it.0 <= until) else {
                self.now = until;
                return;
            };
            self.now = self.now.max(when);
            self.take(at, |node, now, rng, out| {
                node.expire(now, rng, out);
            });
            self.settle();
        }
    }

    fn change(&mut self) {
        self.asked += 1;
        let operation = Operation::set("door", Expected::Any, Some([1].into_iter().collect()));
        let ticket = self.asked;
        let command = StoreCommand::Change { ticket, operation };
        let map = GroupId::map("doors", &Sha256Sortition);
        self.input(0, Input::Command(Command::Map { map, command }));
    }

    fn trigger(&mut self) {
        self.asked += 1;
        let id = TriggerId(self.asked);
        let routine = Site::routine(0);
        self.input(0, Input::Command(Command::Trigger { routine, id }));
    }
}

fn work(bench: &mut Criterion) {
    type Ask = fn(&mut Building);
    let period = devices::Config::new().ping;
    for (name, ask) in [
        (
            "40 quiet devices",
            (|it| it.run(devices::Config::new().ping)) as Ask,
        ),
        ("a run of two steps", Building::trigger),
        ("a change of a map", Building::change),
    ] {
        let mut group = bench.benchmark_group(format!("kgroup/{name}"));
        for nodes in [5, 25, 100] {
            group.bench_function(BenchmarkId::new("nodes", nodes), |bench| {
                let mut building = Building::new(nodes);
                building.change(); // The map begins.
                building.run(Span::secs(20));
                bench.iter(|| ask(&mut building));
                building.run(period);
                assert_eq!(building.done, building.asked, "{name}, {nodes} nodes");
            });
        }
    }
}

criterion_group!(benches, one, epoch, work);
criterion_main!(benches);
