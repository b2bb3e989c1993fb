//! C8: how complete Medley-F keeps the lists that Camera asks.

use std::sync::Arc;

use crate::claims::membership::lists::{Completeness, Lists, TENTHS};
use crate::claims::stats::mean;
use crate::claims::{
    Axis, Claim, Experiment, Fault, Judgement, Line, Paper, Plot, Point, Reference, Sample,
    Samples, Verdict,
};

const NODES: usize = 256;
/// Percent lost on a hop.
const LOSS: u32 = 5;
/// The thesis' 350,000 units, of which a period is 20.
const PERIODS: u64 = 17_500;
/// The thesis shows one run.
const RUNS: u32 = 5;
/// The limit of the mean list, and the mean of the smallest lists.
const PAPER: [f64; 2] = [255.0, 240.0];
/// Figures down to this many entries below the thesis' still hold.
const BANDS: [f64; 2] = [1.0, 5.0];

pub(super) fn claim() -> Claim {
    Claim {
        id: "C8",
        claim: "on Medley-F's lists of 256 nodes, 5% lost on a hop, any two have a friend in common: the mean list tends to / the smallest that a node ever has is in the mean",
        source: "Camera, section 2.3, figure 2.1",
        unit: "entries; the fewest that two nodes ever had in common",
        experiments: [false, true].map(experiment).into(),
        judge,
    }
}

fn name(ours: bool) -> String {
    let rules = if ours { "ours" } else { "thesis" };
    format!("camera: lists of {NODES} nodes, {LOSS}% lost a hop, {rules}")
}

fn experiment(ours: bool) -> Experiment {
    Experiment {
        name: name(ours),
        trials: RUNS,
        run: Arc::new(move |seed| watch(ours, seed)),
    }
}

fn watch(ours: bool, seed: u64) -> Result<Sample, Fault> {
    let lists = Lists {
        nodes: NODES,
        loss: LOSS,
        ours,
    };
    let Completeness {
        entries,
        smallest_of_each,
        smallest,
        common,
        declared,
    } = lists.watch(PERIODS, seed)?;
    let figures = [smallest_of_each, smallest, common, declared];
    Ok(Sample(
        figures.into_iter().chain(entries).map(Some).collect(),
    ))
}

/// The results of all runs under some rules.
struct Figures {
    /// The mean list, in each tenth of the time.
    lists: Vec<f64>,
    smallest_of_each: f64,
    smallest: u64,
    common: u64,
    /// Entries removed by a false failure, for each list and 1,000 periods.
    declared: f64,
    runs: usize,
}

impl Figures {
    fn of(ours: bool, samples: &Samples) -> Option<Self> {
        let name = name(ours);
        let column = |nth: usize| -> Vec<u64> {
            let all = samples.of(&name);
            all.filter_map(|(_, sample)| sample.0.get(nth).copied().flatten())
                .collect()
        };
        let per = |nth: usize, unit: f64| {
            let figures: Vec<f64> = column(nth).iter().map(|&it| it as f64 / unit).collect();
            mean(&figures)
        };
        let nodes = NODES as f64;
        let lists = (4..4 + TENTHS).map(|nth| per(nth, nodes * PERIODS as f64 / TENTHS as f64));
        Some(Self {
            lists: lists.collect::<Option<_>>()?,
            smallest_of_each: per(0, nodes)?,
            smallest: column(1).into_iter().min()?,
            common: column(2).into_iter().min()?,
            declared: per(3, nodes * PERIODS as f64 / 1_000.0)?,
            runs: column(0).len(),
        })
    }

    fn ours(&self) -> [f64; 2] {
        let last = self.lists.last().copied().unwrap_or_default();
        [last, self.smallest_of_each]
    }
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let [thesis, ours] = [false, true].map(|ours| Figures::of(ours, samples));
    let (thesis, ours) = (thesis?, ours?);
    let words = |it: &Figures| {
        let [mean, smallest] = it.ours();
        format!("{mean:.1} / {smallest:.1}; {}", it.common)
    };
    let reaches = |bands: [f64; 2]| {
        let limits = PAPER.iter().zip(bands).map(|(paper, band)| paper - band);
        // To whole entries, as the thesis gives them.
        let figures = thesis.ours().map(f64::round);
        thesis.common > 0 && figures.iter().zip(limits).all(|(it, limit)| *it >= limit)
    };
    let line = |name: &str, figures: &Figures| Line {
        name: name.to_owned(),
        points: figures
            .lists
            .iter()
            .zip(1..)
            .map(|(&y, tenth)| Point {
                x: f64::from(tenth) * 35.0,
                y,
                low: y,
                high: y,
            })
            .collect(),
    };
    let [mean, smallest] = PAPER;
    Some(Judgement {
        paper: format!("{mean:.0} / {smallest:.0}; above 0"),
        ours: words(&thesis),
        verdict: if reaches([0.0; 2]) {
            Verdict::Better
        } else if reaches(BANDS) {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "Under the thesis' rules (m = 3, suspicions told at once), over 350,000 units, of which the \
             last tenth gives the mean list; a node's list is without itself, so 255 are all. The \
             smallest list of any node had {} entries; a list lost somebody {:.2} times in 1,000 \
             periods, always falsely, for nobody fails. Under our leanest rules: {}, the smallest list \
             {}, {:.2} times. To whole entries: better from the thesis' figures on, holds down to {:.0} \
             and {:.0} below them, as long as any two nodes have somebody in common at the end of every period.",
            thesis.smallest,
            thesis.declared,
            words(&ours),
            ours.smallest,
            ours.declared,
            BANDS[0],
            BANDS[1],
        ),
        trials: thesis.runs.min(ours.runs),
        plots: vec![Plot {
            title: "The mean list over time".to_owned(),
            x: Axis::Plain("thousands of units".to_owned()),
            y: Axis::Plain("entries".to_owned()),
            lines: vec![
                line("the thesis' rules", &thesis),
                line("our leanest rules", &ours),
            ],
            paper: Paper::Figures(vec![Reference::everywhere("thesis", mean)]),
        }],
    })
}
