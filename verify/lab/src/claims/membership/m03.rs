//! M3: feedback cuts the time until all nodes know.

use super::figures::{BAND, Cuts, by_exponent, plot_of_cuts, spread, sweep, verdict_on_cut, worst};
use super::lab::Variant;
use crate::claims::{Axis, Claim, Judgement, Paper, Plot, Samples};

const PAPER: [(Variant, &str, f64); 3] = [
    (Variant::Both, "both", 54.6),
    (Variant::Passive, "passive", 44.5),
    (Variant::Active, "active", 31.6),
];

pub(super) fn claim() -> Claim {
    Claim {
        id: "M3",
        claim: "both / passive / active feedback cut the dissemination time, at the best m, by",
        source: "Medley-F, section 4.1.1, figure 4.1, Random",
        unit: "%",
        experiments: sweep(&[
            Variant::Plain,
            Variant::Active,
            Variant::Passive,
            Variant::Both,
        ]),
        judge,
    }
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let mut ours = Vec::new();
    let mut verdicts = Vec::new();
    let mut words = Vec::new();
    let mut lines = Vec::new();
    let mut trials = usize::MAX;
    for (variant, name, paper) in PAPER {
        let cuts = Cuts::of(samples, variant, spread)?;
        let (exponent, best) = cuts.best()?;
        ours.push(format!("{:.1}", best.value));
        verdicts.push(verdict_on_cut(best.value, paper));
        words.push(format!("{name}, best at m = {exponent}: {}", cuts.words()));
        lines.push(cuts.line(name));
        trials = trials.min(cuts.trials);
    }
    Some(Judgement {
        paper: PAPER.map(|(_, _, paper)| format!("{paper:.1}")).join(" / "),
        ours: ours.join(" / "),
        verdict: worst(verdicts),
        reason: format!(
            "Cut of the mean: {}. Better from the thesis' figures on, holds down to {BAND} points \
             below.",
            words.join("; ")
        ),
        trials,
        plots: vec![
            plot_of_cuts(
                "Cut of the dissemination time",
                lines,
                &PAPER.map(|(_, name, paper)| (name, paper)),
            ),
            Plot {
                title: "Time from the first detection until all know; bars: quartiles".to_owned(),
                x: Axis::Plain("exponent m".to_owned()),
                y: Axis::Plain("dissemination time [units]".to_owned()),
                lines: by_exponent(
                    samples,
                    &[
                        Variant::Plain,
                        Variant::Active,
                        Variant::Passive,
                        Variant::Both,
                    ],
                    spread,
                ),
                paper: Paper::reports("figure 4.1 has curves and no numbers"),
            },
        ],
    })
}
