//! E1: how much sooner Optimistic ends than Base.

use selvedge_celect::Protocol;

use super::figures::{Cuts, completion, experiments, notes, plots, settings_of_cuts};
use crate::claims::verdict::{BAND, verdict_on_cut};
use crate::claims::{Claim, Judgement, Samples};

const PAPER: f64 = 42.6;

pub(super) fn claim() -> Claim {
    Claim {
        id: "E1",
        claim: "from Elect until the last node knows the leader, Optimistic takes less than Base by",
        source: "Election, section 6.1.2, figures 6.4 to 6.6",
        unit: "%",
        experiments: experiments(settings_of_cuts()),
        judge,
    }
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let cuts = Cuts::of(samples, (Protocol::Base, Protocol::Optimistic))?;
    Some(Judgement {
        paper: format!("{PAPER:.1}"),
        ours: format!("{:.1}", cuts.mean),
        verdict: verdict_on_cut(cuts.mean, PAPER),
        reason: format!(
            "The mean of the cuts in all settings. {} {} Better from the thesis' figure on, holds down to \
             {BAND} points below.",
            cuts.words,
            notes()
        ),
        trials: cuts.trials,
        plots: plots(
            samples,
            "Completion time",
            "units",
            completion,
            "a mean cut over all settings, and curves (figures 6.4 to 6.6)",
        ),
    })
}
