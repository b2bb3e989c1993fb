//! `selvedge-faas measure duty`: time and energy of a function by duty cycle and size of the unit.

mod compare;

use core::time::Duration;
use std::collections::BTreeMap;
use std::time::Instant;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng as _;
use clap::Args;
use selvedge_core::{Choose as _, Span};
use selvedge_faas::client::{Client, Notified};
use selvedge_faas::executor::Hash;
use selvedge_pcm::{Answer, Function};

use super::times::{Times, ms};
use super::{SeedArgs, energy, machine};
use crate::command::Failure;
use crate::command::awake::Awake;
use crate::command::world::{Setting, World};

/// The longest time until all followers are in units, in addition to ten of their periods.
const BEGINNING: Duration = Duration::from_secs(30);

/// Measure the time of a function, and its energy by the paper's model, by duty cycle and unit
#[derive(Debug, Args)]
pub(crate) struct Duty {
    /// Percentages of its time in which a follower can be used; each is measured
    #[arg(long, value_delimiter = ',', default_value = "1,10,50,100")]
    shares: Vec<u64>,
    /// Numbers of followers in a unit, from 3; each is measured
    #[arg(long, value_delimiter = ',', default_value = "3,5,7")]
    units: Vec<u64>,
    /// Milliseconds for which a follower is awake in each period; the period follows from the share
    #[arg(long, default_value = "100")]
    active: u64,
    /// Milliseconds that a function takes at one follower: 23 times the active time by default
    #[arg(long)]
    length: Option<u64>,
    /// Number of functions for each figure
    #[arg(long, default_value = "20")]
    tasks: u64,
    /// Number of units in which they run at a time
    #[arg(long, default_value = "4")]
    at_once: u64,
    #[command(flatten)]
    seed: SeedArgs,
}

/// A duty cycle and a size of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Case {
    /// The share of time in which a follower can be used, in percent.
    share: u64,
    unit: u64,
}

/// The figures of a case.
#[derive(Clone, Debug, Default)]
struct Figures {
    times: Times,
    /// Joules of the unit and the gateway, for a function on average.
    energy: f64,
    /// The share of the time until the answer in which the unit's followers were awake, in percent.
    awake: f64,
    /// The number of tasks without a right answer.
    wrong: u64,
    /// The number of tasks that needed more than one unit.
    again: u64,
}

/// A task without an answer.
struct Open {
    submitted: Instant,
    /// The time for which each follower was awake before.
    awake: BTreeMap<u64, Duration>,
    code: Vec<u8>,
}

impl Duty {
    pub(super) fn run(self) -> Result<bool, Failure> {
        let (seed, machine) = (self.seed.seed()?, machine());
        println!(
            "One gateway; a follower is awake {} ms in each period; a function takes {} ms at one; {} functions a row, in \
             {} units at a time; seed {seed}; {machine}\n",
            self.active,
            self.length(),
            self.tasks,
            self.at_once
        );
        println!(
            "| can be used | period ms | unit | median ms | p99 ms | mean ms | energy J | awake | attempts beyond one | wrong |\n\
             |---|---|---|---|---|---|---|---|---|---|"
        );
        let mut all = BTreeMap::new();
        for share in self
            .shares
            .iter()
            .copied()
            .filter(|it| (1..=100).contains(it))
        {
            for unit in self.units.iter().copied() {
                let case = Case { share, unit };
                let figures = self.measure(case, seed)?;
                self.print(case, &figures);
                all.insert(case, figures);
            }
        }
        compare::print(&all);
        Ok(!all.is_empty() && all.values().all(|it| it.wrong == 0))
    }

    fn length(&self) -> u64 {
        self.length.unwrap_or(23 * self.active)
    }

    const fn period(&self, case: Case) -> u64 {
        self.active * 100 / case.share
    }

    fn print(&self, case: Case, figures: &Figures) {
        let Case { share, unit } = case;
        println!(
            "| {share}% | {} | {unit} | {} | {} | {} | {:.2} | {:.0}% | {} | {} |",
            self.period(case),
            ms(figures.times.percent(50)),
            ms(figures.times.percent(99)),
            ms(figures.times.mean()),
            figures.energy,
            figures.awake,
            figures.again,
            figures.wrong,
        );
    }

