//! K1: how long a client waits.

use std::sync::Arc;

use selvedge_core::{Choose, NodeId, Span};
use selvedge_kgroup::{Site, routines::Locking};

use super::house::{House, PAPER, PING, Setting, UNIT};
use super::lab::Layout;
use super::spot::Notified;
use crate::claims::plot::spread;
use crate::claims::stats::mean;
use crate::claims::{Claim, Experiment, Fault, Judgement, Paper, Plot, Sample, Samples, Verdict};

pub(super) const DEVICES: [usize; 4] = [50, 250, 500, 750];
const LAYOUTS: [(Layout, &str); 3] = [
    (Layout::Grid, "grid"),
    (Layout::Random, "random"),
    (Layout::Clustered, "clustered"),
];
const LOCKINGS: [(Locking, &str); 2] = [(Locking::Sequential, "SLA"), (Locking::Optimistic, "OLA")];
pub(super) const TRIALS: u32 = 10;
/// A routine that has not begun by then has failed.
const PATIENCE: Span = Span::secs(60);
/// From one routine to the next: all is given back by then.
pub(super) const REST: Span = Span::secs(5);
/// Devices grow by a factor of 15; the delay may by this.
pub(super) const SLOWLY: f64 = 3.0;
/// From a report to the trigger: a longer time means that the report was asked for again, which
/// comes after twice this time.
const LATE: Span = Span(PING.0 / 2);
/// Table 3.
const EPOCH: Span = Span(200 * UNIT.0);

fn settings() -> impl Iterator<Item = (Setting, String)> {
    LAYOUTS.into_iter().flat_map(|(layout, place)| {
        LOCKINGS.into_iter().flat_map(move |(locking, rule)| {
            DEVICES.map(|devices| {
                let setting = Setting {
                    layout,
                    locking,
                    devices,
                    ..PAPER
                };
                (
                    setting,
                    format!("kgroup: client delay, {place}, {rule}, {devices} devices"),
                )
            })
        })
    })
}

/// The setting of table 3 in which epochs begin.
fn moving() -> (Setting, String) {
    let epoch = Some(EPOCH);
    let name = "kgroup: client delay, grid, SLA, epochs of 200";
    (Setting { epoch, ..PAPER }, name.to_owned())
}

pub(super) fn claim() -> Claim {
    Claim {
        id: "K1",
        claim: "client delay rises slowly with the devices; OLA below SLA; grid above random and clustered",
        source: "CoMesh, section 6.1, figure 4",
        unit: "units of time without the wait for a ping, of 50 / 250 / 500 / 750 devices in a grid, SLA | OLA",
        experiments: settings()
            .chain([moving()])
            .map(|(setting, name)| Experiment {
                name,
                trials: TRIALS,
                run: Arc::new(move |seed| measure(setting, seed)),
            })
            .collect(),
        judge,
    }
}

/// The sums of the delays and of their first parts, of how many routines; of these how many were
/// triggered late, and how many others did not begin or end.
fn measure(setting: Setting, seed: u64) -> Result<Sample, Fault> {
    let mut house = setting.house(seed)?;
    let [mut all, mut received, mut count, mut late, mut lost] = [0; 5];
    for nth in 0..house.sensors.len() {
        match one(&mut house, nth)? {
            Some(delay) => {
                all += delay.all.0;
                received += delay.received.0;
                count += 1;
                late += u64::from(delay.is_late());
            }
            None => lost += 1,
        }
        house.net.run_for(REST);
    }
    Ok(Sample(
        [all, received, count, late, lost].map(Some).to_vec(),
    ))
}

/// The delays after a device changes.
pub(super) struct Delay {
    /// Until the first command reached its device.
    pub(super) all: Span,
    /// Until the leader of the cluster received the report.
    pub(super) received: Span,
    /// Until its run was triggered. A leader that takes over does not report this.
    triggered: Option<Span>,
}

