//! C4: messages of a requester, for any number of requesters.

use super::c3::{REQUESTERS, settings};
use super::lab::{BOTH, both, experiments, fewest, plot, words};
use crate::claims::{Claim, Judgement, Paper, Samples, Verdict};

/// The largest figure may be this many percent above the smallest.
const BAND: f64 = 25.0;

pub(super) fn claim() -> Claim {
    Claim {
        id: "C4",
        claim: "messages per requester do not depend on the number of requesters",
        source: "Camera, section 5.1, figure 5.2",
        unit: "messages, with 2, 5, 10, 20 and 40 requesters",
        experiments: experiments(settings().into_iter()),
        judge,
    }
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let seen = both(settings, samples)?;
    let [messages, eager] = seen
        .each_ref()
        .map(|seen| seen.iter().map(|it| it.messages).collect::<Vec<f64>>());
    let least = messages.iter().copied().fold(f64::INFINITY, f64::min);
    let most = messages.iter().copied().fold(0.0, f64::max);
    let bytes = words(
        seen.iter()
            .flatten()
            .take(5)
            .map(|it| it.hop_bytes / 1_000.0),
    );
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
             requester, hop by hop: {bytes}. What grows is what those who wait ask again: a message that \
             was lost is found out by asking, each second whoever is before us, and the more there are \
             the more are before us and the longer it takes; in the thesis a sender is told of a loss. \
             Where a quorum and all rivals are enough (Config::eager): {}; there less is sent in all, so \
             the same growth is a larger part. Holds when the largest is at most {BAND}% above the \
             smallest.",
            words(eager.iter().copied())
        ),
        trials: fewest(&seen)?,
        plots: vec![plot(
            "Messages by requesters",
            ("requesters", &names),
            "messages / requesters",
            BOTH.into_iter().zip([messages, eager]),
            Paper::reports("constant (a curve)"),
        )],
    })
}
