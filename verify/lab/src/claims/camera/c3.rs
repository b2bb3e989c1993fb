//! C3: how the wait falls with the number of nodes that want to enter.

use super::lab::{BOTH, Contention, THESIS, both, experiments, fewest, plot, words};
use crate::claims::{Claim, Judgement, Paper, Samples, Verdict};

/// The number of nodes that ask at once.
pub(super) const REQUESTERS: [usize; 5] = [2, 5, 10, 20, 40];

pub(super) fn settings() -> Vec<Contention> {
    let setting = |requesters| Contention {
        requesters,
        ..THESIS
    };
    REQUESTERS.map(setting).into()
}

pub(super) fn claim() -> Claim {
    Claim {
        id: "C3",
        claim: "the wait, divided by the number of requesters, falls and flattens as they grow",
        source: "Camera, section 5.1, figure 5.1",
        unit: "ms, with 2, 5, 10, 20 and 40 requesters",
        experiments: experiments(settings().into_iter()),
        judge,
    }
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let seen = both(settings, samples)?;
    let [waits, eager] = seen
        .each_ref()
        .map(|seen| seen.iter().map(|it| it.wait).collect::<Vec<f64>>());
    let falls = waits.is_sorted_by(|a, b| a >= b);
    let steps: Vec<f64> = waits
        .windows(2)
        .map(|it| match it {
            [a, b] => a - b,
            _ => 0.0,
        })
        .collect();
    let flattens = steps.first()? > steps.last()?;
    let names: Vec<String> = REQUESTERS.iter().map(ToString::to_string).collect();
    Some(Judgement {
        paper: "falls and flattens".to_owned(),
        ours: words(waits.iter().copied()),
        verdict: if falls && flattens {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "From Enter to Entered, over all requesters, divided by their number as in the thesis. The \
             first of all waits for the slowest of 255 answers, the others hardly for more than their \
             turn: each is inside for 100 ms, so turns alone are 50. Where a quorum and all rivals are \
             enough (Config::eager): {}. Holds when no figure is above the one before it, and the last \
             step down is smaller than the first.",
            words(eager.iter().copied())
        ),
        trials: fewest(&seen)?,
        plots: vec![plot(
            "Wait by requesters",
            ("requesters", &names),
            "wait / requesters, ms",
            BOTH.into_iter().zip([waits, eager]),
            Paper::reports("it falls and flattens (figure 5.1, a curve)"),
        )],
    })
}