impl Delay {
    fn is_late(&self) -> bool {
        let latest = Span(self.received.0 + LATE.0);
        self.triggered.is_some_and(|it| it > latest)
    }
}

/// Lets a sensor trigger its routine at a random moment. `None` when it did not begin or end in time.
pub(super) fn one(house: &mut House, nth: usize) -> Result<Option<Delay>, Fault> {
    let after = house.rng.below(PING.0);
    house.net.run_for(Span(after));
    let sensor = house.sensors.get(nth).copied().unwrap_or(NodeId(0));
    let routine = Site::routine(nth as u32);
    let begun = house.net.now();
    let limit = begun + PATIENCE;
    house.net.drain_events();
    house.turn(sensor, "set")?;
    let Some(received) = house.until(limit, |_, it| *it == Notified::Received(sensor)) else {
        return Ok(None);
    };
    let is_triggered = |it: &Notified| *it == Notified::Triggered(routine);
    let mut has_begun = false;
    let first = house.until(limit, |_, it| {
        has_begun = *it == Notified::Commanded;
        has_begun || is_triggered(it)
    });
    let (triggered, commanded) = match has_begun {
        true => (None, first),
        false => (
            first,
            house.until(limit, |_, it| *it == Notified::Commanded),
        ),
    };
    let Some(commanded) = commanded else {
        return Ok(None);
    };
    // A leader that takes over does not report that a run has ended.
    if house.setting.epoch.is_none() {
        let ended = house.until(limit, |_, it| *it == Notified::Reports(routine));
        if ended.is_none() {
            return Ok(None);
        }
    }
    Ok(Some(Delay {
        all: commanded.since(begun),
        received: received.since(begun),
        triggered: triggered.map(|it| it.since(begun)),
    }))
}

/// The delays in all trials of a setting.
pub(super) struct Delays {
    /// Means in units of time: the whole delay, and until the leader of the cluster received the
    /// report.
    pub(super) all: f64,
    pub(super) received: f64,
    /// Each trial's delay, without the wait for a ping.
    pub(super) reported: Vec<f64>,
    /// The number of runs that began and ended, of runs that were triggered late, and of all
    /// others.
    pub(super) runs: u64,
    pub(super) late: u64,
    pub(super) lost: u64,
    pub(super) trials: usize,
}

impl Delays {
    pub(super) fn of(samples: &Samples, name: &str) -> Option<Self> {
        let all: Vec<&Sample> = samples.of(name).map(|it| it.1).collect();
        let figure = |it: &Sample, at: usize| it.0.get(at).copied().flatten();
        let each = |at: usize| -> Vec<f64> {
            let each = all.iter().filter_map(|it| {
                let count = figure(it, 2).filter(|it| *it > 0)?;
                Some(figure(it, at)? as f64 / count as f64 / UNIT.0 as f64)
            });
            each.collect()
        };
        let (whole, received) = (each(0), each(1));
        let pairs = whole.iter().zip(&received);
        let sum = |at: usize| all.iter().filter_map(|it| figure(it, at)).sum();
        Some(Self {
            all: mean(&whole)?,
            received: mean(&received)?,
            reported: pairs.map(|(all, received)| all - received).collect(),
            runs: sum(2),
            late: sum(3),
            lost: sum(4),
            trials: all.len(),
        })
    }

