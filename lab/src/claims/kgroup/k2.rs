//! K2: a client's wait while nodes stop.

use std::sync::Arc;

use selvedge_core::{Choose, Span};

use super::house::{DETECTION, House, PAPER, UNIT};
use super::k1::{REST, TRIALS, one};
use crate::claims::plot::over;
use crate::claims::stats::mean;
use crate::claims::{Claim, Experiment, Fault, Judgement, Paper, Sample, Samples, Verdict};

/// Of the smart nodes, in percent, and the name of the setting.
const CHURN: [(u64, &str); 2] = [
    (0, "kgroup: client delay, nothing stops"),
    (40, "kgroup: client delay, 40% stop"),
];
/// So many percent longer at most (the paper).
const LONGER: f64 = 25.0;

pub(super) fn claim() -> Claim {
    Claim {
        id: "K2",
        claim: "client delay while 40% of the smart nodes are churned, in a grid, SLA",
        source: "CoMesh, section 6.2, figure 5",
        unit: "% longer, from the change of the device",
        experiments: CHURN
            .into_iter()
            .map(|(churn, name)| Experiment {
                name: name.to_owned(),
                trials: TRIALS,
                run: Arc::new(move |seed| measure(churn, seed)),
            })
            .collect(),
        judge,
    }
}

/// The sum of all delays, how many routines began, and how many did not.
fn measure(churn: u64, seed: u64) -> Result<Sample, Fault> {
    let mut house = PAPER.house(seed)?;
    let mut victims = victims(&mut house, churn);
    let count = house.sensors.len();
    let (mut sum, mut begun, mut lost) = (0, 0, 0);
    for nth in 0..count {
        let share = victims.len() / (count - nth);
        for _ in 0..share {
            let Some(victim) = victims.pop() else {
                break;
            };
            let after = house.rng.below(REST.0);
            house.stop_later(victim, Span(after))?;
        }
        match one(&mut house, nth) {
            Ok(delay) => {
                sum += delay.all.0;
                begun += 1;
            }
            Err(_) => lost += 1,
        }
        house.net.run_for(REST);
    }
    Ok(Sample([sum, begun, lost].map(Some).to_vec()))
}

/// So many percent of the smart nodes, but those whose devices routines need.
pub(super) fn victims(house: &mut House, percent: u64) -> Vec<usize> {
    let routines = house.site.routines().iter();
    let mut needed: Vec<usize> = routines
        .flat_map(|it| it.devices())
        .map(|it| it.0 as usize)
        .collect();
    needed.sort_unstable();
    let count = house.nodes.len() as u64 * percent / 100;
    let mut all = house.nodes.clone();
    all.retain(|it| needed.binary_search(it).is_err());
    let picked = (0..count).map_while(|_| {
        let left = all.len() as u64;
        (left > 0).then(|| all.swap_remove(house.rng.below(left) as usize))
    });
    picked.collect()
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let mut found = Vec::new();
    for (_, name) in CHURN {
        let all: Vec<&Sample> = samples.of(name).map(|it| it.1).collect();
        let of = |at: usize| -> u64 {
            let figures = all.iter().filter_map(|it| it.0.get(at).copied().flatten());
            figures.sum()
        };
        let delays = all.iter().filter_map(|it| {
            let sum = it.0.first().copied().flatten()?;
            let begun = it.0.get(1).copied().flatten()?;
            (begun > 0).then(|| sum as f64 / begun as f64 / UNIT.0 as f64)
        });
        let delay = mean(&delays.collect::<Vec<f64>>())?;
        found.push((delay, of(1), of(2), all.len()));
    }
    let (&(still, ..), &(churned, begun, lost, _)) = (found.first()?, found.get(1)?);
    let longer = (churned / still - 1.0) * 100.0;
    let names = CHURN.map(|it| it.0.to_string());
    Some(Judgement {
        paper: format!("{LONGER} at most"),
        ours: format!("{longer:.0}"),
        verdict: if longer <= LONGER && lost == 0 {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "From the change of the sensor to the first command at a device, with the wait for a ping: {still:.0} units \
             of time without churn and {churned:.0} with it, of 250 devices. 8% of the smart nodes stop for good at random moments of the \
             5 s around each of five routines; others learn of it {} units later. Devices that routines need do not \
             stop, and what stopped still relays. {lost} of {} routines did not begin within 60 s. Holds when the delay is at most {LONGER}% longer and all begin.",
            DETECTION.0 / UNIT.0,
            begun + lost,
        ),
        trials: found.iter().map(|it| it.3).min()?,
        plots: vec![over(
            "Client delay under churn",
            ("% of smart nodes that stop", &names),
            "units of time",
            [("SLA, grid", found.iter().map(|it| it.0).collect())],
            Paper::says("25% longer at most (figure 5, curves)"),
        )],
    })
}
