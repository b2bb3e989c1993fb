//! M9: nodes move, and no node is notified.

use super::figures::{TRIALS, column, detection, product};
use super::lab::{Setting, Variant};
use super::mobility::Mobility;
use crate::claims::{
    Axis, Claim, Judgement, Line, Paper, Plot, Point, Reference, Samples, Verdict,
};

const METRES: [u32; 4] = [4, 8, 12, 16];

/// The percentage of nodes that move, and then the cost of stale tables, at 16 m at most.
const PAPER: [(usize, f64); 2] = [(10, 7.1), (40, 35.0)];

/// Figures up to this many percentage points above the thesis' cost still hold.
const ABOVE: f64 = 5.0;

const fn setting(percent: usize, metres: u32, fresh: bool) -> Setting {
    Setting {
        mobility: Some(Mobility {
            percent,
            metres,
            fresh,
        }),
        ..Setting::new(Variant::Plain, 3)
    }
}

pub(super) fn claim() -> Claim {
    let mut experiments = Vec::new();
    for (percent, _) in PAPER {
        for metres in METRES {
            for fresh in [false, true] {
                experiments.push(setting(percent, metres, fresh).experiment(TRIALS));
            }
        }
    }
    Claim {
        id: "M9",
        claim: "10% / 40% of the nodes move up to 16 m: tables that stay as they were raise the root of detection time x hop messages by",
        source: "Medley-F, section 4.1.3, figure 4.7, Random, m = 3",
        unit: "%",
        experiments,
        judge,
    }
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let rise = |percent, metres| {
        let stale = product(samples, &setting(percent, metres, false))?;
        let fresh = product(samples, &setting(percent, metres, true))?;
        Some(100.0 * (stale / fresh - 1.0))
    };
    let mut lines = Vec::new();
    let mut at_most = Vec::new();
    for (percent, paper) in PAPER {
        let mut points = Vec::new();
        for metres in METRES {
            let rise = rise(percent, metres)?;
            points.push(Point {
                x: f64::from(metres),
                y: rise,
                low: rise,
                high: rise,
            });
        }
        at_most.push((points.last()?.y, paper));
        lines.push(Line {
            name: format!("{percent}% moved"),
            points,
        });
    }
    let verdict = if at_most.iter().all(|(ours, paper)| ours <= paper) {
        Verdict::Better
    } else if at_most.iter().all(|(ours, paper)| *ours <= paper + ABOVE) {
        Verdict::Holds
    } else {
        Verdict::Differs
    };
    Some(Judgement {
        paper: "at most 7.1 / 35".to_owned(),
        ours: at_most
            .iter()
            .map(|(ours, _)| format!("{ours:.1}"))
            .collect::<Vec<_>>()
            .join(" / "),
        verdict,
        reason: format!(
            "The same moves with new tables are the base. Moves after which the mesh falls apart are \
             drawn again. Better up to the thesis' figures, holds up to {ABOVE} points above."
        ),
        trials: column(samples, &setting(40, 16, false), detection).len(),
        plots: vec![Plot {
            title: "What stale tables cost".to_owned(),
            x: Axis::Plain("largest distance moved [m]".to_owned()),
            y: Axis::Plain("rise of the product [%]".to_owned()),
            lines,
            paper: Paper::Figures(
                PAPER
                    .iter()
                    .map(|&(percent, paper)| Reference {
                        name: format!("thesis, {percent}% moved 16 m"),
                        y: paper,
                        x: Some((12.0, 16.0)),
                    })
                    .collect(),
            ),
        }],
    })
}
