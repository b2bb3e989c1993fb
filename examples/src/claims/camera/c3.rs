//! C3: how the wait falls with the number of those that want to enter.

use super::lab::{Contention, THESIS, plot, words};
use crate::claims::{Claim, Judgement, Samples, Verdict};

/// So many ask at once.
pub(super) const REQUESTERS: [usize; 5] = [2, 5, 10, 20, 40];

pub(super) fn settings() -> impl Iterator<Item = Contention> {
    REQUESTERS.into_iter().map(|requesters| Contention {
        requesters,
        ..THESIS
    })
}

pub(super) fn claim() -> Claim {
    Claim {
        id: "C3",
        claim: "the wait, divided by the number of requesters, falls and flattens as they grow",
        source: "Camera, section 5.1, figure 5.1",
        unit: "ms, with 2, 5, 10, 20 and 40 requesters",
        experiments: settings().map(Contention::experiment).collect(),
        judge,
    }
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let seen = settings()
        .map(|it| it.seen(samples))
        .collect::<Option<Vec<_>>>()?;
    let waits: Vec<f64> = seen.iter().map(|it| it.wait).collect();
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
        reason: "From Enter to Entered, over all requesters, divided by their number as in the thesis. Holds \
                 when no figure is above the one before it, and the last step down is smaller than the first."
            .to_owned(),
        trials: seen.iter().map(|it| it.trials).min()?,
        plots: vec![plot(
            "Wait by requesters",
            ("requesters", &names),
            "wait / requesters, ms",
            waits,
        )],
    })
}
