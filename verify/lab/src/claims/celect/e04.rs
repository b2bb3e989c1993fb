//! E4: how healthy the leaders are.

use selvedge_celect::Protocol;

use super::figures::{
    Over, experiments, fewest, health, lowest_and_highest, mean_of, otherwise, plot,
};
use super::lab::Setting;
use crate::claims::{Claim, Judgement, Paper, Reference, Samples, Verdict};

/// At 5 and 20% lost.
const PAPER: [f64; 2] = [1.5, 28.5];

/// The smallest part of the thesis' figure that still holds.
const PART: f64 = 0.5;

pub(super) fn claim() -> Claim {
    let others = otherwise().into_iter().flat_map(|(_, both)| both);
    Claim {
        id: "E4",
        claim: "at 5% / 20% lost, the rank of the leader by how seldom it was suspected, Preferred and Hybrid against Base",
        source: "Election, section 6.1.3, figure 6.8",
        unit: "times, the lower of the two protocols",
        experiments: experiments(Over::Losses.settings().into_iter().chain(others)),
        judge,
    }
}

/// The ranks of Base, Preferred and Hybrid.
fn ranks(samples: &Samples, setting: &Setting) -> Option<[f64; 3]> {
    let of = |protocol| mean_of(samples, setting, protocol, health);
    Some([
        of(Protocol::Base)?,
        of(Protocol::Preferred)?,
        of(Protocol::Hybrid)?,
    ])
}

fn times([base, preferred, hybrid]: [f64; 3]) -> f64 {
    preferred.min(hybrid) / base
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let [low, high] = lowest_and_highest(|it| it).map(|it| ranks(samples, &it));
    let ranks_of_both = [low?, high?];
    let ours = ranks_of_both.map(times);
    let reach = |part: f64| {
        let mut pairs = ours.iter().zip(PAPER);
        pairs.all(|(ours, paper)| *ours >= paper * part && *ours > 1.0)
    };
    let words = |[base, preferred, hybrid]: [f64; 3]| {
        format!("Base {base:.1}, Preferred {preferred:.1}, Hybrid {hybrid:.1}")
    };
    let others = otherwise().into_iter().map(|(name, settings)| {
        let [low, high] = settings.map(|it| ranks(samples, &it).map(times));
        Some(format!("{:.1} / {:.1} with {name}", low?, high?))
    });
    let others: Option<Vec<String>> = others.collect();
    let references = PAPER.iter().zip(ranks_of_both).zip([0, 3]);
    let references = references.map(|((paper, [base, ..]), nth)| {
        let name = format!("thesis: {paper} times Base");
        Reference::at(nth, name, base * paper)
    });
    Some(Judgement {
        paper: PAPER.map(|it| format!("{it:.1}")).join(" / "),
        ours: ours.map(|it| format!("{it:.1}")).join(" / "),
        verdict: if reach(1.0) {
            Verdict::Better
        } else if reach(PART) {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "The rank among 49 by all suspicions of all nodes, 0 being the most suspected; equals share \
             theirs. At 5%: {}; at 20%: {}. {}. How much more the low hashes lose decides how low Base's \
             rank is, and that is what is divided by. The rest as in E1. Better from the thesis' figures on, \
             holds from {PART} of them on, above 1.",
            words(ranks_of_both[0]),
            words(ranks_of_both[1]),
            others?.join("; "),
        ),
        trials: fewest(samples, &Over::Losses.settings())?,
        plots: vec![plot(
            samples,
            Over::Losses,
            (
                "How healthy the leader is: the rank among 49",
                "nodes that are less healthy",
            ),
            health,
            Paper::Figures(references.collect()),
        )],
    })
}
