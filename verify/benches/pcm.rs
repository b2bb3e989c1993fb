//! The computations of PCM's gateways: units of up to a million followers, formed first and again;
//! a follower that joins and leaves; a task at the gateway that is the resource manager, including
//! frames.

#![allow(clippy::expect_used, reason = "a bench of nothing ends")]
#![allow(clippy::disallowed_methods, reason = "a bench reads the clock")]

use core::hint::black_box;
use core::time::Duration;
use std::collections::{BTreeSet, VecDeque};
use std::time::Instant;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use selvedge_core::wire::{Envelope, HEADER_LEN, VERSION};
use selvedge_core::{Driver, Effect, Input, Member, NodeId, Span, Time};
use selvedge_pcm::gateway::{Command, Config, Gateway};
use selvedge_pcm::{
    Answer, Attachment, DutyCycle, Function, KIND, Libraries, Limits, Message, Tables, Update,
};
use selvedge_replica::{Configuration, Replica, State as _};

/// The followers' ids begin here. The gateways have those from 1 on.
const FOLLOWERS: u64 = 1_000;

/// A hash of the number, so that neighbours differ.
const fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

fn attachment(nth: u64, number: u32, gateway: NodeId) -> Attachment {
    Attachment {
        member: Member::new(FOLLOWERS + nth, 0),
        number,
        gateway,
        duty: duty(nth, number),
        libraries: Libraries::new(),
    }
}

/// A duty cycle that differs for each follower, and each time.
fn duty(nth: u64, number: u32) -> DutyCycle {
    DutyCycle {
        active_ms: 100 + (mixed(nth << 32 | u64::from(number)) % 10_000) as u32,
        busy_ms: 0,
        asleep_ms: 60_000,
    }
}

/// This number of followers, in no units yet.
fn unformed(followers: u64) -> Tables {
    let mut tables = Tables::new(Limits::new().with_followers(1 << 21));
    for nth in 0..followers {
        tables.apply(&Update::Attach(attachment(nth, 1, NodeId(1))));
    }
    tables
}

fn formed(followers: u64) -> Tables {
    let mut tables = unformed(followers);
    tables.apply(&Update::Cluster { after: 0 });
    tables
}

const SIZES: [u64; 5] = [1_000, 10_000, 100_000, 250_000, 1_000_000];

fn forming(bench: &mut Criterion) {
    let mut group = bench.benchmark_group("pcm/units formed first");
    group.sample_size(10);
    for followers in SIZES {
        let tables = unformed(followers);
        group.bench_function(BenchmarkId::from_parameter(followers), |bench| {
            bench.iter_batched_ref(
                || tables.clone(),
                |tables| black_box(tables.apply(&Update::Cluster { after: 0 })),
                BatchSize::PerIteration,
            );
        });
    }
}

/// Forms units again; before each run, one in `one_of` followers gets another duty cycle.
fn forming_anew(bench: &mut Criterion, name: &str, one_of: Option<u64>) {
    let mut group = bench.benchmark_group(name);
    group.sample_size(10);
    for followers in SIZES {
        let mut tables = formed(followers);
        let mut number = 1;
        group.bench_function(BenchmarkId::from_parameter(followers), |bench| {
            bench.iter_custom(|iterations| {
                let mut took = Duration::ZERO;
                for _ in 0..iterations {
                    number += 1;
                    let changed = one_of.map_or(0, |one_of| followers / one_of);
                    for draw in 0..changed {
                        let nth = mixed(u64::from(number) << 32 | draw) % followers;
                        tables.apply(&Update::Attach(attachment(nth, number, NodeId(1))));
                    }
                    let after = tables.clustered();
                    let start = Instant::now();
                    black_box(tables.apply(&Update::Cluster { after }));
                    took += start.elapsed();
                }
                took
            });
        });
    }
}

fn forming_others(bench: &mut Criterion) {
    forming_anew(bench, "pcm/units formed anew, nothing changed", None);
    forming_anew(
        bench,
        "pcm/units formed anew, 1 in 1,000 changed",
        Some(1_000),
    );
    forming_anew(bench, "pcm/units formed anew, 1 in 10 changed", Some(10));
}

fn joining(bench: &mut Criterion) {
    let mut group = bench.benchmark_group("pcm/a follower leaves and joins, in the tables");
    for followers in SIZES {
        let mut tables = formed(followers);
        let (mut draw, mut number) = (0, 1);
        group.bench_function(BenchmarkId::from_parameter(followers), |bench| {
            bench.iter(|| {
                draw += 1;
                number += 1;
                let nth = mixed(draw) % followers;
                let member = Member::new(FOLLOWERS + nth, 0);
                let known = tables.follower(member.id).expect("it is there").clone();
                black_box(tables.apply(&Update::Purge(known)));
                let joins = attachment(nth, number, NodeId(1));
                black_box(tables.apply(&Update::Attach(joins)));
            });
        });
    }
}

