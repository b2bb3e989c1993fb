//! The loads: the paper's three scenarios and its parameterized load.
//!
//! The scenarios are those of [`selvedge_home::Scenario`], which has the routines of the morning and
//! the party as files, and the factory's rule. Devices and routines are numbers here: all that
//! the party as files, and the factory's rule. Devices and routines are numbers here: only shared
//! devices, lengths and times matter. The paper's gaps are filled as in its authors' simulator.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use chacha20::ChaCha8Rng;
use rand_core::SeedableRng;
use selvedge_core::{Choose, Span, Time};
use selvedge_routine::State;
use selvedge_routine::file::NamedRoutine;
use selvedge_safehome::Step;

use selvedge_home::{ITEMS, STAGES, item};

/// A command: a device, and the seconds for which it is needed.
pub(super) type Need = (u32, u32);

/// The commands of a routine. Those of a file are not copied for each trial.
pub(super) type Needs = Cow<'static, [Need]>;

/// Routines, and when they come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scenario {
    pub(super) devices: u32,
    /// The commands of each routine, in the order in which routines come.
    pub(super) routines: Vec<Needs>,
    pub(super) arrivals: Arrivals,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Arrivals {
    /// Each routine comes at its time.
    At(Vec<Span>),
    /// A number of routines come at the start, and another one whenever one is finished.
    Concurrent(usize),
}

/// The family's morning: in any order, at any times, but the last.
pub(super) fn morning(rng: &mut ChaCha8Rng) -> Scenario {
    static READ: LazyLock<File> = LazyLock::new(|| File::read(selvedge_home::Scenario::Morning));
    READ.draw(rng)
}

/// The party: its long routine first, the others in any order at any times.
pub(super) fn party(rng: &mut ChaCha8Rng) -> Scenario {
    static READ: LazyLock<File> = LazyLock::new(|| File::read(selvedge_home::Scenario::Party));
    READ.draw(rng)
}

/// A scenario with its routines in a file. It is read once: that takes longer than a trial.
struct File {
    scenario: selvedge_home::Scenario,
    routines: Vec<NamedRoutine>,
    /// The commands of each.
    needs: Vec<Vec<Need>>,
}

impl File {
    fn read(scenario: selvedge_home::Scenario) -> Self {
        // Nothing in a file is drawn. The file is a part of this program, and its tests read it.
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let routines = scenario.home(&mut rng).unwrap_or_default().routines;
        let mut numbers = BTreeMap::new();
        let mut need = |step: &Step<State>| {
            let next = u32::try_from(numbers.len()).unwrap_or_default();
            let seconds = step.hold.0 / 1_000_000;
            let device = *numbers.entry(step.device).or_insert(next);
            (device, u32::try_from(seconds).unwrap_or(u32::MAX))
        };
        let needs = routines.iter().map(|it| it.routine.steps.iter());
        let needs = needs.map(|it| it.map(&mut need).collect()).collect();
        Self {
            scenario,
            routines,
            needs,
        }
    }

    fn draw(&'static self, rng: &mut ChaCha8Rng) -> Scenario {
        let arrivals = self.scenario.arrivals(self.needs.len());
        let arrivals = arrivals.draw(&self.routines, rng);
        let routines = arrivals
            .iter()
            .filter_map(|it| self.needs.get(it.1))
            .map(|it| Needs::from(it.as_slice()));
        let times = arrivals.iter().map(|it| it.0.since(Time::ZERO));
        scenario(routines.collect(), Arrivals::At(times.collect()))
    }
}

/// The factory: a number of its stages, with a number of items at each.
fn line(stages: u32, items: u32, rng: &mut ChaCha8Rng) -> Scenario {
    let mut all = Vec::new();
    for stage in 0..stages {
        let mut at = Span::secs(rng.below(100));
        for _ in 0..items {
            let needs = item(stage, stages, rng);
            let work: u32 = needs.iter().map(|it| it.1).sum();
            all.push((at, Needs::from(needs)));
            at = at + Span::secs(work.into());
        }
    }
    all.sort_by_key(|it| it.0);
    let (times, routines) = all.into_iter().unzip();
    scenario(routines, Arrivals::At(times))
}

