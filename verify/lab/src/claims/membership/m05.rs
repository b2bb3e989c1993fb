//! M5: half of the nodes fail at once.

use super::figures::{TRIALS, detection, paired};
use super::lab::{Fault, Setting, Variant};
use crate::claims::stats::mean;
use crate::claims::{
    Axis, Claim, Judgement, Line, Paper, Plot, Point, Reference, Samples, Verdict,
};

/// Exponent, rules, name, the thesis' gap.
const PAPER: [(u8, Variant, &str, f64); 3] = [
    (0, Variant::Plain, "SWIM", 12.3),
    (3, Variant::Plain, "Medley", 20.6),
    (3, Variant::Both, "both feedbacks", 15.8),
];

/// Figures up to this many percentage points above the thesis' gap still hold.
const ABOVE: f64 = 5.0;

fn settings(exponent: u8, variant: Variant) -> (Setting, Setting) {
    let one = Setting::new(variant, exponent);
    let fault = Fault::Half;
    (one, Setting { fault, ..one })
}

pub(super) fn claim() -> Claim {
    let all = PAPER
        .map(|(exponent, variant, ..)| (exponent, variant))
        .into_iter()
        .chain([(3, Variant::Lean)]);
    Claim {
        id: "M5",
        claim: "24 of 49 nodes fail at once: the mean first detection takes longer than that of one failure, SWIM / Medley / with both feedbacks, by",
        source: "Medley-F, section 4.1.1, figure 4.2, Random",
        unit: "%",
        experiments: all
            .flat_map(|(exponent, variant)| {
                let (one, half) = settings(exponent, variant);
                [one.experiment(TRIALS), half.experiment(TRIALS)]
            })
            .collect(),
        judge,
    }
}

/// The gap in percent, and of how many trials.
fn gap(samples: &Samples, exponent: u8, variant: Variant) -> Option<(f64, usize)> {
    let (one, half) = settings(exponent, variant);
    let (one, half) = paired(samples, (&one, &half), detection);
    Some((100.0 * (mean(&half)? / mean(&one)? - 1.0), one.len()))
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let mut gaps = Vec::new();
    let mut trials = usize::MAX;
    for (exponent, variant, ..) in PAPER {
        let (gap, count) = gap(samples, exponent, variant)?;
        gaps.push(gap);
        trials = trials.min(count);
    }
    let (lean, _) = gap(samples, 3, Variant::Lean)?;
    let pairs = || gaps.iter().zip(PAPER).map(|(&ours, it)| (ours, it.3));
    let verdict = if pairs().all(|(ours, paper)| ours <= paper) {
        Verdict::Better
    } else if pairs().all(|(ours, paper)| ours <= paper + ABOVE) {
        Verdict::Holds
    } else {
        Verdict::Differs
    };
    let times = |exponent, variant| {
        let (_, half) = settings(exponent, variant);
        super::figures::column(samples, &half, detection)
    };
    let bars = PAPER
        .iter()
        .zip(0..)
        .filter_map(|(&(exponent, variant, ..), nth)| {
            Point::of(f64::from(nth), &times(exponent, variant))
        });
    Some(Judgement {
        paper: PAPER.map(|it| format!("{:.1}", it.3)).join(" / "),
        ours: gaps
            .iter()
            .map(|gap| format!("{gap:.1}"))
            .collect::<Vec<_>>()
            .join(" / "),
        verdict,
        reason: format!(
            "Our leanest rules: {lean:.1}. Mean over all that fail. Better up to the thesis' figures, \
             holds up to {ABOVE} points above."
        ),
        trials,
        plots: vec![
            Plot {
                title: "How much longer detection takes when half of all fail".to_owned(),
                x: Axis::Names(
                    "rules".to_owned(),
                    PAPER.map(|it| it.2.to_owned()).to_vec(),
                ),
                y: Axis::Plain("gap [%]".to_owned()),
                lines: vec![Line {
                    name: "measured".to_owned(),
                    points: gaps
                        .iter()
                        .zip(0..)
                        .map(|(&gap, nth)| Point {
                            x: f64::from(nth),
                            y: gap,
                            low: gap,
                            high: gap,
                        })
                        .collect(),
                }],
                paper: Paper::Figures(
                    PAPER
                        .iter()
                        .zip(0..)
                        .map(|(it, nth)| Reference::at(nth, "thesis", it.3))
                        .collect(),
                ),
            },
            Plot {
                title: "First detection time when half of all fail; bars: quartiles of the trials' means".to_owned(),
                x: Axis::Names(
                    "rules".to_owned(),
                    PAPER.map(|it| it.2.to_owned()).to_vec(),
                ),
                y: Axis::Plain("first detection [units]".to_owned()),
                lines: vec![Line {
                    name: "measured".to_owned(),
                    points: bars.collect(),
                }],
                paper: Paper::reports("it gives the gaps above, and no times"),
            },
        ],
    })
}