fn encode(from: Member, message: Message) -> Vec<u8> {
    let mut frame = Vec::with_capacity(256);
    frame.extend([VERSION, KIND]);
    let envelope = Envelope { from, message };
    postcard::to_extend(&envelope, frame).expect("memory grows")
}

fn decode(frame: &[u8]) -> Envelope<Message> {
    let envelope = frame.get(HEADER_LEN..).expect("a header");
    postcard::from_bytes(envelope).expect("a frame")
}

/// Three gateways on a network that takes no time. All followers, and the client, are at the first
/// one, which is the resource manager: the most that one gateway does.
struct Gateways {
    nodes: Vec<Driver<Gateway>>,
    rng: ChaCha8Rng,
    now: Time,
    wire: VecDeque<(Member, Vec<u8>)>,
    /// Frames to followers and clients.
    others: Vec<Vec<u8>>,
    /// The time that the first gateway took, with reading and writing frames.
    took: Duration,
}

impl Gateways {
    fn new(followers: u64) -> Self {
        let members = (1..=3).map(|id| Member::new(id, 0));
        let first = Configuration::of(members.clone());
        // Time alone causes nothing; only updates do.
        let rarely = Span::secs(1_000_000);
        let config = Config::new()
            .with_heartbeat(Span::ZERO)
            .with_review(rarely)
            .with_purge_after(u16::MAX)
            .with_offload_after(u16::MAX);
        let node = |me| {
            let replica = Replica::new(me, config.replica, first.clone(), formed(followers));
            let stored = replica.expect("sound").stored();
            let gateway = Gateway::restore(me, config, stored, []).expect("sound");
            Driver::new(gateway)
        };
        let mut gateways = Self {
            nodes: members.map(node).collect(),
            rng: ChaCha8Rng::seed_from_u64(1),
            now: Time::ZERO,
            wire: VecDeque::new(),
            others: Vec::new(),
            took: Duration::ZERO,
        };
        for at in 0..3 {
            gateways.input(at, Input::Command(Command::Start));
        }
        // The first proposer is elected.
        let to = NodeId(2);
        gateways.input(0, Input::Command(Command::SetHops { to, hops: 2 }));
        gateways.wait();
        assert!(
            gateways
                .nodes
                .first()
                .is_some_and(|it| it.machine().manages())
        );
        gateways
    }

    fn call(&mut self, at: usize, call: impl FnOnce(&mut Driver<Gateway>, &mut Out<'_>)) {
        let node = self.nodes.get_mut(at).expect("one of three");
        let out = &mut Out {
            from: node.machine().me(),
            now: self.now,
            rng: &mut self.rng,
            wire: &mut self.wire,
            others: &mut self.others,
        };
        let start = Instant::now();
        call(node, out);
        if at == 0 {
            self.took += start.elapsed();
        }
    }

    fn input(&mut self, at: usize, input: Input<Gateway>) {
        self.call(at, |node, out| out.step(node, input));
    }

    fn frame(&mut self, at: usize, frame: &[u8]) {
        self.call(at, |node, out| {
            let Envelope { from, message } = decode(frame);
            out.step(node, Input::Message { from, message });
        });
    }

    fn expire(&mut self, at: usize) {
        self.call(at, |node, out| {
            let (now, from) = (out.now, out.from);
            let (rng, wire, others) = (&mut *out.rng, &mut *out.wire, &mut *out.others);
            node.expire(now, rng, |it| carry_out(from, it, wire, others));
        });
    }

    fn settle(&mut self) {
        while let Some((to, frame)) = self.wire.pop_front() {
            self.frame(to.id.0 as usize - 1, &frame);
        }
    }

    /// Lets time pass until decisions are sent.
    fn wait(&mut self) {
        self.settle();
        for _ in 0..2 {
            self.now = self.now + Span::millis(60);
            for at in 0..3 {
                self.expire(at);
            }
            self.settle();
        }
    }

    /// Delivers a frame to the first gateway, and then all messages that follow from it.
    fn receive(&mut self, from: Member, message: Message) {
        let frame = encode(from, message);
        self.frame(0, &frame);
        self.wait();
    }

    /// The unit runs a task, which is answered.
    fn task(&mut self, number: u64) {
        let client = Member::new(500, 0);
        let mut code = *b"light.average(0000000000)";
        for (at, digit) in code.iter_mut().rev().skip(1).take(10).enumerate() {
            *digit = b'0' + (number / 10_u64.pow(at as u32) % 10) as u8;
        }
        let function = Function::new(&code);
        self.receive(client, Message::Submit { number, function });
        let runs: Vec<Message> = self
            .others
            .drain(..)
            .map(|it| decode(&it).message)
            .collect();
        let Some(Message::Run(run)) = runs.first() else {
            panic!("no followers run it: {runs:?}");
        };
        assert_eq!(runs.len(), 5);
        let orchestrator = *run.electors.first().expect("a unit");
        let voters: BTreeSet<NodeId> = run.electors.iter().map(|it| it.id).collect();
        let verdict = Message::Verdict {
            task: run.task,
            attempt: run.attempt,
            term: run.term,
            answer: Answer::Value(b"21.5".iter().copied().collect()),
            voters: voters.into_iter().collect(),
        };
        self.receive(orchestrator, verdict);
        // Five followers receive the end of the task, and the client its result.
        assert_eq!(self.others.drain(..).count(), 6);
    }
}

/// The inputs and outputs of a gateway's step.
struct Out<'a> {
    from: Member,
    now: Time,
    rng: &'a mut ChaCha8Rng,
    wire: &'a mut VecDeque<(Member, Vec<u8>)>,
    others: &'a mut Vec<Vec<u8>>,
}

