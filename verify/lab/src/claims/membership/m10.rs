//! M10: in how many lists a live node is missing (Table 5.1).

use std::collections::BTreeSet;
use std::sync::Arc;

use selvedge_core::{Delta, Ratio, Span};
use selvedge_membership::Event;
use selvedge_sim::network::Topology;

use super::lab::{PERIOD, Placement, Setting, Variant};
use crate::claims::stats::median;
use crate::claims::{
    Axis, Claim, Experiment, Fault, Judgement, Line, Paper, Plot, Point, Reference, Sample,
    Samples, Verdict,
};

/// Placement, nodes, percent lost on a hop, the thesis' c.
const TABLE: [(Placement, usize, u32, u64); 10] = [
    (Placement::Grid, 49, 5, 4),
    (Placement::Cluster, 49, 5, 4),
    (Placement::Random, 49, 5, 4),
    (Placement::Random, 49, 10, 7),
    (Placement::Random, 49, 15, 10),
    (Placement::Random, 49, 20, 13),
    (Placement::Random, 32, 5, 2),
    (Placement::Random, 64, 5, 5),
    (Placement::Random, 128, 5, 9),
    (Placement::Random, 256, 5, 17),
];

/// Five minutes.
const UNITS: u64 = 300_000;
/// The table has one run a line. We take the median of this many runs of each.
const RUNS: u32 = 50;
/// A line of the table is one run. It agrees with ours when at least one in this many of our runs
/// is at or below it.
const ONE_IN: usize = 20;

pub(super) fn claim() -> Claim {
    Claim {
        id: "M10",
        claim: "in runs of 5 minutes no live node is missing in more lists than c",
        source: "Medley-F, table 5.1",
        unit: "lists; grid, cluster, random of 49 at 5%, random at 10, 15, 20%, random of 32, 64, 128, 256 at 5%",
        experiments: TABLE
            .iter()
            .flat_map(|&line| COLUMNS.map(|column| experiment(line, column)))
            .collect(),
        judge,
    }
}

/// The difference between a run and its line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Column {
    /// Our leanest rules instead of the thesis'.
    ours: bool,
    /// Every hop loses messages, instead of the whole way.
    every_hop: bool,
}

const COLUMNS: [Column; 4] = [
    Column {
        ours: false,
        every_hop: false,
    },
    Column {
        ours: true,
        every_hop: false,
    },
    Column {
        ours: false,
        every_hop: true,
    },
    Column {
        ours: true,
        every_hop: true,
    },
];

fn name((placement, nodes, percent, _): (Placement, usize, u32, u64), column: Column) -> String {
    let rules = if column.ours { "ours" } else { "thesis" };
    let way = if column.every_hop {
        "a hop"
    } else {
        "a message"
    };
    format!("membership: c of {nodes} nodes {placement:?}, {percent}% lost {way}, {rules}")
}

fn experiment(line: (Placement, usize, u32, u64), column: Column) -> Experiment {
    Experiment {
        name: name(line, column),
        trials: RUNS,
        run: Arc::new(move |seed| churn(line, column, seed)),
    }
}

/// The largest number of lists that a live node was missing from at any moment, and how often a
/// live node was declared failed.
fn churn(
    (placement, nodes, percent, _): (Placement, usize, u32, u64),
    column: Column,
    seed: u64,
) -> Result<Sample, Fault> {
    let variant = if column.ours {
        Variant::Lean
    } else {
        Variant::Plain
    };
    let setting = Setting {
        placement,
        nodes,
        ..Setting::new(variant, 3)
    };
    let mut topology = setting.topology(seed).map_err(Fault::network)?;
    if !column.every_hop {
        // The same places, all within one hop.
        let points = (0..nodes).filter_map(|node| topology.point(node)).collect();
        topology = Topology::placed(points, u32::MAX).map_err(Fault::network)?;
    }
    let mut mesh = setting.settled_at(topology, seed, Ratio::new(percent, 100))?;
    let mut missing: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); nodes];
    let (mut most, mut declared) = (0, 0);
    for _ in 0..UNITS / PERIOD {
        mesh.run_for(Span::millis(PERIOD));
        for (_, node, event) in mesh.drain_events() {
            let Event::Changed(delta) = event else {
                continue;
            };
            let about = delta.member().id.0 as usize - 1;
            let Some(lists) = missing.get_mut(about) else {
                continue;
            };
            if matches!(delta, Delta::Failed(_)) {
                declared += 1;
                lists.insert(node);
                most = most.max(lists.len() as u64);
            } else if matches!(delta, Delta::Joined(_) | Delta::Refuted(_)) {
                lists.remove(&node);
            }
        }
    }
    Ok(Sample(vec![Some(most), Some(declared)]))
}

