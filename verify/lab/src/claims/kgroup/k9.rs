//! K9: availability when more nodes fail than groups are made for.

use std::sync::Arc;

use chacha20::ChaCha8Rng;
use rand_core::SeedableRng;
use selvedge_core::{Choose, NodeId};

use super::lab::{Building, Layout, RANDOM, SPACING, near};
use crate::claims::plot::over;
use crate::claims::{Claim, Experiment, Fault, Judgement, Paper, Sample, Samples, Verdict};

const NODES: usize = 100;
const GROUPS: usize = 30;
/// The numbers of nodes that fail at once.
const FAILURES: [usize; 5] = [2, 3, 5, 9, 15];
/// As many draws as a thousand epochs, which are drawn separately.
const DRAWS: u64 = 1_000;
const TRIALS: u32 = 10;

/// The choice of groups, and of failing nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    /// Groups by hash; any nodes.
    Uniform,
    /// Groups mostly near; nodes that are next to each other, as in a power domain.
    Contiguous,
}

const CASES: [(Case, &str); 2] = [
    (Case::Uniform, "kgroup: availability, anywhere"),
    (Case::Contiguous, "kgroup: availability, next to each other"),
];

pub(super) fn claim() -> Claim {
    Claim {
        id: "K9",
        claim: "with more than f failures all groups still have a quorum as often as the formula says",
        source: "CoMesh, appendix A.4, figure 3",
        unit: "share of draws, with 2, 3, 5, 9 and 15 of 100 failed",
        experiments: CASES
            .into_iter()
            .map(|(case, name)| Experiment {
                name: name.to_owned(),
                trials: TRIALS,
                run: Arc::new(move |seed| measure(case, seed)),
            })
            .collect(),
        judge,
    }
}

/// The number of draws in which all groups have a quorum, for each number of failures.
fn measure(case: Case, seed: u64) -> Result<Sample, Fault> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    // Two in five devices are smart.
    let building = Building::new(seed, Layout::Grid, NODES * 5 / 2, SPACING);
    let config = match case {
        Case::Uniform => RANDOM,
        Case::Contiguous => near(2, 2, 4),
    };
    let mut available = [0; FAILURES.len()];
    for draw in 0..DRAWS {
        let chooser = building.chooser(config, seed.wrapping_add(draw))?;
        let mut groups = Vec::new();
        for target in 0..GROUPS {
            let device = rng.below(building.places.len() as u64) as usize;
            groups.push(building.group(&chooser, target as u64, device)?);
        }
        let order = failing(case, &building, &mut rng);
        for (count, &failures) in available.iter_mut().zip(&FAILURES) {
            let failed = order.get(..failures).unwrap_or_default();
            let has_quorum = |group: &Vec<NodeId>| {
                let lost = group.iter().filter(|it| failed.contains(it)).count();
                lost <= usize::from(config.failures)
            };
            *count += u64::from(groups.iter().all(has_quorum));
        }
    }
    Ok(Sample(available.map(Some).to_vec()))
}

/// Smart nodes in the order in which they fail: any, or those nearest to any one.
fn failing(case: Case, building: &Building, rng: &mut ChaCha8Rng) -> Vec<NodeId> {
    let mut nodes = building.smart.clone();
    for at in 0..nodes.len() {
        let other = at + rng.below((nodes.len() - at) as u64) as usize;
        nodes.swap(at, other);
    }
    let centre = nodes.first().and_then(|it| it.place).unwrap_or_default();
    if case == Case::Contiguous {
        nodes.sort_by_key(|it| it.place.map(|it| it.distance_squared(centre)));
    }
    nodes.into_iter().map(|it| it.id).collect()
}

/// The paper's formula: P1^M with P1 = sum of C(N-F, k-j) C(F, j) / C(N, k) for j up to f failed.
fn formula(failures: usize) -> f64 {
    let config = RANDOM;
    let (members, most) = (config.members(), usize::from(config.failures));
    let least = members.saturating_sub(NODES - failures);
    let ways: f64 = (least..=most)
        .map(|lost| choose(NODES - failures, members - lost) * choose(failures, lost))
        .sum();
    (ways / choose(NODES, members)).powi(GROUPS as i32)
}

fn choose(from: usize, count: usize) -> f64 {
    (0..count)
        .map(|at| (from as f64 - at as f64) / (at as f64 + 1.0))
        .product()
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let mut found = Vec::new();
    let mut trials = usize::MAX;
    for (_, name) in CASES {
        let all: Vec<&Sample> = samples.of(name).map(|it| it.1).collect();
        trials = trials.min(all.len());
        let share = |at: usize| {
            let counts = all.iter().filter_map(|it| it.0.get(at).copied().flatten());
            counts.sum::<u64>() as f64 / (all.len() as f64 * DRAWS as f64)
        };
        found.push((0..FAILURES.len()).map(share).collect::<Vec<f64>>());
    }
    let (uniform, contiguous) = (found.first()?, found.get(1)?);
    let expected = FAILURES.map(formula);
    let draws = trials as f64 * DRAWS as f64;
    let error = |share: f64| (share * (1.0 - share) / draws).sqrt().max(1.0 / draws);
    let holds = uniform
        .iter()
        .zip(expected)
        .all(|(ours, formula)| (ours - formula).abs() <= 4.0 * error(formula));
    let words = |all: &[f64]| {
        let all: Vec<String> = all.iter().map(|it| format!("{it:.3}")).collect();
        all.join(" / ")
    };
    let names = FAILURES.map(|it| it.to_string());
    Some(Judgement {
        paper: words(&expected),
        ours: words(uniform),
        verdict: if trials > 0 && holds {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "{GROUPS} groups of 5 among {NODES} smart nodes. Holds when groups by hash and failures \
             anywhere are within four deviations of the formula. It says nothing of a power domain: where \
             groups are mostly near, and the nodes that fail are next to each other, all groups have a quorum in \
             {} of the draws.",
            words(contiguous)
        ),
        trials,
        plots: vec![over(
            "All groups have a quorum",
            ("failed nodes", &names),
            "share of draws",
            [
                ("by hash, anywhere", uniform.clone()),
                ("near, next to each other", contiguous.clone()),
            ],
            Paper::table("formula", expected),
        )],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: with 2 failed no group of 5 loses three; 9 of 100 are in the notes of the formula.
    #[test]
    fn the_formula_gives_these() {
        assert!((formula(2) - 1.0).abs() < 1e-12);
        assert!((formula(9) - 0.8676).abs() < 5e-5, "{}", formula(9));
        assert!((choose(5, 2) - 10.0).abs() < 1e-12);
    }
}
