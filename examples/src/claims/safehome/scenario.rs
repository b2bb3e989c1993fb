//! Who does what when: the paper's three scenarios and its parameterized load.
//!
//! Devices and routines are numbers here: what matters is which routines share a device, for how
//! long, and when they come. What the paper leaves open is as in its authors' simulator.

use chacha20::ChaCha8Rng;
use selvedge_core::{Choose, Span};

/// One command: a device, and for how many seconds it is needed.
pub(super) type Need = (u32, u32);

/// Routines, and when they come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scenario {
    pub(super) devices: u32,
    /// The commands of each routine, in the order in which routines come.
    pub(super) routines: Vec<Vec<Need>>,
    pub(super) arrivals: Arrivals,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Arrivals {
    /// Each at its time.
    At(Vec<Span>),
    /// So many at the start, and another one whenever one is finished.
    Concurrent(usize),
}

/// 29 routines of a family, in 25 minutes; the last one leaves the house.
const MORNING: &[&[Need]] = &[
    &[(0, 1), (1, 300), (2, 1), (3, 1), (4, 1)],
    &[(0, 1), (5, 1), (6, 30), (7, 300)],
    &[(0, 1), (8, 1), (9, 45), (10, 1), (11, 1)],
    &[(12, 1), (13, 1)],
    &[(5, 1), (14, 1), (15, 1)],
    &[(16, 1), (11, 1)],
    &[(14, 1), (17, 1), (18, 1), (15, 1), (7, 500)],
    &[(19, 1), (20, 300)],
    &[(19, 1), (21, 120)],
    &[(22, 90)],
    &[(22, 300), (23, 1)],
    &[(0, 1), (20, 1), (21, 900)],
    &[(0, 1), (23, 1), (24, 1), (22, 600)],
    &[(25, 180)],
    &[(26, 10)],
    &[(27, 1)],
    &[(27, 60)],
    &[(27, 60)],
    &[(27, 60)],
    &[(25, 180)],
    &[(28, 1), (29, 1), (30, 1_200)],
    &[(31, 60), (32, 105), (33, 40)],
    &[(33, 120), (31, 75), (32, 105)],
    &[(31, 90), (33, 75), (32, 105)],
    &[(31, 90), (33, 120)],
    &[(34, 1_200)],
    &[(35, 10), (36, 1)],
    &[(36, 1), (37, 1)],
    &[
        (38, 1),
        (28, 1),
        (29, 1),
        (36, 1),
        (37, 1),
        (34, 1),
        (20, 1),
        (24, 1),
    ],
];

/// A routine of two hours, and 11 others meanwhile.
const PARTY: &[&[Need]] = &[
    &[(0, 1), (1, 1), (2, 1), (3, 1), (4, 7_200)],
    &[(0, 1), (1, 1), (5, 1)],
    &[(5, 1), (1, 240)],
    &[(5, 1), (1, 3_600)],
    &[(3, 30)],
    &[(3, 30)],
    &[(3, 30)],
    &[(3, 30)],
    &[(3, 30)],
    &[(2, 1), (6, 90)],
    &[(2, 1), (6, 90)],
    &[(2, 1), (6, 90)],
];

const NOTHING: &[Need] = &[];
const MORNING_SECONDS: u64 = 1_500;
const PARTY_SECONDS: u64 = 7_200;

/// Stages of the factory, and what each worker does one after the other.
const STAGES: u32 = 50;
const ITEMS: usize = 8;
/// Devices of a stage, of a boundary between two stages, and of all.
const LOCAL: u32 = 4;
const SHARED: u32 = 4;
const GLOBAL: u32 = 5;

/// The family's morning: in any order, at any times, but the last.
pub(super) fn morning(rng: &mut ChaCha8Rng) -> Scenario {
    let (last, others) = MORNING.split_last().unwrap_or((&NOTHING, MORNING));
    let mut routines = shuffled(others, rng);
    routines.push(last.to_vec());
    let mut times = sorted_times(others.len(), MORNING_SECONDS, rng);
    if let Some(first) = times.first_mut() {
        *first = Span::ZERO;
    }
    times.push(Span::secs(MORNING_SECONDS));
    scenario(routines, Arrivals::At(times))
}

/// The party: its long routine first, the others in any order at any times.
pub(super) fn party(rng: &mut ChaCha8Rng) -> Scenario {
    let (first, others) = PARTY.split_first().unwrap_or((&NOTHING, PARTY));
    let mut routines = vec![first.to_vec()];
    routines.extend(shuffled(others, rng));
    let mut times = vec![Span::ZERO];
    times.extend(sorted_times(others.len(), PARTY_SECONDS, rng));
    scenario(routines, Arrivals::At(times))
}