/// The results of the runs of one line and column.
#[derive(Clone, Copy, Debug)]
struct Runs {
    median: u64,
    runs: usize,
    /// Runs that stayed at or below the thesis' figure.
    within: usize,
}

fn runs(samples: &Samples, line: (Placement, usize, u32, u64), column: Column) -> Option<Runs> {
    let runs: Vec<f64> = samples
        .of(&name(line, column))
        .filter_map(|(_, sample)| sample.0.first().copied().flatten())
        .map(|most| most as f64)
        .collect();
    Some(Runs {
        // Rounded up: half a list is one.
        median: median(&runs)?.ceil() as u64,
        runs: runs.len(),
        within: runs.iter().filter(|&&most| most <= line.3 as f64).count(),
    })
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let mut columns: [Vec<u64>; 4] = Default::default();
    let mut trials = usize::MAX;
    let mut within = Vec::new();
    for line in TABLE {
        for (figures, column) in columns.iter_mut().zip(COLUMNS) {
            let runs = runs(samples, line, column)?;
            trials = trials.min(runs.runs);
            figures.push(runs.median);
            if column == COLUMNS[0] {
                within.push((runs.within, runs.runs));
            }
        }
    }
    let [thesis, ours, thesis_by_hop, ours_by_hop] = &columns;
    let papers = TABLE.map(|it| it.3);
    let words = |column: &[u64]| {
        let words = column.iter().map(ToString::to_string);
        words.collect::<Vec<_>>().join(", ")
    };
    let shares = within
        .iter()
        .map(|(within, runs)| format!("{within} of {runs}"));
    let shares = shares.collect::<Vec<_>>().join(", ");
    let line = |name: &str, column: &[u64]| Line {
        name: name.to_owned(),
        points: column
            .iter()
            .zip(0..)
            .map(|(&most, nth)| Point {
                x: f64::from(nth),
                y: most as f64,
                low: most as f64,
                high: most as f64,
            })
            .collect(),
    };
    let names = TABLE.map(|(placement, nodes, percent, _)| {
        let short = match placement {
            Placement::Random => "rnd",
            Placement::Cluster => "clu",
            Placement::Grid => "grid",
        };
        format!("{short} {nodes} {percent}%")
    });
    Some(Judgement {
        paper: words(&papers),
        ours: words(thesis),
        verdict: if thesis
            .iter()
            .zip(papers)
            .all(|(&ours, paper)| ours <= paper)
        {
            Verdict::Better
        } else if within.iter().all(|(within, runs)| within * ONE_IN >= *runs) {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "The median of all runs under the thesis' rules (m = 3, suspicions told at once), with a loss \
             of the whole way, as the table's \"message drop rate\" is read. Under our leanest rules: \
             {}. Were it each hop that loses so much: {} under the thesis' rules, {} under ours: then a \
             refutation does not reach all within 8 periods. The table's figures are of one run each; at or \
             below them are {shares} of ours. Better when no median is above the thesis', holds when at \
             least one run in {ONE_IN} is at or below it in every line.",
            words(ours),
            words(thesis_by_hop),
            words(ours_by_hop),
        ),
        trials,
        plots: vec![Plot {
            title: "In how many lists a live node was missing at most".to_owned(),
            x: Axis::Names("placement, nodes, loss".to_owned(), names.to_vec()),
            y: Axis::Plain("lists".to_owned()),
            lines: vec![
                line("the thesis' rules", thesis),
                line("our leanest rules", ours),
            ],
            paper: Paper::Figures(
                TABLE
                    .iter()
                    .zip(0..)
                    .map(|(it, nth)| Reference::at(nth, "thesis", it.3 as f64))
                    .collect(),
            ),
        }],
    })
}
