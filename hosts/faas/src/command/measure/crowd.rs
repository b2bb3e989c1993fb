//! `selvedge-faas measure crowd`: the load of many followers on one machine.

use core::time::Duration;
use std::collections::BTreeMap;
use std::time::Instant;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng as _;
use clap::Args;
use selvedge_core::Choose as _;

use super::stream::Stream;
use super::times::ms;
use super::{SeedArgs, load, machine};
use crate::command::world::{FOLLOWERS, Setting, World};
use crate::command::{Failure, gcd};

/// The longest time until all followers are in units.
const BEGINNING: Duration = Duration::from_secs(180);

/// Start many followers, submit tasks, and print the load of the processes
#[derive(Debug, Args)]
pub(crate) struct Crowd {
    /// Number of gateways
    #[arg(long, default_value = "3")]
    gateways: u64,
    /// Number of followers
    #[arg(long, default_value = "100")]
    followers: u64,
    /// Milliseconds for which a follower is awake in each period
    #[arg(long, default_value = "500")]
    active: u64,
    /// Milliseconds for which it sleeps
    #[arg(long, default_value = "4500")]
    asleep: u64,
    /// Seconds for which tasks are submitted
    #[arg(long, default_value = "30")]
    seconds: u64,
    /// Milliseconds between two tasks
    #[arg(long, default_value = "200")]
    every: u64,
    #[command(flatten)]
    seed: SeedArgs,
}

/// The load of a process at one moment.
#[derive(Clone, Copy, Debug)]
struct Seen {
    memory: load::Memory,
    cpu: Duration,
}

impl Crowd {
    #[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
    pub(super) fn run(self) -> Result<bool, Failure> {
        let (seed, machine) = (self.seed.seed()?, machine());
        let world = World::start(self.setting(seed))?;
        let all = u32::try_from(self.followers).unwrap_or(u32::MAX);
        let (status, took) =
            world.wait_until(BEGINNING, |it| it.followers == all && it.units > 0)?;
        let client = world.client()?;
        gcd::put(&client)?;
        let (before, begun) = (seen(&world), Instant::now());
        let count = self.seconds * 1_000 / self.every.max(1);
        let stream = Stream {
            first: 1,
            count,
            every: Duration::from_millis(self.every),
            patience: Duration::from_secs(90),
        };
        let answers = stream.run(&client)?;
        let (after, lasted) = (seen(&world), begun.elapsed());
        let period = self.active + self.asleep;
        println!(
            "{} gateways and {} followers that are awake {} ms in {period}; seed {seed}; {machine}\n",
            self.gateways, self.followers, self.active
        );
        println!(
            "| what | figure |\n|---|---|\n| all followers in {} units, after the last one has started | {} ms |\n\
             | tasks, one each {} ms | {count} |\n| answered right / wrong / refused / not at all | {} / {} / {} / {} |\n\
             | answer, median / p99 | {} / {} ms |",
            status.units,
            ms(took),
            self.every,
            answers.times.len(),
            answers.wrong,
            answers.refused,
            answers.missing,
            ms(answers.times.percent(50)),
            ms(answers.times.percent(99)),
        );
        let is_gateway = |id: u64| id < FOLLOWERS;
        print_load("a gateway", &before, &after, lasted, is_gateway);
        print_load("a follower", &before, &after, lasted, |id| !is_gateway(id));
        Ok(answers.is_right())
    }

    fn setting(&self, seed: u64) -> Setting {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let period = (self.active + self.asleep).max(1);
        let begins = (0..self.followers).map(|_| Duration::from_millis(rng.below(period)));
        Setting {
            gateways: self.gateways,
            followers: self.followers,
            active: self.active,
            asleep: self.asleep,
            begins: begins.collect(),
            ..Setting::default()
        }
    }
}

/// The load of each process, where the system provides it.
fn seen(world: &World) -> BTreeMap<u64, Seen> {
    let seen = |process| {
        let (memory, cpu) = load::memory(process).zip(load::cpu(process))?;
        Some(Seen { memory, cpu })
    };
    let all = world.processes();
    all.filter_map(|(id, process)| Some((id, seen(process)?)))
        .collect()
}

/// Prints the load of each of these processes, on average and at most.
fn print_load(
    what: &str,
    before: &BTreeMap<u64, Seen>,
    after: &BTreeMap<u64, Seen>,
    lasted: Duration,
    is_one: impl Fn(u64) -> bool,
) {
    let pairs = after.iter().filter(|it| is_one(*it.0));
    let pairs = pairs.filter_map(|(id, it)| Some((before.get(id)?, it)));
    let pairs: Vec<(&Seen, &Seen)> = pairs.collect();
    let row = |name: &str, unit: &str, figure: &dyn Fn(&(&Seen, &Seen)) -> f64| {
        let all = pairs.iter().map(figure);
        let mean = all.clone().sum::<f64>() / pairs.len().max(1) as f64;
        let most = all.fold(0.0, f64::max);
        println!("| {what}: {name}, mean / most | {mean:.2} / {most:.2} {unit} |");
    };
    let mib = |kib: u64| kib as f64 / 1_024.0;
    row("RSS", "MiB", &|it| mib(it.1.memory.rss));
    row("PSS", "MiB", &|it| mib(it.1.memory.pss));
    // The system accounts for time in steps of 10 ms.
    row("of one core, in steps of 10 ms", "%", &|it| {
        it.1.cpu.saturating_sub(it.0.cpu).as_secs_f64() / lasted.as_secs_f64() * 100.0
    });
}
