//! K1: how long a client waits.

use std::sync::Arc;

use selvedge_core::{Choose, NodeId, Span, Time};
use selvedge_kgroup::GroupId;
use selvedge_kgroup::routines::Locking;

use super::house::{House, PAPER, PING, Setting, UNIT};
use super::lab::Layout;
use super::spot::Told;
use crate::claims::plot::over;
use crate::claims::stats::mean;
use crate::claims::{Claim, Experiment, Fault, Judgement, Paper, Sample, Samples, Verdict};

const DEVICES: [usize; 4] = [50, 250, 500, 750];
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
const SLOWLY: f64 = 3.0;

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

pub(super) fn claim() -> Claim {
    Claim {
        id: "K1",
        claim: "client delay rises slowly with the devices; OLA below SLA; grid above random and clustered",
        source: "CoMesh, section 6.1, figure 4",
        unit: "units of time without the wait for a ping, of 50 / 250 / 500 / 750 devices in a grid, SLA | OLA",
        experiments: settings()
            .map(|(setting, name)| Experiment {
                name,
                trials: TRIALS,
                run: Arc::new(move |seed| measure(setting, seed)),
            })
            .collect(),
        judge,
    }
}

fn measure(setting: Setting, seed: u64) -> Result<Sample, Fault> {
    let mut house = setting.house(seed)?;
    let mut sums = [0, 0];
    for nth in 0..house.sensors.len() {
        let delay = one(&mut house, nth)?;
        sums = [sums[0] + delay.all.0, sums[1] + delay.heard.0];
        house.net.run_for(REST);
    }
    let count = house.sensors.len() as u64;
    Ok(Sample([sums[0], sums[1], count].map(Some).to_vec()))
}

/// What passes from the moment at which a device changes.
pub(super) struct Delay {
    /// Until the first command reached its device.
    pub(super) all: Span,
    /// Until the leader of the cluster heard of it.
    pub(super) heard: Span,
}

/// Lets a sensor trigger its routine at a random moment.
pub(super) fn one(house: &mut House, nth: usize) -> Result<Delay, Fault> {
    let after = house.rng.below(PING.0);
    house.net.run_for(Span(after));
    let sensor = house.sensors.get(nth).copied().unwrap_or(NodeId(0));
    let routine = GroupId::routine(nth as u32);
    let begun = house.net.now();
    let limit = begun + PATIENCE;
    house.net.drain_events();
    house.turn(sensor, "set")?;
    let failed = |what: &str| Fault::Outcome(format!("routine {routine:?}: {what}"));
    let mut wait = |what: &str, is_it: &mut dyn FnMut(&Told) -> bool| -> Result<Time, Fault> {
        let found = house.until(limit, |_, it| is_it(it));
        found.ok_or_else(|| failed(what))
    };
    let heard = wait("the device was not heard", &mut |it| {
        *it == Told::Heard(sensor)
    })?;
    wait("it was not triggered", &mut |it| {
        *it == Told::Triggered(routine)
    })?;
    let commanded = wait("no command was given", &mut |it| *it == Told::Commanded)?;
    wait("it did not end", &mut |it| *it == Told::Reports(routine))?;
    Ok(Delay {
        all: commanded.since(begun),
        heard: heard.since(begun),
    })
}

/// The mean delay in units of time, the part before the leader of the cluster heard of it, and how
/// many trials.
pub(super) fn delays(samples: &Samples, name: &str) -> Option<(f64, f64, usize)> {
    let all: Vec<&Sample> = samples.of(name).map(|it| it.1).collect();
    let of = |at: usize| {
        let each = all.iter().filter_map(|it| {
            let sum = it.0.get(at).copied().flatten()?;
            let count = it.0.get(2).copied().flatten()?;
            Some(sum as f64 / count.max(1) as f64 / UNIT.0 as f64)
        });
        mean(&each.collect::<Vec<f64>>())
    };
    Some((of(0)?, of(1)?, all.len()))
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let found: Vec<(f64, f64, usize)> = settings()
        .map(|(_, name)| delays(samples, &name))
        .collect::<Option<_>>()?;
    // Of each layout: SLA, then OLA.
    let lines: Vec<Vec<f64>> = found
        .chunks(DEVICES.len())
        .map(|it| it.iter().map(|(all, heard, _)| all - heard).collect())
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
    let wait = mean(&found.iter().map(|it| it.1).collect::<Vec<f64>>())?;
    let names = DEVICES.map(|it| it.to_string());
    let titles = LAYOUTS
        .iter()
        .flat_map(|(_, place)| LOCKINGS.map(|(_, rule)| format!("{place}, {rule}")));
    let titles: Vec<String> = titles.collect();
    Some(Judgement {
        paper: "shape".to_owned(),
        ours: format!("{} | {}", words(0), words(1)),
        verdict: if growth <= SLOWLY && is_fast && is_above {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "From the report of the changed device at its cluster's leader to the first command at a device, one \
             routine at a time, five in each trial; a unit is a hop, 10 ms. Before that the device waits {wait:.0} \
             units on average for the next ping: the paper's simulation names no period, here it is 100 units. \
             Five devices anywhere, and a sensor. Random: {} | {}; clustered: {} | {}. From 50 to 750 devices \
             at most {growth:.1} times as long. OLA is {} SLA in each setting. In some runs the locks take one or two seconds more, in small buildings, too: questions are asked again after 100 \
             units, and which one is not answered at once was not found out. \
             Grid is {} the others: where a part is cut off \
             in the two others only its nearest pair is connected, and hops are no fewer there than in a grid \
             (K5). Holds when the growth is at most {SLOWLY:.0}, OLA is below SLA, and grid is above the others.",
            words(2),
            words(3),
            words(4),
            words(5),
            if is_fast { "below" } else { "not below" },
            if is_above { "above" } else { "not above" },
        ),
        trials: found.iter().map(|it| it.2).min()?,
        plots: vec![over(
            "Client delay",
            ("devices", &names),
            "units of time, without the wait for a ping",
            titles
                .iter()
                .enumerate()
                .map(|(at, name)| (name.as_str(), line(at))),
            Paper::says("it rises slowly, OLA below SLA, grid above the others (figure 4, curves)"),
        )],
    })
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
            let [Some(all), Some(heard), Some(1)] = sample.0[..] else {
                panic!("seed 3: {sample:?}");
            };
            // A quorum, a lock and a command: more than six hops.
            assert!(all > heard + 6 * UNIT.0, "seed 3: {sample:?}");
            assert_eq!(measure(setting, 3).unwrap(), sample);
        }
    }
}
