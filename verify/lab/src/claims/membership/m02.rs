//! M2: both feedbacks, and passive feedback alone, cut the excess of the first detection time.

use super::figures::{BAND, Cuts, excess, plot_of_cuts, sweep, verdict_on_cut, worst};
use super::lab::Variant;
use crate::claims::{Claim, Judgement, Samples};

const BOTH: f64 = 27.4;
const PASSIVE: f64 = 11.5;

pub(super) fn claim() -> Claim {
    Claim {
        id: "M2",
        claim: "active and passive feedback / passive alone cut the mean differential first detection time, at the best m, by",
        source: "Medley-F, section 4.1.1, figure 4.1, Random",
        unit: "%",
        experiments: sweep(&[Variant::Plain, Variant::Passive, Variant::Both]),
        judge,
    }
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let both = Cuts::of(samples, Variant::Both, excess)?;
    let passive = Cuts::of(samples, Variant::Passive, excess)?;
    let (at_both, best_both) = both.best()?;
    let (at_passive, best_passive) = passive.best()?;
    Some(Judgement {
        paper: format!("{BOTH:.1} / {PASSIVE:.1}"),
        ours: format!("{:.1} / {:.1}", best_both.value, best_passive.value),
        verdict: worst([
            verdict_on_cut(best_both.value, BOTH),
            verdict_on_cut(best_passive.value, PASSIVE),
        ]),
        reason: format!(
            "Best at m = {at_both} / {at_passive}. Both: {}. Passive: {}. Better from the thesis' \
             figures on, holds down to {BAND} points below.",
            both.words(),
            passive.words(),
        ),
        trials: both.trials.min(passive.trials),
        plots: vec![plot_of_cuts(
            "Cut of the excess detection time",
            vec![both.line("both"), passive.line("passive")],
            &[("both", BOTH), ("passive", PASSIVE)],
        )],
    })
}
