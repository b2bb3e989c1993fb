//! K4: groups of which many nodes have stopped.

use super::k3::{plot, words};
use super::operations::{Operations, Seen};
use crate::claims::plot::over;
use crate::claims::{Claim, Judgement, Paper, Samples, Verdict};

const CHURN: [u64; 5] = [0, 20, 40, 60, 80];
/// Up to the paper's 60% an operation may take this many times as long as without.
const SAME: f64 = 1.25;
/// The number of settings up to 60%.
const UNAFFECTED: usize = 4;

fn settings() -> [Operations; 5] {
    CHURN.map(|churn| Operations {
        churn,
        ..Operations::default()
    })
}

/// The same, where others take the places of members when as many have stopped as may.
fn together() -> [Operations; 5] {
    settings().map(|it| Operations {
        replace_after: it.failures,
        ..it
    })
}

pub(super) fn claim() -> Claim {
    Claim {
        id: "K4",
        claim: "operations of groups are unaffected until about 60% of the smart nodes are churned",
        source: "CoMesh, section 6.4, figure 9",
        unit: "units of time with 0, 20, 40, 60, 80% stopped: quorum | election | transfer",
        experiments: settings()
            .into_iter()
            .chain(together())
            .map(Operations::experiment)
            .collect(),
        judge,
    }
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let seen: Vec<Seen> = settings()
        .iter()
        .map(|it| it.seen(samples))
        .collect::<Option<_>>()?;
    let together: Vec<Seen> = together()
        .iter()
        .map(|it| it.seen(samples))
        .collect::<Option<_>>()?;
    let first = seen.first()?;
    let is_same = |figure: fn(&Seen) -> f64| {
        let limit = figure(first) * SAME;
        seen.iter().take(UNAFFECTED).all(|it| figure(it) <= limit)
    };
    let holds = is_same(|it| it.quorum) && is_same(|it| it.election) && is_same(|it| it.transfer);
    let has_lost = seen.iter().take(UNAFFECTED).any(|it| it.lost > 0.0);
    let lost = |all: &[Seen]| {
        let lost: Vec<String> = all.iter().map(|it| format!("{:.1}", it.lost)).collect();
        lost.join(" / ")
    };
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
             no leader, for good: others take the place of each member that is gone, and two more stopped before they did. \
             A quorum of three near members takes longer as soon as one of them is gone: a far one is in each. Where others take the places \
             when 2 members are gone (section 3.5; Config::replace_after) it is {}, and the \
             operations take {} | {} | {}. The paper's simulation does not say whether it counts such groups. Holds when up to 60% no operation takes more than {SAME} \
             times as long as without churn, and all groups have leaders.",
            lost(&seen),
            lost(&together),
            words(&together, |it| it.quorum),
            words(&together, |it| it.election),
            words(&together, |it| it.transfer),
        ),
        trials: seen.iter().map(|it| it.trials).min()?,
        plots: vec![
            plot(
                "Operations under churn",
                ("% of smart nodes that stopped", &names),
                &seen,
                "unaffected up to about 60% (figure 9, curves)",
            ),
            over(
                "Groups without a leader in the end, of 15",
                ("% of smart nodes that stopped", &names),
                "groups",
                [
                    ("each replaced", seen.iter().map(|it| it.lost).collect()),
                    (
                        "replaced by twos",
                        together.iter().map(|it| it.lost).collect(),
                    ),
                ],
                Paper::reports("it does not count them"),
            ),
        ],
    })
}
