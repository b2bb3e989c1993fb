//! K11: how long a routine waits that another one was in the way of.

use std::sync::Arc;

use selvedge_core::{Choose, NodeId, Span};
use selvedge_kgroup::Site;

use super::house::{PAPER, PING, Setting, UNIT};
use super::k1::{DEVICES, REST, SLOWLY, TRIALS};
use super::spot::Notified;
use crate::claims::plot::spread;
use crate::claims::stats::mean;
use crate::claims::{Claim, Experiment, Fault, Judgement, Paper, Sample, Samples, Verdict};

/// Both routines have ended by then.
const PATIENCE: Span = Span::secs(60);

fn name(devices: usize) -> String {
    format!("kgroup: synchronization delay, {devices} devices")
}

pub(super) fn claim() -> Claim {
    Claim {
        id: "K11",
        claim: "the synchronization delay rises slowly with the devices",
        source: "CoMesh, section 6.2, figure 5",
        unit: "units of time, with 50 / 250 / 500 / 750 devices in a grid, SLA",
        experiments: DEVICES
            .into_iter()
            .map(|devices| Experiment {
                name: name(devices),
                trials: TRIALS,
                run: Arc::new(move |seed| measure(devices, seed)),
            })
            .collect(),
        judge,
    }
}

/// The sum of the delays, and of how many pairs of routines.
fn measure(devices: usize, seed: u64) -> Result<Sample, Fault> {
    let setting = Setting {
        devices,
        alike: 2,
        ..PAPER
    };
    let mut house = setting.house(seed)?;
    let (mut sum, mut count) = (0, 0);
    for (nth, sensor) in (0..).zip(house.sensors.clone()) {
        let after = house.rng.below(PING.0);
        house.net.run_for(Span(after));
        house.net.drain_events();
        let limit = house.net.now() + PATIENCE;
        house.turn(sensor, "set")?;
        let pair = [2 * nth, 2 * nth + 1].map(Site::routine);
        let reports = |it: &Notified| {
            pair.iter()
                .any(|routine| *it == Notified::Reports(*routine))
        };
        let failed = || {
            Fault::Outcome(format!(
                "sensor {:?}: a routine did not end",
                NodeId(sensor.0)
            ))
        };
        let over = house.until(limit, |_, it| reports(it)).ok_or_else(failed)?;
        let next = house.until(limit, |_, it| *it == Notified::Commanded);
        sum += next.ok_or_else(failed)?.since(over).0;
        count += 1;
        house.until(limit, |_, it| reports(it)).ok_or_else(failed)?;
        house.net.run_for(REST);
    }
    Ok(Sample([sum, count].map(Some).to_vec()))
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let (mut delays, mut all_trials) = (Vec::new(), Vec::new());
    let mut trials = usize::MAX;
    for devices in DEVICES {
        let all: Vec<&Sample> = samples.of(&name(devices)).map(|it| it.1).collect();
        trials = trials.min(all.len());
        let each = all.iter().filter_map(|it| match it.0.as_slice() {
            &[Some(sum), Some(count)] if count > 0 => {
                Some(sum as f64 / count as f64 / UNIT.0 as f64)
            }
            _ => None,
        });
        let each: Vec<f64> = each.collect();
        delays.push(mean(&each)?);
        all_trials.push(each);
    }
    let growth = delays.last()? / delays.first()?;
    let words: Vec<String> = delays.iter().map(|it| format!("{it:.0}")).collect();
    let names = DEVICES.map(|it| it.to_string());
    Some(Judgement {
        paper: "shape".to_owned(),
        ours: words.join(" / "),
        verdict: if growth <= SLOWLY {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "Two routines with the same sensor and devices are triggered at once. From the end of the last step of one to \
             the first command of the other: the paper begins with the release of the last lock, which is a little \
             later. With 15 times the devices it takes {growth:.1} times as long. The one that waits has the first device of its \
             queue as soon as it is given back, and asks for the four others one after another. Holds up to {SLOWLY:.0} times.",
        ),
        trials,
        plots: vec![spread(
            "Synchronization delay",
            ("devices", &names),
            "units of time",
            [("SLA, grid", all_trials)],
            Paper::reports("it rises slowly (figure 5, curves)"),
        )],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The second routine locks five devices after the first has given them back.
    #[test]
    fn a_routine_waits_for_another_one_with_its_devices() {
        let sample = measure(50, 3).unwrap();
        let [Some(sum), Some(count)] = sample.0[..] else {
            panic!("seed 3: {sample:?}");
        };
        assert_eq!(count, PAPER.routines as u64);
        assert!(sum > count * 6 * UNIT.0, "seed 3: {sample:?}");
    }
}
