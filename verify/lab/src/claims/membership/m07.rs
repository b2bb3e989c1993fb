//! M7: a whole cluster fails.

use super::figures::{EXPONENTS, TRIALS, column, detection, paired};
use super::lab::{Fault, PATIENCE, PERIOD, Placement, Setting, Variant};
use crate::claims::stats::{cut, mean};
use crate::claims::{Axis, Claim, Judgement, Line, Paper, Plot, Point, Samples, Verdict};

const VARIANTS: [Variant; 4] = [
    Variant::Plain,
    Variant::Active,
    Variant::Passive,
    Variant::Lean,
];

/// The highest exponent of the thesis' figure.
const HIGH: u8 = 5;

const fn setting(variant: Variant, exponent: u8) -> Setting {
    Setting {
        placement: Placement::Cluster,
        fault: Fault::Domain,
        ..Setting::new(variant, exponent)
    }
}

pub(super) fn claim() -> Claim {
    let mut experiments = vec![setting(Variant::Plain, 0).experiment(TRIALS)];
    for variant in VARIANTS {
        for exponent in EXPONENTS {
            experiments.push(setting(variant, exponent).experiment(TRIALS));
        }
    }
    Claim {
        id: "M7",
        claim: "a whole cluster fails: at m = 5 the mean first detection is cut more by passive feedback than by active",
        source: "Medley-F, section 4.1.1, figure 4.3, Cluster",
        unit: "% cut by passive, by active",
        experiments,
        judge,
    }
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let cut_by = |variant| {
        let settings = (&setting(Variant::Plain, HIGH), &setting(variant, HIGH));
        let (base, other) = paired(samples, settings, detection);
        Some((cut(&base, &other)?, base.len()))
    };
    let ((passive, trials), (active, _)) = (cut_by(Variant::Passive)?, cut_by(Variant::Active)?);
    let (lean, _) = cut_by(Variant::Lean)?;
    let plain = |exponent| {
        mean(&column(
            samples,
            &setting(Variant::Plain, exponent),
            detection,
        ))
    };
    let verdict = if passive.value > active.value && active.value > 0.0 {
        Verdict::Holds
    } else {
        Verdict::Differs
    };
    let unaware = VARIANTS
        .map(|variant| setting(variant, HIGH).seen(samples))
        .iter()
        .flat_map(|seen| seen.values().map(|seen| seen.unaware))
        .filter(|&unaware| unaware > 0)
        .count();
    let line = |variant: Variant| Line {
        name: variant.name().to_owned(),
        points: (0..=HIGH)
            .filter_map(|exponent| {
                let times = column(samples, &setting(variant, exponent), detection);
                Point::of(f64::from(exponent), &times)
            })
            .collect(),
    };
    Some(Judgement {
        paper: "passive above active, active above 0".to_owned(),
        ours: format!("{:.1}, {:.1}", passive.value, active.value),
        verdict,
        reason: format!(
            "Mean first detection over all that fail, plain: {:.0} units at m = 1, {:.0} at m = {HIGH}. \
             Standard errors {:.1} and {:.1}. Our leanest rules cut by {:.1}: their turns reach the \
             middle of the dead cluster. In {unaware} trials at m = {HIGH} some had not learned of all \
             failures after {} units, and count as that. Active feedback works before the failure \
             and within the cluster, where all fail together. Holds when both cuts are above 0 and passive is above \
             active.",
            plain(1)?,
            plain(HIGH)?,
            passive.error,
            active.error,
            lean.value,
            PATIENCE * PERIOD,
        ),
        trials,
        plots: vec![Plot {
            title:
                "First detection when a whole cluster fails; bars: quartiles of the trials' means"
                    .to_owned(),
            x: Axis::Plain("exponent m".to_owned()),
            y: Axis::Plain("first detection [units]".to_owned()),
            lines: VARIANTS.map(line).to_vec(),
            paper: Paper::reports(
                "at high m passive feedback helps more than active (figure 4.3, curves)",
            ),
        }],
    })
}
