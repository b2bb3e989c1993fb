//! M6: detection time and traffic together, against SWIM.

use super::figures::{
    BAND, TRIALS, bound, column, detection, hops, product, verdict_on_cut, worst,
};
use super::lab::{Setting, Variant};
use crate::claims::stats::mean;
use crate::claims::{Axis, Claim, Judgement, Line, Paper, Plot, Point, Reference, Samples};

const SWIM: Setting = Setting::new(Variant::Plain, 0);

/// The thesis' figures at m = 3.
const PAPER: [(Variant, f64); 4] = [
    (Variant::Plain, 35.2),
    (Variant::Active, 37.8),
    (Variant::Passive, 30.0),
    (Variant::Both, 31.2),
];

/// Our rules, which have a bound.
const OURS: [(Variant, u8); 3] = [
    (Variant::Bounded, 3),
    (Variant::Lean, 3),
    (Variant::Lean, 4),
];

/// The goal for our leanest rules.
const TARGET: f64 = 45.0;

pub(super) fn claim() -> Claim {
    let mut experiments = vec![SWIM.experiment(TRIALS)];
    for exponent in 1..=5 {
        for variant in [
            Variant::Plain,
            Variant::Active,
            Variant::Passive,
            Variant::Both,
            Variant::Lean,
        ] {
            experiments.push(Setting::new(variant, exponent).experiment(TRIALS));
        }
    }
    experiments.push(Setting::new(Variant::Bounded, 3).experiment(TRIALS));
    Claim {
        id: "M6",
        claim: "at m = 3, the root of detection time x hop messages is below SWIM's, Medley / active / passive / both, by",
        source: "Medley-F, section 4.1.1, figure 4.5, Random",
        unit: "%",
        experiments,
        judge,
    }
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let swim = product(samples, &SWIM)?;
    let cut_of = |variant, exponent| {
        let product = product(samples, &Setting::new(variant, exponent))?;
        Some(100.0 * (1.0 - product / swim))
    };
    let cuts = PAPER
        .map(|(variant, paper)| Some((cut_of(variant, 3)?, paper)))
        .into_iter()
        .collect::<Option<Vec<_>>>()?;
    let ours = OURS
        .map(|(variant, exponent)| {
            let cut = cut_of(variant, exponent)?;
            let bound = bound(variant, SWIM.nodes as u64)?;
            let name = variant.name();
            Some(format!(
                "{cut:.1} at m = {exponent} ({name}), and nobody is without a sign of life for more \
                 than {bound} units"
            ))
        })
        .into_iter()
        .collect::<Option<Vec<_>>>()?;
    let best = cut_of(Variant::Lean, 4)?.max(cut_of(Variant::Lean, 3)?);
    let reached = if best >= TARGET {
        "reached"
    } else {
        "not reached"
    };
    let swim_hops = mean(&column(samples, &SWIM, hops))?;
    let swim_time = mean(&column(samples, &SWIM, detection))?;
    Some(Judgement {
        paper: PAPER.map(|it| format!("{:.1}", it.1)).join(" / "),
        ours: cuts
            .iter()
            .map(|(ours, _)| format!("{ours:.1}"))
            .collect::<Vec<_>>()
            .join(" / "),
        verdict: worst(
            cuts.iter()
                .map(|&(ours, paper)| verdict_on_cut(ours, paper)),
        ),
        reason: format!(
            "SWIM: {swim_time:.0} units, {swim_hops:.2} hops a node and period. With a bound, which \
             the thesis' rules do not have: {}. The aim of {TARGET} with a bound is {reached}. The \
             thesis' figure for passive feedback is its largest. Better from the thesis' figures \
             on, holds down to {BAND} points below.",
            ours.join("; ")
        ),
        trials: column(samples, &SWIM, detection).len(),
        plots: vec![plot(samples, swim)],
    })
}

fn plot(samples: &Samples, swim: f64) -> Plot {
    let line = |variant: Variant| Line {
        name: variant.name().to_owned(),
        points: (0..=5)
            .filter_map(|exponent| {
                let product = product(samples, &Setting::new(variant, exponent))?;
                let relative = 100.0 * product / swim;
                Some(Point {
                    x: f64::from(exponent),
                    y: relative,
                    low: relative,
                    high: relative,
                })
            })
            .collect(),
    };
    let reference = |name: &str, cut: f64| Reference {
        name: format!("thesis, m = 3: {name}"),
        y: 100.0 - cut,
        x: Some((2.5, 5.0)),
    };
    Plot {
        title: "The root of detection time x hop messages, SWIM = 100".to_owned(),
        x: Axis::Plain("exponent m".to_owned()),
        y: Axis::Plain("product [% of SWIM's]".to_owned()),
        lines: [
            Variant::Plain,
            Variant::Active,
            Variant::Passive,
            Variant::Both,
            Variant::Bounded,
            Variant::Lean,
        ]
        .map(line)
        .to_vec(),
        paper: Paper::Figures(vec![reference("active", 37.8), reference("both", 31.2)]),
    }
}
