//! K7: how the load is spread over time.

use std::sync::Arc;

use chacha20::ChaCha8Rng;
use rand_core::SeedableRng;
use selvedge_core::NodeId;
use selvedge_groups::{Place, Selection};
use selvedge_kgroup::routines::Locking;
use selvedge_kgroup::{GroupState, Site};

use super::house::{CLUSTER, ROUTINE, draw, routine};
use super::lab::{Building, Layout, RANDOM, SPACING};
use crate::claims::plot::over;
use crate::claims::stats::{mean, quantile};
use crate::claims::{Claim, Experiment, Fault, Judgement, Paper, Sample, Samples, Verdict};

const DEVICES: usize = 250;
const CLUSTERS: usize = DEVICES / CLUSTER;
const ROUTINES: usize = 40;
const EPOCHS: u64 = 200;
/// From no group to all.
const SPATIAL: usize = CLUSTERS + ROUTINES + 1;
/// The number of figures of all groups, before those of the nodes.
const OF_GROUPS: usize = SPATIAL + 2;
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
            .zip([Selection::new(), RANDOM])
            .map(|(name, config)| Experiment {
                name: name.to_owned(),
                trials: TRIALS,
                run: Arc::new(move |seed| measure(config, seed)),
            })
            .collect(),
        judge,
    }
}

/// A site with routines, each with devices anywhere.
fn site(building: &Building, selection: Selection, seed: u64) -> Result<Site, Fault> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let devices = (0..).map(NodeId).zip(building.places.iter().copied());
    let smart = building.smart.iter().copied();
    let mut site = Site::new(selection, smart, devices, CLUSTER).map_err(Fault::network)?;
    for _ in 0..ROUTINES {
        let mut devices = draw(&mut rng, DEVICES, ROUTINE + 1);
        let Some(sensor) = devices.pop() else {
            return Err(Fault::Outcome("no devices".to_owned()));
        };
        let definition = routine(sensor, &devices, Locking::Sequential);
        site = site.with_routine(definition).map_err(Fault::network)?;
    }
    Ok(site)
}

/// A histogram, for each epoch and smart node, of the number of its groups: how often 0, 1, and so
/// on up to all. Then the number of members that stay from epoch to epoch, and the sum of the
/// distances to a quorum. Then, for each node, the number of its groups over all epochs, and the
/// number that it led. Groups are chosen as machines choose them.
fn measure(selection: Selection, seed: u64) -> Result<Sample, Fault> {
    let building = Building::new(seed, Layout::Grid, DEVICES, SPACING);
    let site = site(&building, selection, seed)?;
    let plan = site.plan().map_err(Fault::network)?;
    let mut served = vec![[0_u64; 2]; DEVICES];
    let mut spatial = vec![0; SPATIAL];
    let (mut stayed, mut distance) = (0, 0);
    let mut before: Vec<Vec<NodeId>> = Vec::new();
    for epoch in 0..EPOCHS {
        let nodes = site.nodes().iter().copied();
        let epoch = seed.wrapping_add(epoch);
        let chosen = plan.choose::<GroupState>(&site, epoch, nodes, site.groups());
        let groups = chosen.into_iter().map(|it| it.1.map_err(Fault::network));
        let groups = groups.collect::<Result<Vec<Vec<NodeId>>, Fault>>()?;
        let mut at_once = vec![0; DEVICES];
        for (nth, member) in groups.iter().flat_map(|it| it.iter().enumerate()) {
            if let Some(groups) = at_once.get_mut(member.0 as usize) {
                *groups += 1;
            }
            if let Some([all, led]) = served.get_mut(member.0 as usize) {
                *all += 1;
                *led += u64::from(nth == 0);
            }
        }
        let of_smart = building.smart.iter();
        for groups in of_smart.filter_map(|it| at_once.get(it.id.0 as usize)) {
            if let Some(count) = spatial.get_mut(*groups) {
                *count += 1;
            }
        }
        let pairs = before.iter().zip(&groups);
        let both = pairs.map(|(before, now)| now.iter().filter(|it| before.contains(it)).count());
        stayed += both.sum::<usize>() as u64;
        let quorums = groups.iter().map(|it| quorum(&building, it));
        distance += quorums.sum::<u64>();
        before = groups;
    }
    let smart = building
        .smart
        .iter()
        .filter_map(|it| served.get(it.id.0 as usize));
    let loads = smart.flatten().copied();
    let of_groups = spatial.into_iter().chain([stayed, distance]);
    Ok(Sample(of_groups.chain(loads).map(Some).collect()))
}

/// The distance from the first member to the farthest of those that make a quorum with it.
fn quorum(building: &Building, group: &[NodeId]) -> u64 {
    let place = |id: &NodeId| building.places.get(id.0 as usize).copied();
    let mut places = group.iter().filter_map(place);
    let leader = places.next().unwrap_or_default();
    let mut distances: Vec<u64> = places
        .map(|it: Place| it.distance_squared(leader))
        .collect();
    distances.sort_unstable();
    let farthest = distances.get((group.len() / 2).saturating_sub(1));
    farthest.copied().unwrap_or_default().isqrt()
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

/// The share of members that stay in the next epoch, and the mean distance to a quorum.
fn of_groups(all: &[&Sample]) -> Option<String> {
    let of = |at: usize| -> Option<u64> {
        let figures = all.iter().map(|it| it.0.get(SPATIAL + at).copied());
        figures.map(Option::flatten).sum()
    };
    let groups = (all.len() * (CLUSTERS + ROUTINES)) as f64;
    let members = groups * Selection::new().members() as f64;
    let stay = 100.0 * of(0)? as f64 / members / (EPOCHS - 1) as f64;
    let distance = of(1)? as f64 / groups / EPOCHS as f64 / f64::from(SPACING);
    Some(format!(
        "{stay:.0}% of the members stay in the next epoch, and a quorum is {distance:.2} spacings from its leader"
    ))
}

fn judge(samples: &Samples) -> Option<Judgement> {
    // Of each policy: the median and the tail, as member and as leader.
    let mut found = Vec::new();
    let mut temporal = Vec::new();
    let mut spatial = Vec::new();
    let mut groups = Vec::new();
    let mut trials = usize::MAX;
    for name in NAMES {
        let all: Vec<&Sample> = samples.of(name).map(|it| it.1).collect();
        trials = trials.min(all.len());
        let of = |part: usize, share: f64| {
            let each = all.iter().filter_map(|it| {
                let loads =
                    it.0.iter()
                        .skip(OF_GROUPS + part)
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
        groups.push(of_groups(&all)?);
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
    let counts: Vec<String> = (0..=most).map(|it| it.to_string()).collect();
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
             routines over {EPOCHS} epochs: in how many groups a node was, as its machine chooses them. As leader the median is {led:.2} \
             times random's and the tail {led_tail:.2} times (the paper: a higher median). In one epoch a node is in {} groups (median / 95% / 99.9%), near, and {}, random. Near, {}; random, {}. Holds when the median \
             is within a quarter of random's and the tail is longer.",
            at_once.first()?,
            at_once.get(1)?,
            groups.first()?,
            groups.get(1)?,
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
                ("groups", &counts),
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