/// The factory: so many of its stages, and so many items at each.
fn line(stages: u32, items: usize, rng: &mut ChaCha8Rng) -> Scenario {
    let boundaries = stages * LOCAL;
    let globals = boundaries + stages * SHARED;
    let mut all = Vec::new();
    for stage in 0..stages {
        let mut at = Span::secs(rng.below(100));
        for _ in 0..items {
            let mut needs = Vec::new();
            // One that would need nothing is drawn again.
            while needs.is_empty() {
                let before = stage.checked_sub(1).map(|it| boundaries + it * SHARED);
                let groups = [
                    (before, SHARED, 3),
                    (Some(stage * LOCAL), LOCAL, 6),
                    (Some(boundaries + stage * SHARED), SHARED, 3),
                    (Some(globals), GLOBAL, 1),
                ];
                for (first, count, tenths) in groups {
                    for device in first.map_or(0..0, |first| first..first + count) {
                        if rng.below(10) < tenths {
                            let seconds = 1 + u32::try_from(rng.below(30)).unwrap_or_default();
                            needs.push((device, seconds));
                        }
                    }
                }
            }
            let work: u32 = needs.iter().map(|it| it.1).sum();
            all.push((at, needs));
            at = at + Span::secs(work.into());
        }
    }
    all.sort_by_key(|it| it.0);
    let (times, routines) = all.into_iter().unzip();
    scenario(routines, Arrivals::At(times))
}

/// The assembly line with 50 workers, who always have something to do.
pub(super) fn factory(rng: &mut ChaCha8Rng) -> Scenario {
    line(STAGES, ITEMS, rng)
}

/// As many stages of the factory, with one item each: as many routines as their every order can be
/// tried of (figure 12b).
pub(super) fn short_factory(stages: u32, rng: &mut ChaCha8Rng) -> Scenario {
    line(stages, 1, rng)
}

/// So many of the routines, as dense as all were.
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
    /// How many routines would run at the same time if none had to wait.
    pub(super) concurrent: usize,
    /// As many users, each of whom waits until a routine is finished; instead of times that do not
    /// depend on what becomes of routines.
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
};

impl Micro {
    /// What differs from table 3.
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
            ("zipf", self.zipf.into(), usual.zipf.into()),
            ("% long", self.long, usual.long),
            ("s long", self.long_seconds, usual.long_seconds),
        ] {
            if ours != usual {
                name += &format!(", {ours} {what}");
            }
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
            let count = normal(self.commands, rng).min(self.devices.into()) as usize;
            // As in the authors' program: the one in the middle.
            let long = (rng.below(100) < self.long).then_some(count / 2);
            let mut left = weights.clone();
            let needs = (0..count).map(|nth| {
                let mean = if long == Some(nth) {
                    self.long_seconds
                } else {
                    self.short_seconds
                };
                let seconds = u32::try_from(normal(mean, rng)).unwrap_or(u32::MAX);
                (draw(&mut left, rng), seconds)
            });
            needs.collect()
        };
        let routines: Vec<Vec<Need>> = (0..self.routines).map(&mut routine).collect();
        let work: u64 = routines.iter().flatten().map(|it| u64::from(it.1)).sum();
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
    // The sum's mean is 6 and its deviation 1, in so fine steps.
    let thirds = sum.saturating_sub(3 * FINE);
    ((mean * thirds + 3 * FINE / 2) / (3 * FINE)).max(1)
}

fn scenario(routines: Vec<Vec<Need>>, arrivals: Arrivals) -> Scenario {
    let devices = routines.iter().flatten().map(|it| it.0 + 1).max();
    Scenario {
        devices: devices.unwrap_or_default(),
        routines,
        arrivals,
    }
}

fn shuffled(routines: &[&[Need]], rng: &mut ChaCha8Rng) -> Vec<Vec<Need>> {
    let mut left = routines.to_vec();
    let next = |_| {
        left.swap_remove(rng.below(left.len() as u64) as usize)
            .to_vec()
    };
    routines.iter().map(next).collect()
}

fn sorted_times(count: usize, seconds: u64, rng: &mut ChaCha8Rng) -> Vec<Span> {
    let mut times: Vec<Span> = (0..count).map(|_| Span::secs(rng.below(seconds))).collect();
    times.sort_unstable();
    times
}
