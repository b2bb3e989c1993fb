//! M4: what both feedbacks do at the recommended exponent.

use super::figures::{BAND, TRIALS, excess, paired, spread, verdict_on_cut, worst};
use super::lab::{Setting, Variant};
use crate::claims::stats::{cut, mean, quantile};
use crate::claims::{Axis, Claim, Judgement, Line, Plot, Point, Reference, Samples};

const DETECTION: f64 = 31.2;
const SPREAD: f64 = 47.2;
const PLAIN: Setting = Setting::new(Variant::Plain, 3);
const BOTH: Setting = Setting::new(Variant::Both, 3);
/// The thesis knows no comparison of lists, which helps plain Medley most.
const PLAIN_ALONE: Setting = Setting {
    compares_lists: false,
    ..PLAIN
};
const BOTH_ALONE: Setting = Setting {
    compares_lists: false,
    ..BOTH
};

pub(super) fn claim() -> Claim {
    Claim {
        id: "M4",
        claim: "at m = 3, both feedbacks cut the 95th percentile of the differential first detection time / the dissemination time by",
        source: "Medley-F, section 4.1.1, Random",
        unit: "%",
        experiments: [PLAIN, BOTH, PLAIN_ALONE, BOTH_ALONE]
            .map(|setting| setting.experiment(TRIALS))
            .to_vec(),
        judge,
    }
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let (old, new) = paired(samples, (&PLAIN, &BOTH), excess);
    let tail = |values: &[f64]| quantile(values, 0.95);
    let tail_cut = 100.0 * (1.0 - tail(&new)? / tail(&old)?);
    let (old_spread, new_spread) = paired(samples, (&PLAIN, &BOTH), spread);
    let spread_cut = cut(&old_spread, &new_spread)?;
    let (old_alone, new_alone) = paired(samples, (&PLAIN_ALONE, &BOTH_ALONE), spread);
    let alone_cut = cut(&old_alone, &new_alone)?;
    let point = |x: f64, y: f64, error: f64| Point {
        x,
        y,
        low: y - error,
        high: y + error,
    };
    Some(Judgement {
        paper: format!("{DETECTION:.1} / {SPREAD:.1}"),
        ours: format!("{tail_cut:.1} / {:.1}", spread_cut.value),
        verdict: worst([
            verdict_on_cut(tail_cut, DETECTION),
            verdict_on_cut(spread_cut.value, SPREAD),
        ]),
        reason: format!(
            "95th percentile of the excess {:.0} units plain, {:.0} with both. Mean dissemination {:.0} \
             and {:.0} units, standard error of the cut {:.1}. Our nodes compare lists when they \
             differ, so that plain Medley has less to gain: without that, {:.0} and {:.0} units, a cut \
             of {:.1} (+-{:.1}). Better from the thesis' figures on, holds down to {BAND} points below.",
            tail(&old)?,
            tail(&new)?,
            mean(&old_spread)?,
            mean(&new_spread)?,
            spread_cut.error,
            mean(&old_alone)?,
            mean(&new_alone)?,
            alone_cut.value,
            alone_cut.error,
        ),
        trials: old.len(),
        plots: vec![Plot {
            title: "Cuts by both feedbacks at m = 3".to_owned(),
            x: Axis::Names(
                "figure".to_owned(),
                vec![
                    "95th percentile of excess".to_owned(),
                    "dissemination".to_owned(),
                ],
            ),
            y: Axis::Plain("cut against plain Medley [%]".to_owned()),
            lines: vec![Line {
                name: "both feedbacks".to_owned(),
                points: vec![
                    point(0.0, tail_cut, 0.0),
                    point(1.0, spread_cut.value, spread_cut.error),
                ],
            }],
            references: vec![
                Reference {
                    name: "thesis".to_owned(),
                    y: DETECTION,
                    x: Some((-0.4, 0.4)),
                },
                Reference {
                    name: "thesis".to_owned(),
                    y: SPREAD,
                    x: Some((0.6, 1.4)),
                },
            ],
        }],
    })
}
