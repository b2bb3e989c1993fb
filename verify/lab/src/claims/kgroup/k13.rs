//! K13: waits for devices in the paper's deployment.

use super::deployment::{Deployment, FLOORS, Floor, ROUTINES, Rule, Seen};
use super::house::UNIT;
use super::k14::{TABLE, experiments, operations};
use crate::claims::plot::{Reference, over};
use crate::claims::stats::{mean, median};
use crate::claims::{Claim, Judgement, Paper, Plot, Samples, Verdict};

/// The paper's waits in seconds, as ranges over its settings: for a lock, and synchronization.
const PAPER: [[f64; 2]; 2] = [[3.41, 13.02], [10.23, 20.833]];
/// From the fewest routines to the most.
const STABLE: f64 = 1.5;
const RULES: [(Rule, &str); 2] = [(Rule::Near, "near"), (Rule::Hash, "by hash")];

const fn deployment(floor: Floor, rule: Rule, routines: usize) -> Deployment {
    Deployment {
        floor,
        rule,
        routines,
        is_busy: true,
    }
}

pub(super) fn claim() -> Claim {
    let busy = FLOORS.into_iter().flat_map(|(floor, _)| {
        RULES
            .into_iter()
            .flat_map(move |(rule, _)| ROUTINES.map(|it| deployment(floor, rule, it).experiment()))
    });
    Claim {
        id: "K13",
        claim: "11 nodes: the waits for a lock and to begin, after devices are free, are stable as routines grow",
        source: "CoMesh, section 7, figure 12",
        unit: "times the median reply of a quorum, with 5 to 40 routines: lock, synchronization, grid | line",
        experiments: busy.chain(experiments()).collect(),
        judge,
    }
}

/// A floor under a rule: medians of both waits with each number of routines, in quorums.
struct Found {
    waits: [Vec<f64>; 2],
    /// In units of time: means of the waits for locks, medians of synchronization.
    units: [Vec<f64>; 2],
    /// The number of waits that were measured.
    count: [usize; 2],
    trials: usize,
}

impl Found {
    fn of(samples: &Samples, floor: Floor, rule: Rule) -> Option<Self> {
        let [replies, _, _] = operations(samples, floor, rule)?;
        let quorum = median(&replies)?;
        let all = ROUTINES.map(|it| Seen::of(samples, deployment(floor, rule, it)));
        let all = all.into_iter().collect::<Option<Vec<Seen>>>()?;
        let unit = UNIT.0 as f64;
        let locks = all.iter().map(|it| Some(mean(&it.locks())? / unit));
        let syncs = all.iter().map(|it| Some(median(&it.syncs())? / unit));
        let units = [
            locks.collect::<Option<Vec<f64>>>()?,
            syncs.collect::<Option<Vec<f64>>>()?,
        ];
        let quorums = |line: &Vec<f64>| line.iter().map(|it| it / quorum).collect();
        Some(Self {
            waits: units.each_ref().map(quorums),
            units,
            count: [
                all.iter().map(|it| it.locks().len()).sum(),
                all.iter().map(|it| it.syncs().len()).sum(),
            ],
            trials: all.iter().map(Seen::trials).min()?,
        })
    }
}

fn range(line: &[f64]) -> [f64; 2] {
    let low = line.iter().copied().fold(f64::INFINITY, f64::min);
    let high = line.iter().copied().fold(0.0, f64::max);
    [low, high]
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let paper = PAPER.map(|it| it.map(|seconds| seconds / TABLE[0][0]));
    let mut ours = Vec::new();
    let mut reasons = Vec::new();
    let mut lines = Vec::new();
    let (mut growth, mut trials) = (0.0_f64, usize::MAX);
    let (mut is_below, mut is_within) = (true, true);
    for (floor, title) in FLOORS {
        for (rule, kind) in RULES {
            let found = Found::of(samples, floor, rule)?;
            let ranges = found.waits.each_ref().map(|it| range(it));
            if rule == Rule::Near {
                let words = ranges.map(|[low, high]| format!("{low:.1} to {high:.1}"));
                ours.push(words.join(", "));
                for ([_, high], paper) in ranges.into_iter().zip(paper) {
                    is_below &= high < paper[0];
                    is_within &= high <= paper[1];
                }
                for line in &found.waits {
                    growth = growth.max(line.last()? / line.first()?);
                }
            }
            let units = found.units.each_ref().map(|line| {
                let all: Vec<String> = line.iter().map(|it| format!("{it:.0}")).collect();
                all.join(" / ")
            });
            let [locks, syncs] = found.count;
            reasons.push(format!(
                "{title}, {kind}: {} ({locks} and {syncs} waits)",
                units.join(" | ")
            ));
            lines.push((format!("{title}, {kind}"), found.waits));
            trials = trials.min(found.trials);
        }
    }
    let is_stable = growth <= STABLE;
    let words = paper.map(|[low, high]| format!("{low:.1} to {high:.1}"));
    Some(Judgement {
        paper: format!("{}, stable", words.join(", ")),
        ours: ours.join(" | "),
        verdict: match () {
            () if is_stable && is_below => Verdict::Better,
            () if is_stable && is_within => Verdict::Holds,
            () => Verdict::Differs,
        },
        reason: format!(
            "The paper's 3.41 to 13.02 s for a lock, and 10.23 to 20.83 s, divided by its quorum's 1.08 s (table 4), for seconds are those of its \
             hardware. Means of the waits for a lock | medians of synchronization, in units of time with 5 / 10 / 20 / 40 routines: {}. A lock: from the decision of the \
             former run's group to give all its devices back, until the device's group gives it to the next in its queue. Synchronization: from \
             that moment of the last device of a run to its first step; runs that found all devices free do not count. Sequential locks; five of \
             eleven devices a routine, so nearly all routines meet. With the most routines at most {growth:.2} times as long. Better when all lie below the paper's \
             range and grow by at most {STABLE}, holds when none lies above it.",
            reasons.join("; "),
        ),
        trials,
        plots: vec![
            plot("Wait for a lock, mean", 0, &lines, paper[0]),
            plot("Synchronization delay, median", 1, &lines, paper[1]),
        ],
    })
}

fn plot(title: &str, nth: usize, lines: &[(String, [Vec<f64>; 2])], paper: [f64; 2]) -> Plot {
    let names = ROUTINES.map(|it| it.to_string());
    let lines = lines.iter().filter_map(|(name, waits)| {
        let line = waits.get(nth)?;
        Some((name.as_str(), line.clone()))
    });
    let drawn = paper.map(|it| Reference::everywhere(format!("paper: {it:.1}"), it));
    over(
        title,
        ("routines", &names),
        "times the median reply of a quorum",
        lines,
        Paper::Figures(drawn.to_vec()),
    )
}