impl Out<'_> {
    fn step(&mut self, node: &mut Driver<Gateway>, input: Input<Gateway>) {
        let (from, now) = (self.from, self.now);
        let (wire, others) = (&mut *self.wire, &mut *self.others);
        let taken = node.step(now, self.rng, input, |it| carry_out(from, it, wire, others));
        taken.expect("nothing is refused");
    }
}

fn carry_out(
    from: Member,
    effect: Effect<Gateway>,
    wire: &mut VecDeque<(Member, Vec<u8>)>,
    others: &mut Vec<Vec<u8>>,
) {
    if let Effect::Send { to, message } = effect {
        let frame = encode(from, message);
        match to.id.0 <= 3 {
            true => wire.push_back((to, frame)),
            false => others.push(frame),
        }
    } else {
        black_box(effect);
    }
}

const AT_A_GATEWAY: [u64; 3] = [10, 10_000, 100_000];

fn tasks(bench: &mut Criterion) {
    let mut group = bench.benchmark_group("pcm/a task at the resource manager, of 3 gateways");
    for followers in AT_A_GATEWAY {
        let mut gateways = Gateways::new(followers);
        let mut number = 0;
        // As many as are remembered.
        for _ in 0..1_100 {
            number += 1;
            gateways.task(number);
        }
        group.bench_function(BenchmarkId::from_parameter(followers), |bench| {
            bench.iter_custom(|iterations| {
                gateways.took = Duration::ZERO;
                for _ in 0..iterations {
                    number += 1;
                    gateways.task(number);
                }
                gateways.took
            });
        });
    }
}

fn keep_alive(nth: u64, number: u32) -> Message {
    Message::KeepAlive {
        number,
        duty: duty(nth, number),
        libraries: Libraries::new(),
    }
}

fn attaching(bench: &mut Criterion) {
    let mut group = bench.benchmark_group("pcm/a follower attaches at the resource manager");
    for followers in AT_A_GATEWAY {
        let mut gateways = Gateways::new(followers);
        let mut number = 1;
        group.bench_function(BenchmarkId::from_parameter(followers), |bench| {
            bench.iter_custom(|iterations| {
                gateways.took = Duration::ZERO;
                for _ in 0..iterations {
                    number += 1;
                    let nth = mixed(u64::from(number)) % followers;
                    let member = Member::new(FOLLOWERS + nth, 0);
                    gateways.receive(member, keep_alive(nth, number));
                }
                gateways.took
            });
        });
    }
}

fn keeping_alive(bench: &mut Criterion) {
    let mut group = bench.benchmark_group("pcm/a keep-alive that says nothing new");
    for followers in AT_A_GATEWAY {
        let mut gateways = Gateways::new(followers);
        let mut draw = 0;
        group.bench_function(BenchmarkId::from_parameter(followers), |bench| {
            bench.iter_custom(|iterations| {
                gateways.took = Duration::ZERO;
                for _ in 0..iterations {
                    draw += 1;
                    let nth = mixed(draw) % followers;
                    let frame = encode(Member::new(FOLLOWERS + nth, 0), keep_alive(nth, 1));
                    gateways.frame(0, &frame);
                }
                gateways.took
            });
        });
    }
}

criterion_group!(
    benches,
    forming,
    forming_others,
    joining,
    tasks,
    attaching,
    keeping_alive
);
criterion_main!(benches);
