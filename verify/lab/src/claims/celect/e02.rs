//! E2: how much sooner Hybrid ends than Preferred.

use selvedge_celect::Protocol;

use super::figures::{Cuts, experiments, settings_of_cuts};
use crate::claims::verdict::{BAND, verdict_on_cut};
use crate::claims::{Claim, Judgement, Samples};

const PAPER: f64 = 33.3;

pub(super) fn claim() -> Claim {
    Claim {
        id: "E2",
        claim: "from Elect until the last node knows the leader, Hybrid takes less than Preferred by",
        source: "Election, section 6.1.2, figures 6.4 to 6.6",
        unit: "%",
        experiments: experiments(settings_of_cuts()),
        judge,
    }
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let cuts = Cuts::of(samples, (Protocol::Preferred, Protocol::Hybrid))?;
    Some(Judgement {
        paper: format!("{PAPER:.1}"),
        ours: format!("{:.1}", cuts.mean),
        verdict: verdict_on_cut(cuts.mean, PAPER),
        reason: format!(
            "The mean of the cuts in all settings. {} The rest as in E1. Better from the thesis' figure on, holds down to \
             {BAND} points below.",
            cuts.words
        ),
        trials: cuts.trials,
        plots: Vec::new(),
    })
}
