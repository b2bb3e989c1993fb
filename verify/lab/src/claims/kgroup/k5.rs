//! K5: near members cost fewer hops.

use std::sync::Arc;

use super::lab::{Building, Layout, RANDOM, SPACING, near};
use crate::claims::plot::{Reference, over};
use crate::claims::stats::mean;
use crate::claims::{Claim, Experiment, Fault, Judgement, Paper, Sample, Samples, Verdict};

const DEVICES: usize = 1_000;
/// With this reach random members of a grid are as many hops apart as in the paper: eighteen
/// neighbours in reach of each other.
const REACH: i32 = SPACING * 145 / 100;
const TRIALS: u32 = 10;
const LAYOUTS: [(Layout, &str); 3] = [
    (Layout::Grid, "kgroup: quorum distance, grid"),
    (Layout::Random, "kgroup: quorum distance, random"),
    (Layout::Clustered, "kgroup: quorum distance, clustered"),
];
/// The paper's figures, near and random.
const PAPER: [f64; 2] = [2.4, 5.3];

pub(super) fn claim() -> Claim {
    Claim {
        id: "K5",
        claim: "average quorum distance among 1,000 devices, LSH with about 21 candidates against random",
        source: "CoMesh, section 3.6, figure 2(c)",
        unit: "hops, near / random",
        experiments: LAYOUTS
            .into_iter()
            .map(|(layout, name)| Experiment {
                name: name.to_owned(),
                trials: TRIALS,
                run: Arc::new(move |seed| measure(layout, seed)),
            })
            .collect(),
        judge,
    }
}

/// The hops from a leader to the members of a quorum, the farthest of them, as sums over all
/// devices: near, random, candidates.
fn measure(layout: Layout, seed: u64) -> Result<Sample, Fault> {
    let building = Building::new(seed, layout, DEVICES, REACH);
    let mut sums = [0, 0, 0];
    for (policy, config) in [near(3, 2, 4), RANDOM].into_iter().enumerate() {
        let chooser = building.chooser(config, seed)?;
        for (device, &place) in building.places.iter().enumerate() {
            let group = building.group(&chooser, device as u64, device)?;
            let mut members = group.iter().map(|it| it.0 as usize);
            let hops = building.hops(members.next().unwrap_or_default());
            let mut hops: Vec<u32> = members.filter_map(|it| hops.get(it).copied()).collect();
            hops.sort_unstable();
            // The leader counts as well.
            let farthest = hops.get(usize::from(config.failures) - 1);
            if let Some(sum) = sums.get_mut(policy) {
                *sum += u64::from(farthest.copied().unwrap_or_default());
            }
            let similar = chooser.candidates(place).map(|it| it as u64);
            sums[2] += similar.unwrap_or_default();
        }
    }
    Ok(Sample(sums.map(Some).to_vec()))
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let mut found = Vec::new();
    let mut trials = usize::MAX;
    for (_, name) in LAYOUTS {
        let all: Vec<&Sample> = samples.of(name).map(|it| it.1).collect();
        let of = |at: usize| {
            let sums = all.iter().filter_map(|it| it.0.get(at).copied().flatten());
            let means: Vec<f64> = sums.map(|it| it as f64 / DEVICES as f64).collect();
            mean(&means)
        };
        found.push([of(0)?, of(1)?, of(2)?]);
        trials = trials.min(all.len());
    }
    let [near, random, candidates] = *found.first()?;
    let ratio = near / random;
    let paper = PAPER[0] / PAPER[1];
    let words: Vec<String> = found
        .iter()
        .zip(["grid", "random", "clustered"])
        .map(|([near, random, similar], name)| {
            format!("{name} {near:.2} / {random:.2} with {similar:.0} candidates")
        })
        .collect();
    let names = ["grid", "random", "clustered"].map(ToOwned::to_owned);
    let line = |at: usize| found.iter().filter_map(|it| it.get(at).copied()).collect();
    Some(Judgement {
        paper: format!("{} / {}", PAPER[0], PAPER[1]),
        ours: format!("{near:.1} / {random:.1}"),
        verdict: match () {
            () if ratio <= paper => Verdict::Better,
            () if ratio <= paper * 1.25 => Verdict::Holds,
            () => Verdict::Differs,
        },
        reason: format!(
            "Hops from the leader to the farther of the two members that make a quorum with it, in a grid; k = 5. The \
             paper lost m, l and r of this figure; m = 3, l = 2, r = 4 gives {candidates:.0} candidates, and a \
             reach at which random groups are as far apart as in the paper is taken. {}. Better when near is \
             a smaller share of random than in the paper ({paper:.2}; here {ratio:.2}), holds up to a quarter \
             above it.",
            words.join("; ")
        ),
        trials,
        plots: vec![over(
            "Hops to a quorum",
            ("layout", &names),
            "hops",
            [("near", line(0)), ("random", line(1))],
            Paper::Figures(
                [("paper, near", PAPER[0]), ("paper, random", PAPER[1])]
                    .map(|(name, hops)| Reference::at(0, name, hops))
                    .to_vec(),
            ),
        )],
    })
}