    /// Without the wait for a ping.
    fn since_report(&self) -> f64 {
        self.all - self.received
    }
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let found: Vec<Delays> = settings()
        .map(|(_, name)| Delays::of(samples, &name))
        .collect::<Option<_>>()?;
    let moving = Delays::of(samples, &moving().1)?;
    // Of each layout: SLA, then OLA.
    let lines: Vec<Vec<f64>> = found
        .chunks(DEVICES.len())
        .map(|it| it.iter().map(Delays::since_report).collect())
        .collect();
    let line = |at: usize| lines.get(at).cloned().unwrap_or_default();
    let words = |at: usize| {
        let figures: Vec<String> = line(at).iter().map(|it| format!("{it:.0}")).collect();
        figures.join(" / ")
    };
    let growth = lines.iter().filter_map(|it| Some(it.last()? / it.first()?));
    let growth = growth.fold(0.0, f64::max);
    let below = |one: usize, other: usize| line(one).iter().zip(line(other)).all(|(a, b)| *a < b);
    let is_fast = (0..LAYOUTS.len()).all(|at| below(2 * at + 1, 2 * at));
    let is_above = below(2, 0) && below(4, 0) && below(3, 1) && below(5, 1);
    let wait = mean(&found.iter().map(|it| it.received).collect::<Vec<f64>>())?;
    let (runs, late) = found
        .iter()
        .fold((0, 0), |sum, it| (sum.0 + it.runs, sum.1 + it.late));
    let lost: u64 = found.iter().map(|it| it.lost).sum();
    Some(Judgement {
        paper: "shape".to_owned(),
        ours: format!("{} | {}", words(0), words(1)),
        verdict: if growth <= SLOWLY && is_fast && is_above && lost == 0 {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "From the report of the changed device at its cluster's leader to the first command at a device, one \
             routine at a time, five in each trial; a unit is a hop, 10 ms. Before that the device waits {wait:.0} \
             units on average for the next ping: the paper's simulation names no period, here it is 100 units. \
             Five devices anywhere, and a sensor. Random: {} | {}; clustered: {} | {}. From 50 to 750 devices \
             at most {growth:.1} times as long. OLA is {} SLA in each setting. {late} of {runs} runs were triggered more \
             than {} units after the report; {lost} did not begin or end. With epochs of 200 units (table 3), in a grid of 250 devices, SLA, it takes \
             {:.0}, and {} of {} did not begin. \
             Grid is {} the others: where a part is cut off \
             in the two others only its nearest pair is connected, and hops are no fewer there than in a grid \
             (K5). Holds when the growth is at most {SLOWLY:.0}, OLA is below SLA, and grid is above the others.",
            words(2),
            words(3),
            words(4),
            words(5),
            if is_fast { "below" } else { "not below" },
            LATE.0 / UNIT.0,
            moving.since_report(),
            moving.lost,
            moving.runs + moving.lost,
            if is_above { "above" } else { "not above" },
        ),
        trials: found.iter().map(|it| it.trials).min()?,
        plots: vec![plot(&found)],
    })
}

fn plot(found: &[Delays]) -> Plot {
    let names = DEVICES.map(|it| it.to_string());
    let titles = LAYOUTS
        .iter()
        .flat_map(|(_, place)| LOCKINGS.map(|(_, rule)| format!("{place}, {rule}")));
    let titles: Vec<String> = titles.collect();
    let lines = titles.iter().zip(found.chunks(DEVICES.len()));
    spread(
        "Client delay",
        ("devices", &names),
        "units of time, without the wait for a ping",
        lines.map(|(name, line)| {
            let trials = line.iter().map(|it| it.reported.clone());
            (name.as_str(), trials.collect())
        }),
        Paper::reports("it rises slowly, OLA below SLA, grid above the others (figure 4, curves)"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A trial depends on its seed alone, and a command takes longer than the report before it.
    #[test]
    fn a_routine_is_triggered_and_begins() {
        for (locking, _) in LOCKINGS {
            let setting = Setting {
                devices: 50,
                routines: 1,
                locking,
                ..PAPER
            };
            let sample = measure(setting, 3).unwrap();
            let [Some(all), Some(received), Some(1), Some(0), Some(0)] = sample.0[..] else {
                panic!("seed 3: {sample:?}");
            };
            // A quorum, a lock and a command: more than six hops.
            assert!(all > received + 6 * UNIT.0, "seed 3: {sample:?}");
            assert_eq!(measure(setting, 3).unwrap(), sample);
        }
    }
}
