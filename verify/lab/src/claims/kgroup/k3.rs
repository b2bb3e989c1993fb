//! K3: larger groups.

use super::operations::{Operations, Seen};
use crate::claims::plot::spread;
use crate::claims::{Claim, Judgement, Paper, Plot, Samples, Verdict};

const FAILURES: [u8; 5] = [1, 2, 3, 4, 5];
/// From 3 to 11 members an operation may take this many times as long.
const WELL: f64 = 2.0;
/// And a transfer.
const SAME: f64 = 1.25;

fn settings() -> [Operations; 5] {
    FAILURES.map(|failures| Operations {
        failures,
        ..Operations::default()
    })
}

pub(super) fn claim() -> Claim {
    Claim {
        id: "K3",
        claim: "quorum, election and state transfer with 3 to 11 members; transfer does not depend on k",
        source: "CoMesh, section 6.4, figure 7, table 4",
        unit: "units of time for k = 3, 5, 7, 9, 11: quorum | election | transfer",
        experiments: settings().map(Operations::experiment).into(),
        judge,
    }
}

/// A line for each operation.
pub(super) fn plot(title: &str, x: (&str, &[String]), seen: &[Seen], paper: &str) -> Plot {
    let line = |at: usize| {
        let each = seen.iter().filter_map(|it| it.each.get(at).cloned());
        each.collect()
    };
    let lines = [
        ("quorum", line(0)),
        ("election", line(1)),
        ("transfer", line(2)),
        ("nothing is monitored", line(3)),
    ];
    spread(title, x, "units of time", lines, Paper::reports(paper))
}

pub(super) fn words(seen: &[Seen], figure: fn(&Seen) -> f64) -> String {
    let all: Vec<String> = seen.iter().map(|it| format!("{:.0}", figure(it))).collect();
    all.join(" / ")
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let seen: Vec<Seen> = settings()
        .iter()
        .map(|it| it.seen(samples))
        .collect::<Option<_>>()?;
    let growth = |figure: fn(&Seen) -> f64| {
        let all = || seen.iter().map(figure);
        all().fold(0.0, f64::max) / all().fold(f64::INFINITY, f64::min)
    };
    let (quorum, election) = (growth(|it| it.quorum), growth(|it| it.election));
    let transfer = growth(|it| it.transfer);
    let names = FAILURES.map(|it| (2 * it + 1).to_string());
    Some(Judgement {
        paper: "shape".to_owned(),
        ours: format!(
            "{} | {} | {}",
            words(&seen, |it| it.quorum),
            words(&seen, |it| it.election),
            words(&seen, |it| it.transfer)
        ),
        verdict: if quorum <= WELL && election <= WELL && transfer <= SAME {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "Quorum: from a report to the decision of the cluster's group. Election: from the news that the leader stopped to the next \
             leader. Transfer: from the begin of an epoch, \
             at which all groups move at once, until a new member has the state; before that a leader asks all nodes that it would name whether they are \
             here, and the farthest of more nodes is farther. A unit is a hop, 10 ms. The largest figure \
             is {quorum:.1}, {election:.1} and {transfer:.1} times the smallest. A group without a leader that works \
             monitors nothing for {} units at an epoch change. Table 4 has medians of 1.08 s, 1.17 s and 2.07 s on \
             Raspberry Pis: they are of other hardware, and not compared. Holds when quorum and election stay within {WELL:.0} times \
             and transfer within {SAME} times.",
            words(&seen, |it| it.gap)
        ),
        trials: seen.iter().map(|it| it.trials).min()?,
        plots: vec![plot(
            "Operations of groups",
            ("k", &names),
            &seen,
            "all scale well, transfer does not depend on k (figure 7, curves)",
        )],
    })
}
