//! The cost of storing a step of a hub: the step alone, with its difference, and as a fact behind a
//! barrier. A step submits a routine of three commands or reports an outcome.

#![allow(clippy::expect_used, reason = "a bench of nothing ends")]

use std::collections::VecDeque;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use selvedge_core::durable::Barrier;
use selvedge_core::{Driver, Effect, Input, NodeId, Time};
use selvedge_safehome::{
    Command, Config, DurableEvent, DurableHub, Event, Hub, Outcome, Routine, Saved, Step,
};

/// Devices, and routines that are submitted before the first outcome is reported.
const SIZES: [(u64, u64); 3] = [(10, 3), (50, 20), (200, 60)];
const STEPS: u64 = 2_000;

/// The commands in flight.
type Sent = VecDeque<(NodeId, u64)>;

/// The application's side: devices first, then routines and outcomes in turn.
fn feed(devices: u64, open: u64, mut step: impl FnMut(Command<u8>, &mut Sent)) {
    let mut sent = Sent::new();
    for device in (0..devices).map(NodeId) {
        let state = Some(0);
        step(Command::AddDevice { device, state }, &mut sent);
    }
    let mut routines: u64 = 0;
    for nth in 0..STEPS {
        let oldest = if nth < open || nth % 4 == 0 {
            None
        } else {
            sent.pop_front()
        };
        let command = if let Some((device, token)) = oldest {
            let outcome = Outcome::Done;
            Command::Acted {
                device,
                token,
                outcome,
            }
        } else {
            routines += 1;
            let device = |nth: u64| NodeId((routines * 7 + nth * 3) % devices);
            let value = u8::from(nth % 2 == 0);
            let steps = (0..3).map(|nth| Step::new(device(nth), value)).collect();
            Command::Submit(Routine { steps })
        };
        step(command, &mut sent);
    }
}

fn receive(event: &Event<u8>, sent: &mut Sent) {
    if let Event::Issue { device, token, .. } = event {
        sent.push_back((*device, *token));
    }
}

fn hub() -> Hub<u8> {
    let config = Config::default();
    Hub::new(config).expect("sound settings")
}

/// Runs steps, and after each the host's work with the hub.
fn plain(devices: u64, open: u64, mut after: impl FnMut(&Hub<u8>)) {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut driver = Driver::new(hub());
    feed(devices, open, |command, sent| {
        let input = Input::Command(command);
        let taken = driver.step(Time::ZERO, &mut rng, input, |effect| {
            let Effect::Event(event) = effect;
            receive(&event, sent);
        });
        assert!(taken.is_ok());
        after(driver.machine());
    });
}

/// Bytes of all facts.
fn durable(devices: u64, open: u64) -> usize {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut driver = Driver::new(DurableHub::new(hub()));
    let mut barrier = Barrier::new(0);
    let mut bytes = 0;
    feed(devices, open, |command, sent| {
        let mut carry_out = |effect| {
            if let Effect::Event(DurableEvent::Hub(event)) = effect {
                receive(&event, sent);
            }
        };
        let input = Input::Command(command);
        let taken = driver.step(Time::ZERO, &mut rng, input, |effect| {
            barrier.take(effect, &mut carry_out);
        });
        assert!(taken.is_ok());
        let mark = barrier.write_facts(|fact| {
            bytes += postcard::to_allocvec(fact).map_or(0, |it| it.len());
        });
        if let Some(mark) = mark {
            barrier.stored(mark, &mut carry_out);
        }
    });
    bytes
}

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("storing");
    for (devices, open) in SIZES {
        let steps = STEPS + devices;
        let bytes = durable(devices, open) as u64;
        println!("{devices} devices: {} bytes a step", bytes / steps);
        group.throughput(Throughput::Elements(steps));
        let id = |what| BenchmarkId::new(what, devices);
        group.bench_function(id("nothing"), |bencher| {
            bencher.iter(|| plain(devices, open, |_| ()));
        });
        group.bench_function(id("difference"), |bencher| {
            bencher.iter(|| {
                let mut last: Saved<u8> = hub().save();
                plain(devices, open, |hub| {
                    let difference = hub.difference(&mut last);
                    drop(postcard::to_allocvec(&difference));
                });
            });
        });
        group.bench_function(id("fact"), |bencher| {
            bencher.iter(|| durable(devices, open));
        });
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
