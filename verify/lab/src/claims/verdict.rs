//! Rules of verdicts that several claims share.

use super::Verdict;

/// A cut up to this many percentage points below the paper's figure holds.
pub(super) const BAND: f64 = 10.0;

/// The rule for cuts: better from the paper's figure on, holds down to [`BAND`] points below it.
pub(super) fn verdict_on_cut(ours: f64, paper: f64) -> Verdict {
    if ours >= paper {
        Verdict::Better
    } else if ours >= paper - BAND {
        Verdict::Holds
    } else {
        Verdict::Differs
    }
}

/// The worst of several verdicts.
pub(super) fn worst(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
    let rank = |it: &Verdict| match it {
        Verdict::Better => 0,
        Verdict::Holds => 1,
        Verdict::Differs => 2,
    };
    verdicts
        .into_iter()
        .max_by_key(rank)
        .unwrap_or(Verdict::Differs)
}