/// The assembly line with 50 workers, which always have work.
pub(super) fn factory(rng: &mut ChaCha8Rng) -> Scenario {
    line(STAGES, ITEMS, rng)
}

/// A number of stages of the factory, with one item each: few enough routines that every order of
/// them can be tried (figure 12b).
pub(super) fn short_factory(stages: u32, rng: &mut ChaCha8Rng) -> Scenario {
    line(stages, 1, rng)
}

/// Some of the routines, as dense in time as all of them were.
pub(super) fn some(of: Scenario, count: usize, rng: &mut ChaCha8Rng) -> Scenario {
    let all = of.routines.len();
    let mut picked: Vec<usize> = (0..all).collect();
    while picked.len() > count {
        picked.remove(rng.below(picked.len() as u64) as usize);
    }
    let times = match &of.arrivals {
        Arrivals::At(times) => times.as_slice(),
        Arrivals::Concurrent(_) => &[],
    };
    let squeezed = |at: &usize| {
        let time = times.get(*at).copied().unwrap_or_default();
        Span(time.0 * count as u64 / all.max(1) as u64)
    };
    let times = picked.iter().map(squeezed).collect();
    let routines = picked.iter().filter_map(|&at| of.routines.get(at).cloned());
    scenario(routines.collect(), Arrivals::At(times))
}

/// The load of table 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Micro {
    pub(super) routines: usize,
    pub(super) devices: u32,
    /// The number of routines that would run at the same time if none had to wait.
    pub(super) concurrent: usize,
    /// True if as many users each wait until a routine is finished, instead of times that do not
    /// depend on the outcome of routines.
    pub(super) users: bool,
    /// The mean number of commands of a routine.
    pub(super) commands: u64,
    /// The exponent of the devices' popularity, in hundredths.
    pub(super) zipf: u32,
    /// Percent of the routines that have a long command.
    pub(super) long: u64,
    /// The mean length of a long command, in seconds.
    pub(super) long_seconds: u64,
    /// The mean length of a short command, in seconds.
    pub(super) short_seconds: u64,
    pub(super) lengths: Lengths,
}

/// The distribution of lengths of commands around their mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lengths {
    /// Normally distributed, with a third of the mean as deviation.
    Normal,
    /// Within two seconds of it, each second alike.
    Even,
}

pub(super) const TABLE_3: Micro = Micro {
    routines: 100,
    devices: 25,
    concurrent: 4,
    users: false,
    commands: 3,
    zipf: 5,
    long: 10,
    long_seconds: 1_200,
    short_seconds: 10,
    lengths: Lengths::Normal,
};

/// The settings of figure 14 in the authors' program, as published with it: fewer devices, and more
/// and longer commands than table 3.
pub(super) const FIGURE_14: Micro = Micro {
    devices: 15,
    commands: 4,
    zipf: 1,
    long: 20,
    long_seconds: 2_012,
    short_seconds: 62,
    lengths: Lengths::Even,
    ..TABLE_3
};

/// The settings of figure 15c in the authors' program, as published with it: fewer devices and
/// shorter long commands than table 3.
pub(super) const FIGURE_15C: Micro = Micro {
    devices: 10,
    zipf: 1,
    long_seconds: 402,
    short_seconds: 12,
    lengths: Lengths::Even,
    ..TABLE_3
};

