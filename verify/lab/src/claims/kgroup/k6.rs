//! K6: how many nodes are similar to a device.

use std::sync::Arc;

use super::lab::{Building, Layout, SPACING, near};
use crate::claims::plot::over;
use crate::claims::stats::mean;
use crate::claims::{Claim, Experiment, Fault, Judgement, Paper, Sample, Samples, Verdict};

/// Devices, and the paper's candidates (table 2).
const PAPER: [(usize, f64); 5] = [
    (50, 13.0223),
    (250, 34.1258),
    (500, 50.7501),
    (750, 52.8035),
    (1_000, 66.9135),
];
/// A figure within this many percent of the paper's holds.
const BAND: f64 = 25.0;
const TRIALS: u32 = 10;
/// Each epoch draws other functions.
const EPOCHS: u64 = 50;

fn name(devices: usize) -> String {
    format!("kgroup: candidates of {devices} devices")
}

pub(super) fn claim() -> Claim {
    Claim {
        id: "K6",
        claim: "candidates of LSH with m = 2, l = 2, r = 4",
        source: "CoMesh, section 3.6, table 2",
        unit: "nodes, of 50, 250, 500, 750 and 1,000 devices",
        experiments: PAPER
            .into_iter()
            .map(|(devices, _)| Experiment {
                name: name(devices),
                trials: TRIALS,
                run: Arc::new(move |seed| measure(devices, seed)),
            })
            .collect(),
        judge,
    }
}

fn measure(devices: usize, seed: u64) -> Result<Sample, Fault> {
    let building = Building::new(seed, Layout::Grid, devices, SPACING);
    let mut sum = 0;
    for epoch in 0..EPOCHS {
        let chooser = building.chooser(near(2, 2, 4), seed.wrapping_add(epoch))?;
        let similar = building
            .places
            .iter()
            .filter_map(|it| chooser.candidates(*it));
        sum += similar.map(|it| it as u64).sum::<u64>();
    }
    Ok(Sample(vec![Some(sum)]))
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let mut ours = Vec::new();
    let mut trials = usize::MAX;
    for (devices, _) in PAPER {
        let name = name(devices);
        let sums = samples
            .of(&name)
            .filter_map(|(_, it)| it.0.first().copied().flatten());
        let means: Vec<f64> = sums
            .map(|it| it as f64 / devices as f64 / EPOCHS as f64)
            .collect();
        trials = trials.min(means.len());
        ours.push(mean(&means)?);
    }
    let ratios: Vec<f64> = ours
        .iter()
        .zip(PAPER)
        .map(|(ours, it)| ours / it.1)
        .collect();
    let holds = ratios.iter().all(|it| (it - 1.0).abs() <= BAND / 100.0);
    let words = |all: &mut dyn Iterator<Item = f64>| {
        let all: Vec<String> = all.map(|it| format!("{it:.1}")).collect();
        all.join(" / ")
    };
    let names = PAPER.map(|it| it.0.to_string());
    Some(Judgement {
        paper: words(&mut PAPER.iter().map(|it| it.1)),
        ours: words(&mut ours.iter().copied()),
        verdict: if holds {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "The mean over all devices of a grid, two in five of them smart, and over {EPOCHS} epochs. Places have three \
             dimensions: the paper's six hold what a node looked after before, which breaks the agreement \
             of nodes. Holds within {BAND}% of each figure."
        ),
        trials,
        plots: vec![over(
            "Candidates",
            ("devices", &names),
            "smart nodes in one bucket with a device",
            [("ours", ours.clone())],
            Paper::table("table 2", PAPER.map(|it| it.1)),
        )],
    })
}
