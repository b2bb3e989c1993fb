//! K7: how the load is spread over time.

use std::sync::Arc;

use selvedge_core::NodeId;
use selvedge_groups::{Selection, clusters};

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
/// From no group to all.
const SPATIAL: usize = CLUSTERS + ROUTINES + 1;
/// The shares of nodes for which the load is shown.
const SHARES: [f64; 7] = [0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0];
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

/// A histogram, for each epoch and smart node, of the number of its groups: how often 0, 1, and so
/// on up to all. Then, for each node, the number of its groups over all epochs, and the number that
/// it led.
fn measure(config: Selection, seed: u64) -> Result<Sample, Fault> {
    let building = Building::new(seed, Layout::Grid, DEVICES, SPACING);
    let devices = (0..).map(NodeId).zip(building.places.iter().copied());
    let clusters = clusters(devices, CLUSTERS);
    let mut served = vec![[0_u64; 2]; DEVICES];
    let mut spatial = vec![0; SPATIAL];
    for epoch in 0..EPOCHS {
        let chooser = building.chooser(config, seed.wrapping_add(epoch))?;
        let mut at_once = vec![0; DEVICES];
        for target in 0..CLUSTERS + ROUTINES {
            let cluster = clusters.get(target % clusters.len().max(1));
            let devices = cluster.iter().flat_map(|it| it.devices.iter().copied());
            let Some(representative) = chooser.representative(devices) else {
                return Err(Fault::Outcome("a cluster without devices".to_owned()));
            };
            let group = building.group(&chooser, target as u64, representative.0 as usize)?;
            for (nth, member) in group.into_iter().enumerate() {
                if let Some(groups) = at_once.get_mut(member.0 as usize) {
                    *groups += 1;
                }
                if let Some([all, led]) = served.get_mut(member.0 as usize) {
                    *all += 1;
                    *led += u64::from(nth == 0);
                }
            }
        }
        let of_smart = building.smart.iter();
        for groups in of_smart.filter_map(|it| at_once.get(it.id.0 as usize)) {
            if let Some(count) = spatial.get_mut(*groups) {
                *count += 1;
            }
        }
    }
    let smart = building
        .smart
        .iter()
        .filter_map(|it| served.get(it.id.0 as usize));
    let loads = smart.flatten().copied();
    Ok(Sample(spatial.into_iter().chain(loads).map(Some).collect()))
}

/// The share of nodes that are in at most each number of groups at once.
fn at_most(all: &[&Sample]) -> Vec<f64> {
    let of = |groups: usize| -> u64 {
        let counts = all
            .iter()
            .filter_map(|it| it.0.get(groups).copied().flatten());
        counts.sum()
    };
    let total: u64 = (0..SPATIAL).map(of).sum();
    let sums = (0..SPATIAL).scan(0, |sum, groups| {
        *sum += of(groups);
        Some(*sum as f64 / total as f64)
    });
    sums.collect()
}

fn judge(samples: &Samples) -> Option<Judgement> {
    // Of each policy: the median and the tail, as member and as leader.
    let mut found = Vec::new();
    let mut temporal = Vec::new();
    let mut spatial = Vec::new();
    let mut trials = usize::MAX;
    for name in NAMES {
        let all: Vec<&Sample> = samples.of(name).map(|it| it.1).collect();
        trials = trials.min(all.len());
        let of = |part: usize, share: f64| {
            let each = all.iter().filter_map(|it| {
                let loads =
                    it.0.iter()
                        .skip(SPATIAL + part)
                        .step_by(2)
                        .copied()
                        .flatten();
                let loads: Vec<f64> = loads.map(|it| it as f64).collect();
                quantile(&loads, share)
            });
            mean(&each.collect::<Vec<f64>>())
        };
        for part in [0, 1] {
            let line = SHARES.map(|share| of(part, share));
            temporal.push(line.into_iter().collect::<Option<Vec<f64>>>()?);
        }
        spatial.push(at_most(&all));
        found.push([of(0, 0.5)?, of(0, 0.95)?, of(1, 0.5)?, of(1, 0.95)?]);
    }
    let (near, random) = (*found.first()?, *found.get(1)?);
    let [median, tail, led, led_tail] = [0, 1, 2, 3].map(|at: usize| {
        let pair = near.get(at).copied().zip(random.get(at).copied());
        pair.map_or(f64::NAN, |(near, random)| near / random)
    });
    let shares = SHARES.map(|it| format!("{:.0}", it * 100.0));
    let most = spatial
        .iter()
        .flat_map(|it| it.iter().position(|it| *it > 0.999));
    let most = most.max()?;
    let groups: Vec<String> = (0..=most).map(|it| it.to_string()).collect();
    let words = |line: &Vec<f64>| {
        let tail = [0.5, 0.95, 0.999].map(|share| line.iter().position(|it| *it >= share));
        tail.map(|it| it.unwrap_or(SPATIAL).to_string()).join(" / ")
    };
    let at_once: Vec<String> = spatial.iter().map(words).collect();
    let lines = |all: &[Vec<f64>]| {
        let names = ["near", "near, as leader", "random", "random, as leader"];
        names.into_iter().zip(all.to_vec()).collect::<Vec<_>>()
    };
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
             times random's and the tail {led_tail:.2} times (the paper: a higher median). In one epoch a node is in {} groups (median / 95% / 99.9%), near, and {}, random. Holds when the median \
             is within a quarter of random's and the tail is longer.",
            at_once.first()?,
            at_once.get(1)?,
        ),
        trials,
        plots: vec![
            over(
                "Temporal load: groups of a node over 200 epochs, summed",
                ("% of the nodes have at most", &shares),
                "groups",
                lines(&temporal),
                Paper::reports("figure 6 has curves and no numbers"),
            ),
            over(
                "Spatial load: groups of a node at once",
                ("groups", &groups),
                "share of nodes that are in at most so many",
                ["near", "random"].into_iter().zip(
                    spatial
                        .iter()
                        .map(|it| it.iter().copied().take(most + 1).collect()),
                ),
                Paper::reports("figure 6 has curves and no numbers"),
            ),
        ],
    })
}