impl Micro {
    /// The differences from table 3, in words.
    pub(super) fn name(&self) -> String {
        let mut name = "load of table 3".to_owned();
        let usual = TABLE_3;
        for (what, ours, usual) in [
            (
                "concurrent",
                self.concurrent as u64,
                usual.concurrent as u64,
            ),
            ("commands", self.commands, usual.commands),
            ("devices", self.devices.into(), usual.devices.into()),
            ("zipf", self.zipf.into(), usual.zipf.into()),
            ("% long", self.long, usual.long),
            ("s long", self.long_seconds, usual.long_seconds),
            ("s short", self.short_seconds, usual.short_seconds),
        ] {
            if ours != usual {
                name += &format!(", {ours} {what}");
            }
        }
        if self.lengths == Lengths::Even {
            name += ", even lengths";
        }
        if self.users {
            name += ", users who wait";
        }
        name
    }

    pub(super) fn draw(&self, rng: &mut ChaCha8Rng) -> Scenario {
        let exponent = f64::from(self.zipf) / 100.0;
        let weight = |nth: u32| (1e6 / f64::from(nth).powf(exponent)).round() as u64;
        let weights: Vec<u64> = (1..=self.devices).map(weight).collect();
        let mut routine = |_| {
            let count = match self.lengths {
                Lengths::Normal => normal(self.commands, rng),
                Lengths::Even => self.commands,
            };
            let count = count.min(self.devices.into()) as usize;
            // As in the authors' program: the one in the middle.
            let long = (rng.below(100) < self.long).then_some(count / 2);
            let mut left = weights.clone();
            let needs = (0..count).map(|nth| {
                let mean = if long == Some(nth) {
                    self.long_seconds
                } else {
                    self.short_seconds
                };
                let seconds = match self.lengths {
                    Lengths::Normal => normal(mean, rng),
                    Lengths::Even => (mean + rng.below(5)).saturating_sub(2),
                };
                let seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
                (draw(&mut left, rng), seconds)
            });
            needs.collect()
        };
        let routines: Vec<Needs> = (0..self.routines).map(&mut routine).collect();
        let needs = routines.iter().flat_map(|it| it.iter());
        let work: u64 = needs.map(|it| u64::from(it.1)).sum();
        Scenario {
            devices: self.devices,
            routines,
            arrivals: if self.users {
                Arrivals::Concurrent(self.concurrent)
            } else {
                let seconds = work.div_ceil(self.concurrent as u64);
                Arrivals::At(sorted_times(self.routines, seconds, rng))
            },
        }
    }
}

/// A device that was not drawn before, by its popularity.
fn draw(left: &mut [u64], rng: &mut ChaCha8Rng) -> u32 {
    let mut point = rng.below(left.iter().sum());
    let is_in = |&weight: &u64| {
        let before = point;
        point = point.saturating_sub(weight);
        before < weight
    };
    let at = left.iter().position(is_in).unwrap_or_default();
    if let Some(weight) = left.get_mut(at) {
        *weight = 0;
    }
    u32::try_from(at).unwrap_or_default()
}

/// Normally distributed around the mean, with a third of it as deviation; at least 1. The sum of
/// twelve numbers, in whole numbers so that it is the same everywhere.
fn normal(mean: u64, rng: &mut ChaCha8Rng) -> u64 {
    const FINE: u64 = 1_000;
    let sum: u64 = (0..12).map(|_| rng.below(FINE + 1)).sum();
    // The sum's mean is 6 and its deviation 1, in steps this fine.
    let thirds = sum.saturating_sub(3 * FINE);
    ((mean * thirds + 3 * FINE / 2) / (3 * FINE)).max(1)
}

fn scenario(routines: Vec<Needs>, arrivals: Arrivals) -> Scenario {
    let needs = routines.iter().flat_map(|it| it.iter());
    let devices = needs.map(|it| it.0 + 1).max();
    Scenario {
        devices: devices.unwrap_or_default(),
        routines,
        arrivals,
    }
}

fn sorted_times(count: usize, seconds: u64, rng: &mut ChaCha8Rng) -> Vec<Span> {
    let mut times: Vec<Span> = (0..count).map(|_| Span::secs(rng.below(seconds))).collect();
    times.sort_unstable();
    times
}
