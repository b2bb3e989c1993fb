//! P8: the share of its time in which a node can be used.

use super::setting::{Case, Figures, System, UNIT, length};
use crate::claims::plot::{over, spread};
use crate::claims::verdict::{BAND, verdict_on_cut};
use crate::claims::{Claim, Judgement, Paper, Samples, Verdict};

/// From 1% to 10%.
const PAPER: f64 = 15.0;
/// In percent; the last is a node without a duty cycle.
const SHARES: [u64; 4] = [1, 10, 50, 100];
/// The active times with which these have one period, in ms.
const ACTIVE: [u32; 4] = [100, 1_000, 5_000, 10_000];

/// Nodes are active for a second, and sleep longer the less they can be used. The function is long enough
/// for the scarcest.
fn cases() -> [Case; 4] {
    SHARES.map(|share| Case {
        share,
        length: length(1),
        ..Case::new(System::Pcm { unit: UNIT })
    })
}

/// The other way: one period, of which they are active for a share.
fn of_one_period() -> [Case; 4] {
    let mut active = ACTIVE.into_iter();
    SHARES.map(|share| Case {
        share,
        active: active.next().unwrap_or(1_000),
        ..Case::new(System::Pcm { unit: UNIT })
    })
}

pub(super) fn claim() -> Claim {
    Claim {
        id: "P8",
        claim: "nodes that can be used for 10% of their time, and not for 1%: a function takes less time | energy, by",
        source: "PCM, section 5b, figures 8 and 9",
        unit: "%",
        experiments: cases()
            .into_iter()
            .chain(of_one_period())
            .map(Case::experiment)
            .collect(),
        judge,
    }
}

fn figures(cases: [Case; 4], samples: &Samples) -> Option<Vec<Figures>> {
    cases.iter().map(|it| it.figures(samples)).collect()
}

/// From each share to the next, by how many percent it falls.
fn cuts(shares: &[Figures], figure: fn(&Figures) -> f64) -> Vec<f64> {
    let pairs = shares.iter().zip(shares.iter().skip(1));
    pairs
        .map(|(one, next)| (1.0 - figure(next) / figure(one)) * 100.0)
        .collect()
}

fn words(cuts: &[f64]) -> String {
    let words: Vec<String> = cuts.iter().map(|it| format!("{it:.1}")).collect();
    words.join(" / ")
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let found = figures(cases(), samples)?;
    let other = figures(of_one_period(), samples)?;
    let times = cuts(&found, |it| it.completion);
    let energies = cuts(&found, |it| it.energy);
    let (gain, saved) = (*times.first()?, *energies.first()?);
    let names = SHARES.map(|it| it.to_string());
    let seconds = super::energy::seconds(length(1));
    let all: Vec<String> = found
        .iter()
        .map(|it| format!("{:.0}", it.completion))
        .collect();
    Some(Judgement {
        paper: format!("about {PAPER:.0} | falls"),
        ours: format!("{gain:.0} | {saved:.0}"),
        verdict: match verdict_on_cut(gain, PAPER) {
            it if saved > 0.0 => it,
            _ => Verdict::Differs,
        },
        reason: format!(
            "A unit of five; a node is active for a second, and its period is 100, 10, 2 and 1 s at 1, 10, 50 and 100%. The \
             function takes {seconds} s at one node: as long as it must for a unit to be 30% slower at 1% (section 5a). {} s. From \
             10 to 50% and from 50 to 100% it takes {}% less time, as in the paper no more than 10 each. Energy falls by {}% \
             from each share to the next. In the paper it falls from 1 to 10% alone: nodes that are awake while no \
             function runs are not counted here. Where the period is 10 s at each share, and the \
             function as long as in P1, time falls by {}% and energy by {}%: a node that is active for a tenth as long \
             in the same period wakes as often, so little is gained. The paper does not say which of both it varies. Better from the \
             paper's gain on, if energy falls as well; holds down to {BAND} points below it.",
            all.join(" / "),
            words(times.get(1..).unwrap_or_default()),
            words(&energies),
            words(&cuts(&other, |it| it.completion)),
            words(&cuts(&other, |it| it.energy)),
        ),
        trials: found.iter().map(|it| it.trials).min()?,
        plots: vec![
            spread(
                "Completion of a function",
                ("% of its time in which a node can be used", &names),
                "s",
                [("", cases().map(|it| it.completions(samples)).to_vec())],
                Paper::reports(
                    "about 15% less from 1 to 10%, up to 10% less with each further step",
                ),
            ),
            over(
                "Energy of a function, the gateway's included",
                ("% of its time in which a node can be used", &names),
                "J",
                [("", found.iter().map(|it| it.energy).collect())],
                Paper::reports("it falls from 1 to 10%, and rises from there"),
            ),
        ],
    })
}
