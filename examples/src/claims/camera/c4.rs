//! C4: messages of a requester, whatever their number.

use super::c3::{REQUESTERS, settings};
use super::lab::{Contention, plot, words};
use crate::claims::{Claim, Judgement, Samples, Verdict};

/// The largest figure may be so many percent above the smallest.
const BAND: f64 = 25.0;

pub(super) fn claim() -> Claim {
    Claim {
        id: "C4",
        claim: "messages per requester do not depend on the number of requesters",
        source: "Camera, section 5.1, figure 5.2",
        unit: "messages, with 2, 5, 10, 20 and 40 requesters",
        experiments: settings().map(Contention::experiment).collect(),
        judge,
    }
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let seen = settings()
        .map(|it| it.seen(samples))
        .collect::<Option<Vec<_>>>()?;
    let messages: Vec<f64> = seen.iter().map(|it| it.messages).collect();
    let least = messages.iter().copied().fold(f64::INFINITY, f64::min);
    let most = messages.iter().copied().fold(0.0, f64::max);
    let bytes = words(seen.iter().map(|it| it.hop_bytes / 1_000.0));
    let names: Vec<String> = REQUESTERS.iter().map(ToString::to_string).collect();
    Some(Judgement {
        paper: "constant".to_owned(),
        ours: words(messages.iter().copied()),
        verdict: if most <= least * (1.0 + BAND / 100.0) {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "Requests, OKs and releases, one to each other member, and what was sent again. Kilobytes a \
             requester, hop by hop: {bytes}. Who waits for long asks again every 250 ms whether its OK was \
             lost, and of those that are before it more the more there are. Holds when the largest is at most {BAND}% above the \
             smallest."
        ),
        trials: seen.iter().map(|it| it.trials).min()?,
        plots: vec![plot(
            "Messages by requesters",
            ("requesters", &names),
            "messages / requesters",
            messages,
        )],
    })
}