    fn measure(&self, case: Case, seed: u64) -> Result<Figures, Failure> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(case.share * 100 + case.unit);
        let (period, followers) = (self.period(case), case.unit * self.at_once);
        let awake = Awake::default();
        let seconds = self.length().div_ceil(1_000) + 5;
        let begins = (0..followers).map(|_| Duration::from_millis(rng.below(period.max(1))));
        let world = World::start(Setting {
            gateways: 1,
            followers,
            active: self.active,
            asleep: period - self.active,
            begins: begins.collect(),
            gateway_flags: flags(&[("--unit", case.unit), ("--function-time", seconds)]),
            follower_flags: ["--executor", "hash", "--time"]
                .map(String::from)
                .into_iter()
                .chain([format!("{seconds}s")])
                .collect(),
            awake: Some(awake.clone()),
            ..Setting::default()
        })?;
        let (all, units) = (followers as u32, self.at_once as u32);
        let patience = BEGINNING + Duration::from_millis(period * 10);
        world.wait_until(patience, |it| it.followers == all && it.units == units)?;
        let client = world.client()?;
        let patience = Duration::from_millis(self.length() * 5 + period * 30) + BEGINNING;
        let (mut figures, mut times, mut energy, mut shares) =
            (Figures::default(), Vec::new(), 0.0, 0.0);
        for round in 0..self.tasks.div_ceil(self.at_once) {
            let count = self.at_once.min(self.tasks - round * self.at_once);
            // Each task finds an idle unit, at any moment of its periods.
            let waits = (0..count).map(|_| Duration::from_millis(rng.below(period.max(1))));
            let mut waits: Vec<Duration> = waits.collect();
            waits.sort_unstable();
            for ran in self.round(&client, &awake, round, &waits, patience)? {
                let Some(ran) = ran else {
                    figures.wrong += 1;
                    continue;
                };
                times.push(ran.took);
                energy += ran.energy;
                shares += ran.awake;
                figures.again += u64::from(ran.attempt.saturating_sub(1));
            }
        }
        let count = times.len().max(1) as f64;
        (figures.energy, figures.awake) = (energy / count, shares / count);
        figures.times = Times::of(times);
        Ok(figures)
    }

    /// Submits a task after each of these waits, and collects the answers.
    #[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
    fn round(
        &self,
        client: &Client,
        awake: &Awake,
        round: u64,
        waits: &[Duration],
        patience: Duration,
    ) -> Result<Vec<Option<Ran>>, Failure> {
        let (begun, mut open, mut ran) = (Instant::now(), BTreeMap::new(), Vec::new());
        let mut waits = (0..).zip(waits).peekable();
        while !open.is_empty() || waits.peek().is_some() {
            let now = begun.elapsed();
            if let Some((nth, _)) = waits.next_if(|it| *it.1 <= now) {
                let token = round * self.at_once + nth;
                let code = format!("wait {} {token}", self.length()).into_bytes();
                client.submit(token, Function::new(&code));
                let (submitted, awake) = (Instant::now(), awake.now());
                open.insert(
                    token,
                    Open {
                        submitted,
                        awake,
                        code,
                    },
                );
                continue;
            }
            if now > patience {
                ran.extend(open.iter().map(|_| None));
                break;
            }
            let Some(notified) = client.wait(Span::millis(5)) else {
                continue;
            };
            let (token, answered) = match notified {
                Notified::Answered {
                    token,
                    answer,
                    unit,
                    ..
                } => (token, Some((answer, unit))),
                Notified::Refused { token, .. } | Notified::Rejected { token, .. } => (token, None),
                Notified::Kept { .. } | Notified::NotKept { .. } => continue,
            };
            let Some(open) = open.remove(&token) else {
                continue;
            };
            ran.push(answered.and_then(|(answer, unit)| Ran::of(&open, &answer, unit?, awake)));
        }
        Ok(ran)
    }
}

/// The result of one task.
#[derive(Clone, Copy, Debug)]
struct Ran {
    took: Duration,
    energy: f64,
    /// The share of time awake, in percent.
    awake: f64,
    attempt: u16,
}

impl Ran {
    fn of(
        open: &Open,
        answer: &Answer,
        unit: (u16, Vec<selvedge_core::Member>),
        awake: &Awake,
    ) -> Option<Self> {
        let is_right = matches!(answer, Answer::Value(it) if it[..] == Hash::value(&open.code)[..]);
        if !is_right {
            return None;
        }
        let (took, now) = (open.submitted.elapsed(), awake.now());
        let (attempt, electors) = unit;
        let of = |all: &BTreeMap<u64, Duration>, id| all.get(&id).copied().unwrap_or_default();
        let each = electors.iter().map(|it| {
            let id = it.id.0;
            of(&now, id).saturating_sub(of(&open.awake, id)).min(took)
        });
        let each: Vec<Duration> = each.collect();
        let nodes: f64 = each.iter().map(|it| energy::node(*it, took)).sum();
        let sum: Duration = each.iter().sum();
        let all = took.as_secs_f64() * each.len().max(1) as f64;
        Some(Self {
            took,
            energy: nodes + energy::gateway(took),
            awake: sum.as_secs_f64() / all.max(f64::EPSILON) * 100.0,
            attempt,
        })
    }
}

fn flags(all: &[(&str, u64)]) -> Vec<String> {
    let each = all.iter();
    each.flat_map(|(name, number)| [(*name).to_string(), number.to_string()])
        .collect()
}
