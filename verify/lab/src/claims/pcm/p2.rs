//! P2: the energy of a function, beside Raft and Pirogue.

use super::energy::GATEWAY;
use super::p1::{Found, experiments, pair, verdict};
use super::setting::{Figures, UNIT};
use crate::claims::plot::over;
use crate::claims::verdict::BAND;
use crate::claims::{Claim, Judgement, Paper, Samples};

/// The percentages by which it is less than Raft's and than Pirogue's.
const PAPER: [f64; 2] = [66.0, 65.0];

pub(super) fn claim() -> Claim {
    Claim {
        id: "P2",
        claim: "a function takes less energy on a unit of five than with Raft / Pirogue (4 + 1) on nodes of the same duty cycle, by",
        source: "PCM, section 5e, figure 11",
        unit: "%",
        experiments: experiments(),
        judge,
    }
}

/// The energy of five servers that are gateways, and always on, and another one with their
/// mailboxes.
fn as_gateways(servers: &Figures) -> f64 {
    let gateways = f64::from(UNIT) + 1.0;
    gateways * GATEWAY * servers.completion
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let found = Found::of(samples)?;
    let ours = found.cuts(|it| it.energy);
    let [unit, raft, pirogue] = &found.cases;
    let below = |it: f64| (1.0 - unit.energy / it) * 100.0;
    let awake = [raft, pirogue].map(|it| below(it.awake_energy));
    let gateways = [raft, pirogue].map(|it| below(as_gateways(it)));
    let names = ["PCM", "Raft", "Pirogue"].map(ToOwned::to_owned);
    let all = [unit, raft, pirogue];
    Some(Judgement {
        paper: pair(PAPER),
        ours: pair(ours),
        verdict: verdict(ours, PAPER),
        reason: format!(
            "Of P1's functions, from the request to the answer: the gateway's energy and that of five nodes, {:.0} / {:.0} / \
             {:.0} J. Both sides have one gateway, and as many nodes run the function; Pirogue's witness runs none. So \
             where the same nodes have the same duty cycle, energy falls by less than the time does. With functions of 1 \
             to 300 s: {}. Raft's and Pirogue's nodes that never slept would take {:.0} J, and PCM {}% less: \
             so the paper's figures cannot come from sleep. They come out where the five servers are counted as \
             gateways that are always on, beside the one with the mailboxes: {}%. The paper does not say what it \
             counts for Raft and Pirogue. Better from the paper's figure on, holds down to {BAND} points below.",
            unit.energy,
            raft.energy,
            pirogue.energy,
            found.by_length(|it| it.energy),
            raft.awake_energy,
            pair(awake),
            pair(gateways),
        ),
        trials: found.trials()?,
        plots: vec![
            over(
                "Energy of a function, the gateway's included",
                ("", &names),
                "J",
                [
                    ("as it is", all.map(|it| it.energy).to_vec()),
                    ("if no node slept", all.map(|it| it.awake_energy).to_vec()),
                ],
                Paper::reports("66% less than Raft, 65% less than Pirogue"),
            ),
            found.plot(
                "How much less energy, over the length of the function",
                |it| it.energy,
                PAPER,
            ),
        ],
    })
}
