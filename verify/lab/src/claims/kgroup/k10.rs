//! K10: the saving by near members.

use super::operations::{Operations, Seen};
use crate::claims::plot::spread;
use crate::claims::{Claim, Judgement, Paper, Samples, Verdict};

/// Mostly near members, and any.
fn settings() -> [Operations; 2] {
    [true, false].map(|is_near| Operations {
        is_near,
        ..Operations::default()
    })
}

pub(super) fn claim() -> Claim {
    Claim {
        id: "K10",
        claim: "LSH against random members: quorum and election are faster, state transfer is by less",
        source: "CoMesh, section 6.4, figure 8",
        unit: "% below random: quorum | election | transfer",
        experiments: settings().map(Operations::experiment).into(),
        judge,
    }
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let [near, random] = settings().map(|it| it.seen(samples));
    let (near, random) = (near?, random?);
    let figures = |it: &Seen| [it.quorum, it.election, it.transfer];
    let cut = |at: usize| {
        let pair = figures(&near)
            .get(at)
            .copied()
            .zip(figures(&random).get(at).copied());
        pair.map_or(f64::NAN, |(near, random)| 100.0 * (1.0 - near / random))
    };
    let [quorum, election, transfer] = [0, 1, 2].map(cut);
    let trials = |it: &Seen| it.each.iter().take(3).cloned().collect::<Vec<Vec<f64>>>();
    let words = |it: &Seen| figures(it).map(|it| format!("{it:.1}")).join(" / ");
    let names = ["quorum", "election", "transfer"].map(ToOwned::to_owned);
    Some(Judgement {
        paper: "shape".to_owned(),
        ours: format!("{quorum:.0} | {election:.0} | {transfer:.0}"),
        verdict: if quorum > 0.0 && election > 0.0 && transfer < quorum.min(election) {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "As in K3, with k = 5: units of time near {}, and random {}. Clusters of devices are near each other in \
             both; the near member with the lowest hash leads. Election gains least: without its leader a group has two near \
             members, so a far one is in each quorum. Transfer gains more than in the paper: a new member gets the state \
             from one of the former ones, which are near as well. Holds when quorum and election are faster, and \
             transfer is cut by less than both.",
            words(&near),
            words(&random),
        ),
        trials: near.trials.min(random.trials),
        plots: vec![spread(
            "Operations of groups of near and of any members",
            ("", &names),
            "units of time",
            [("near", trials(&near)), ("random", trials(&random))],
            Paper::reports("near is faster, transfer by less than the others (figure 8, bars)"),
        )],
    })
}
