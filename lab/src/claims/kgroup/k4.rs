//! K4: groups of whose nodes many have stopped.

use super::k3::{plot, words};
use super::operations::{Operations, Seen};
use crate::claims::{Claim, Judgement, Samples, Verdict};

const CHURN: [u64; 5] = [0, 20, 40, 60, 80];
/// Up to the paper's 60% an operation may take so many times as long as without.
const SAME: f64 = 1.25;
/// How many of the settings are up to there.
const UNAFFECTED: usize = 4;

fn settings() -> [Operations; 5] {
    CHURN.map(|churn| Operations { failures: 2, churn })
}

pub(super) fn claim() -> Claim {
    Claim {
        id: "K4",
        claim: "operations of groups are unaffected until about 60% of the smart nodes are churned",
        source: "CoMesh, section 6.4, figure 9",
        unit: "units of time with 0, 20, 40, 60, 80% stopped: quorum | election | transfer",
        experiments: settings().map(Operations::experiment).into(),
        judge,
    }
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let seen: Vec<Seen> = settings()
        .iter()
        .map(|it| it.seen(samples))
        .collect::<Option<_>>()?;
    let first = *seen.first()?;
    let is_same = |figure: fn(&Seen) -> f64| {
        let limit = figure(&first) * SAME;
        seen.iter().take(UNAFFECTED).all(|it| figure(it) <= limit)
    };
    let holds = is_same(|it| it.quorum) && is_same(|it| it.election) && is_same(|it| it.transfer);
    let has_lost = seen.iter().take(UNAFFECTED).any(|it| it.lost > 0.0);
    let lost: Vec<String> = seen.iter().map(|it| format!("{:.1}", it.lost)).collect();
    let names = CHURN.map(|it| it.to_string());
    Some(Judgement {
        paper: "about 60%".to_owned(),
        ours: format!(
            "{} | {} | {}",
            words(&seen, |it| it.quorum),
            words(&seen, |it| it.election),
            words(&seen, |it| it.transfer)
        ),
        verdict: if holds && !has_lost {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "As in K3, with k = 5, after so many of the 100 smart nodes have stopped for good, at random moments of 40 s; \
             others learn of it 0.5 s later. In the end, after three more leaders were stopped for the elections, {} of 15 groups a trial have \
             no leader: a majority of their members has stopped before others took the places, and that is for good. \
             The paper's simulation does not say whether it counts such groups. Holds when up to 60% no operation takes more than {SAME} \
             times as long as without churn, and all groups have leaders.",
            lost.join(" / ")
        ),
        trials: seen.iter().map(|it| it.trials).min()?,
        plots: vec![plot(
            "Operations under churn",
            ("% of smart nodes that stopped", &names),
            &seen,
            "unaffected up to about 60% (figure 9, curves)",
        )],
    })
}
