//! K7: how the load is spread over time.

use std::sync::Arc;

use selvedge_core::NodeId;
use selvedge_kgroup::{Selection, clusters};

use super::lab::{Building, Layout, SPACING, near};
use crate::claims::plot::over;
use crate::claims::stats::{mean, quantile};
use crate::claims::{Claim, Experiment, Fault, Judgement, Paper, Sample, Samples, Verdict};

const DEVICES: usize = 250;
/// 25 devices in a cluster (table 3).
const CLUSTERS: usize = 10;
/// Each belongs to a cluster by one of its devices.
const ROUTINES: usize = 40;
const EPOCHS: u64 = 200;
const TRIALS: u32 = 10;
const NAMES: [&str; 2] = ["kgroup: load, near", "kgroup: load, random"];

pub(super) fn claim() -> Claim {
    Claim {
        id: "K7",
        claim: "median temporal load of LSH against random, as leader or member; the tail (95% quantile) is longer",
        source: "CoMesh, section 6.3, figure 6",
        unit: "median and 95% of near over random",
        experiments: NAMES
            .into_iter()
            .zip([near(2, 2, 4), Selection::new()])
            .map(|(name, config)| Experiment {
                name: name.to_owned(),
                trials: TRIALS,
                run: Arc::new(move |seed| measure(config, seed)),
            })
            .collect(),
        judge,
    }
}

/// For each smart node in how many groups it was, and how many it led, over all epochs.
fn measure(config: Selection, seed: u64) -> Result<Sample, Fault> {
    let building = Building::new(seed, Layout::Grid, DEVICES, SPACING);
    let devices = (0..).map(NodeId).zip(building.places.iter().copied());
    let clusters = clusters(devices, CLUSTERS);
    let mut served = vec![[0_u64; 2]; DEVICES];
    for epoch in 0..EPOCHS {
        let chooser = building.chooser(config, seed.wrapping_add(epoch))?;
        for target in 0..CLUSTERS + ROUTINES {
            let cluster = clusters.get(target % clusters.len().max(1));
            let devices = cluster.iter().flat_map(|it| it.devices.iter().copied());
            let Some(representative) = chooser.representative(devices) else {
                return Err(Fault::Outcome("a cluster without devices".to_owned()));
            };
            let group = building.group(&chooser, target as u64, representative.0 as usize)?;
            for (nth, member) in group.into_iter().enumerate() {
                if let Some([all, led]) = served.get_mut(member.0 as usize) {
                    *all += 1;
                    *led += u64::from(nth == 0);
                }
            }
        }
    }
    let smart = building
        .smart
        .iter()
        .filter_map(|it| served.get(it.id.0 as usize));
    Ok(Sample(smart.flatten().copied().map(Some).collect()))
}

fn judge(samples: &Samples) -> Option<Judgement> {
    // Of each policy: the median and the tail, as member and as leader.
    let mut found = Vec::new();
    let mut trials = usize::MAX;
    for name in NAMES {
        let all: Vec<&Sample> = samples.of(name).map(|it| it.1).collect();
        trials = trials.min(all.len());
        let of = |part: usize, share: f64| {
            let each = all.iter().filter_map(|it| {
                let loads = it.0.iter().skip(part).step_by(2).copied().flatten();
                let loads: Vec<f64> = loads.map(|it| it as f64).collect();
                quantile(&loads, share)
            });
            mean(&each.collect::<Vec<f64>>())
        };
        found.push([of(0, 0.5)?, of(0, 0.95)?, of(1, 0.5)?, of(1, 0.95)?]);
    }
    let (near, random) = (*found.first()?, *found.get(1)?);
    let [median, tail, led, led_tail] = [0, 1, 2, 3].map(|at: usize| {
        let pair = near.get(at).copied().zip(random.get(at).copied());
        pair.map_or(f64::NAN, |(near, random)| near / random)
    });
    let names = ["median", "95%", "median as leader", "95% as leader"].map(ToOwned::to_owned);
    Some(Judgement {
        paper: "about 1, and more".to_owned(),
        ours: format!("{median:.2}, and {tail:.2}"),
        verdict: if (0.75..=1.25).contains(&median) && tail > 1.0 {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "Of 100 smart nodes among 250 devices of a grid, with {CLUSTERS} clusters and {ROUTINES} \
             routines over {EPOCHS} epochs: in how many groups a node was. As leader the median is {led:.2} \
             times random's and the tail {led_tail:.2} times (the paper: a higher median). Holds when the median \
             is within a quarter of random's and the tail is longer."
        ),
        trials,
        plots: vec![over(
            "Load of a node over 200 epochs",
            ("", &names),
            "groups",
            [("near", near.to_vec()), ("random", random.to_vec())],
            Paper::says("figure 6 has curves and no numbers"),
        )],
    })
}
