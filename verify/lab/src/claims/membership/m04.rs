//! M4: the effect of both feedbacks at the recommended exponent.

use super::figures::{BAND, TRIALS, column, excess, paired, spread, verdict_on_cut, worst};
use super::lab::{Setting, Variant};
use crate::claims::stats::{Estimate, cut, mean, quantile, tail_cut};
use crate::claims::{Axis, Claim, Judgement, Line, Paper, Plot, Point, Reference, Samples};

/// The share of all trials below the tail.
const TAIL: f64 = 0.95;
const DETECTION: f64 = 31.2;
const SPREAD: f64 = 47.2;
const PLAIN: Setting = Setting::new(Variant::Plain, 3);
/// All targets are equally likely: no choice of targets has a shorter tail.
const SWIM: Setting = Setting::new(Variant::Plain, 0);
const BOTH: Setting = Setting::new(Variant::Both, 3);

pub(super) fn claim() -> Claim {
    Claim {
        id: "M4",
        claim: "at m = 3, both feedbacks cut the 95th percentiles of the differential first detection time / the dissemination time by",
        source: "Medley-F, section 4.1.1, Random",
        unit: "%",
        experiments: [SWIM, PLAIN, BOTH]
            .map(|setting| setting.experiment(TRIALS))
            .to_vec(),
        judge,
    }
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let (old, new) = paired(samples, (&PLAIN, &BOTH), excess);
    let tail = |values: &[f64]| quantile(values, TAIL);
    let swim = column(samples, &SWIM, excess);
    let found = tail_cut(&old, &new, TAIL)?;
    let (old_spread, new_spread) = paired(samples, (&PLAIN, &BOTH), spread);
    let found_spread = tail_cut(&old_spread, &new_spread, TAIL)?;
    let mean_cut = cut(&old_spread, &new_spread)?;
    let point = |x: f64, cut: Estimate| Point {
        x,
        y: cut.value,
        low: cut.value - cut.error,
        high: cut.value + cut.error,
    };
    Some(Judgement {
        paper: format!("{DETECTION:.1} / {SPREAD:.1}"),
        ours: format!("{:.1} / {:.1}", found.value, found_spread.value),
        verdict: worst([
            verdict_on_cut(found.value, DETECTION),
            verdict_on_cut(found_spread.value, SPREAD),
        ]),
        reason: format!(
            "Standard errors {:.1} and {:.1}. The excess {:.0} units plain, {:.0} with both; dissemination {:.0} and {:.0}. Of the means, \
             {:.0} and {:.0} units, dissemination is cut by {:.1} (+-{:.1}). The tail of the excess is the wait for a random \
             probe: SWIM, which probes all alike, has {:.0} units, so that no choice of targets can cut \
             more than {:.1} from plain Medley's. The thesis' sentence is \
             read as of 95th percentiles in both parts. Better from the thesis' figures on, holds down to \
             {BAND} points below.",
            found.error,
            found_spread.error,
            tail(&old)?,
            tail(&new)?,
            tail(&old_spread)?,
            tail(&new_spread)?,
            mean(&old_spread)?,
            mean(&new_spread)?,
            mean_cut.value,
            mean_cut.error,
            tail(&swim)?,
            100.0 * (1.0 - tail(&swim)? / tail(&old)?),
        ),
        trials: old.len(),
        plots: vec![Plot {
            title: "Cuts by both feedbacks at m = 3; bars: one standard error".to_owned(),
            x: Axis::Names(
                "figure".to_owned(),
                vec![
                    "95th percentile of excess".to_owned(),
                    "95th percentile of dissemination".to_owned(),
                ],
            ),
            y: Axis::Plain("cut against plain Medley [%]".to_owned()),
            lines: vec![Line {
                name: "both feedbacks".to_owned(),
                points: vec![point(0.0, found), point(1.0, found_spread)],
            }],
            paper: Paper::Figures(vec![
                Reference::at(0, "thesis", DETECTION),
                Reference::at(1, "thesis", SPREAD),
            ]),
        }],
    })
}
