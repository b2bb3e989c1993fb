//! M12: how long a large run takes.

use std::sync::Arc;

use selvedge_core::{Ratio, Span, Time};

use super::lab::{PERIOD, Setting, Variant};
use crate::claims::{Claim, Experiment, Fault, Judgement, Sample, Samples, Verdict};
use selvedge_udp::Clock;

const NAME: &str = "membership: 2,048 nodes for 300,000 units, timed";
const NODES: usize = 2_048;
const UNITS: u64 = 300_000;
const PAPER: u64 = 40 * 60;

/// The time is given as the smallest of these that it stays within, in seconds, so that runs on one
/// machine have one result.
const STEPS: [u64; 8] = [30, 60, 120, 300, 600, 1_200, PAPER, 7_200];

pub(super) fn claim() -> Claim {
    Claim {
        id: "M12",
        claim: "one run of 2,048 nodes over 300,000 units takes",
        source: "Medley-F, section 4.1.2",
        unit: "s",
        experiments: vec![Experiment {
            name: NAME.to_owned(),
            trials: 1,
            run: Arc::new(timed),
        }],
        judge,
    }
}

/// The step that the time of one run stays within, on one thread, joining included; and the
/// messages that it took.
fn timed(seed: u64) -> Result<Sample, Fault> {
    let setting = Setting {
        nodes: NODES,
        ..Setting::new(Variant::Both, 3)
    };
    let clock = Clock::start();
    let mut mesh = setting.settled(seed, Ratio::NEVER)?;
    let end = Time::ZERO + Span::millis(UNITS);
    while mesh.now() < end {
        mesh.run_for(Span::millis(PERIOD * 100));
        mesh.drain_events().for_each(drop);
    }
    if mesh.machines().any(|(_, it)| it.live() != NODES) {
        return Err(Fault::Outcome(
            "a node was lost from a list, though nothing failed and nothing was lost".to_owned(),
        ));
    }
    let seconds = clock.now().0.div_ceil(1_000_000);
    let within = STEPS.iter().find(|&&step| seconds <= step);
    Ok(Sample(vec![within.copied(), Some(mesh.counters().sent)]))
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let (_, sample) = samples.of(NAME).next()?;
    let within = sample.0.first().copied()?;
    let messages = sample.0.get(1).copied().flatten()?;
    Some(Judgement {
        paper: PAPER.to_string(),
        ours: within.map_or_else(
            || format!("above {}", STEPS.last().copied().unwrap_or_default()),
            |within| format!("within {within}"),
        ),
        verdict: match within {
            Some(within) if within < PAPER => Verdict::Better,
            Some(PAPER) => Verdict::Holds,
            Some(_) | None => Verdict::Differs,
        },
        reason: format!(
            "One thread, {messages} messages, joining included; the step of {STEPS:?} seconds that the \
             run stayed within. The thesis' machine is not named. Better below {PAPER}."
        ),
        trials: 1,
        plots: Vec::new(),
    })
}
