//! The cost of submitting a routine of 10 commands, each to another device and up to 10 minutes
//! long, under `Eventual` visibility with each scheduler: in the paper's home (15 devices, 30
//! routines; figure 15d), and in larger ones. The live routines have 1 to 10 such commands and
//! arrived at one moment, so that most of them wait for devices.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    reason = "a bench reads clocks, and one of nothing ends"
)]

use core::hint::black_box;
use core::time::Duration;
use std::time::Instant;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use selvedge_core::{Choose, Driver, Effect, Input, NodeId, Span, Time};
use selvedge_safehome::{Command, Config, Event, Hub, Outcome, Routine, Scheduler, Step};

/// Devices, and live routines.
const SIZES: [(u64, u64); 6] = [
    (15, 30),
    (100, 100),
    (1_000, 1_000),
    (50, 1_000),
    (1_000, 4_000),
    (50, 4_000),
];
/// The number of different routines that are placed in turn.
const DRAWN: usize = 64;
const SHORT: Duration = Duration::from_millis(500);

/// A routine of `commands` commands, each to another device and of a random length.
fn routine(commands: u64, devices: u64, rng: &mut ChaCha8Rng) -> Routine<u8> {
    let mut all: Vec<u64> = (0..devices).collect();
    let steps = (0..commands).map(|_| {
        let at = usize::try_from(rng.below(all.len() as u64)).unwrap_or_default();
        Step {
            hold: Span::secs(rng.below(600)),
            ..Step::new(NodeId(all.swap_remove(at)), 1)
        }
    });
    Routine {
        steps: steps.collect(),
    }
}

/// A hub with `routines` routines of 1 to 10 commands that run or wait.
fn hub(devices: u64, routines: u64, scheduler: Scheduler, rng: &mut ChaCha8Rng) -> Driver<Hub<u8>> {
    let config = Config::default()
        .with_scheduler(scheduler)
        .with_routine_limit(5_000);
    let mut driver = Driver::new(Hub::new(config).expect("sound settings"));
    for device in (0..devices).map(NodeId) {
        let state = Some(0);
        step(&mut driver, rng, Command::AddDevice { device, state });
    }
    for _ in 0..routines {
        let commands = 1 + rng.below(10);
        let routine = routine(commands, devices, rng);
        step(&mut driver, rng, Command::Submit(routine));
    }
    driver
}

const fn done(device: NodeId, token: u64) -> Command<u8> {
    let outcome = Outcome::Done;
    Command::Acted {
        device,
        token,
        outcome,
    }
}

/// A step; each command that is issued is done at once.
fn step(driver: &mut Driver<Hub<u8>>, rng: &mut ChaCha8Rng, command: Command<u8>) {
    let mut commands = vec![command];
    while let Some(command) = commands.pop() {
        let input = Input::Command(command);
        let taken = driver.step(Time::ZERO, rng, input, |effect| {
            if let Effect::Event(Event::Issue { device, token, .. }) = effect {
                commands.push(done(device, token));
            }
        });
        assert!(taken.is_ok());
    }
}

/// The time to submit `more` routines to hubs that have grown to a size. A clone would be no
/// substitute: its lists have no spare capacity.
fn time(
    many: u64,
    size: u64,
    grown: impl Fn() -> (Driver<Hub<u8>>, ChaCha8Rng),
    routines: &mut impl Iterator<Item = Routine<u8>>,
) -> Duration {
    let (mut driver, mut rng) = grown();
    let (mut more, mut took) = (0, Duration::ZERO);
    for routine in routines.take(usize::try_from(many).unwrap_or(usize::MAX)) {
        // It grows by a sixteenth at most.
        if more > size / 16 {
            (driver, rng) = grown();
            more = 0;
        }
        more += 1;
        let input = Input::Command(Command::Submit(routine));
        let mut issued = Vec::new();
        let start = Instant::now();
        let taken = driver.step(Time::ZERO, &mut rng, input, |effect| match effect {
            Effect::Event(Event::Issue { device, token, .. }) => issued.push((device, token)),
            other => drop(black_box(other)),
        });
        took += start.elapsed();
        assert!(taken.is_ok());
        for (device, token) in issued {
            step(&mut driver, &mut rng, done(device, token));
        }
    }
    took
}

fn bench(criterion: &mut Criterion) {
    for scheduler in [
        Scheduler::Timeline,
        Scheduler::JustInTime,
        Scheduler::FirstCome,
    ] {
        let mut group = criterion.benchmark_group(format!("{scheduler:?}"));
        // Growing a hub takes longer than the measured part.
        group
            .sample_size(10)
            .warm_up_time(SHORT)
            .measurement_time(SHORT);
        for (devices, routines) in SIZES {
            let mut rng = ChaCha8Rng::seed_from_u64(routines);
            let all: Vec<_> = (0..DRAWN).map(|_| routine(10, devices, &mut rng)).collect();
            let mut next = all.iter().cycle().cloned();
            let grown = || {
                let mut rng = ChaCha8Rng::seed_from_u64(routines);
                (hub(devices, routines, scheduler, &mut rng), rng)
            };
            let name = format!("{devices} devices, {routines} routines");
            group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
                bencher.iter_custom(|many| time(many, routines, grown, &mut next));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
