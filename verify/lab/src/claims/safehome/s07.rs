//! S7: the value of leases.

use super::lab::{EV, Figure, Load, Model, Setting};
use super::notify::{experiments, fewest, ratio};
use super::scenario::{Micro, TABLE_3};
use crate::claims::plot::over;
use crate::claims::verdict::worst;
use crate::claims::{Claim, Judgement, Paper, Reference, Samples, Verdict};

const BOTH: Model = EV;
const NO_PRE: Model = Model {
    pre_leases: false,
    ..EV
};
const NO_POST: Model = Model {
    post_leases: false,
    ..EV
};
const NONE: Model = Model {
    post_leases: false,
    ..NO_PRE
};

pub(super) fn claim() -> Claim {
    Claim {
        id: "S7",
        claim: "latency rises without leases / without post-leases / without pre-leases",
        source: "SafeHome, section 7.5.1, figure 15a",
        unit: "times / % / %",
        experiments: experiments(settings()),
        judge,
    }
}

/// Concurrent routines, and commands of each.
fn loads() -> [Micro; 5] {
    [(2, 3), (4, 3), (8, 3), (4, 2), (4, 4)].map(|(concurrent, commands)| Micro {
        concurrent,
        commands,
        ..TABLE_3
    })
}

fn of(model: Model) -> [Setting; 5] {
    loads().map(|load| Setting::new(Load::Micro(load), model))
}

fn settings() -> impl Iterator<Item = Setting> {
    [BOTH, NO_PRE, NO_POST, NONE].into_iter().flat_map(of)
}

/// The paper's figures, in times of the latency with both leases: without any, without
/// post-leases, without pre-leases.
const PAPER: [(&str, [f64; 2]); 3] = [
    ("none", [3.0, 5.5]),
    ("no post-leases", [1.71, 2.07]),
    ("no pre-leases", [1.29, 1.5]),
];

/// The cost of a lack of leases, in times of the latency with both.
fn rises(model: Model, samples: &Samples) -> Option<Vec<f64>> {
    let pairs = of(model).into_iter().zip(of(BOTH));
    pairs
        .map(|(it, both)| ratio(&it, &both, Figure::Normalized, samples))
        .collect()
}

/// Better where the whole range is at or above the paper's, holds where they meet.
fn verdict([low, high]: [f64; 2], [from, to]: [f64; 2]) -> Verdict {
    if low >= from && high >= to {
        Verdict::Better
    } else if high >= from && low <= to {
        Verdict::Holds
    } else {
        Verdict::Differs
    }
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let all = [NONE, NO_POST, NO_PRE].map(|model| rises(model, samples));
    let all = all.into_iter().collect::<Option<Vec<_>>>()?;
    let range = |rises: &Vec<f64>| {
        let least = rises.iter().copied().fold(f64::MAX, f64::min);
        [least, rises.iter().copied().fold(0.0, f64::max)]
    };
    let ranges: Vec<[f64; 2]> = all.iter().map(range).collect();
    let &[none, post, pre] = ranges.as_slice() else {
        return None;
    };
    let percent = |[low, high]: [f64; 2]| {
        format!("{:.0} to {:.0}", 100.0 * (low - 1.0), 100.0 * (high - 1.0))
    };
    let parts = ranges
        .iter()
        .zip(PAPER)
        .map(|(ours, it)| verdict(*ours, it.1));
    let parts: Vec<Verdict> = parts.collect();
    let is_ordered = post[0] > pre[1];
    let reported = parts.iter().zip(PAPER);
    let reported = reported.map(|(verdict, (name, _))| format!("{name}: {verdict:?}"));
    let reported = reported.collect::<Vec<_>>().join(", ").to_lowercase();
    let names = ["2, 3", "4, 3", "8, 3", "4, 2", "4, 4"].map(str::to_owned);
    Some(Judgement {
        paper: "3 to 5.5 / 71 to 107 / 29 to 50".to_owned(),
        ours: format!(
            "{:.1} to {:.1} / {} / {}",
            none[0],
            none[1],
            percent(post),
            percent(pre)
        ),
        verdict: if is_ordered {
            worst(parts)
        } else {
            Verdict::Differs
        },
        reason: format!(
            "Normalized latency with 2, 4 and 8 concurrent routines of 3 commands, and 4 of 2 and 4 \
             commands, the least and the largest. The worst of three parts: {reported}; each is better when the \
             whole range is at or above the paper's, and holds when the two meet. Differs when \
             post-leases are not worth more than pre-leases everywhere."
        ),
        trials: fewest(settings(), samples),
        plots: vec![over(
            "S7: latency, in times of that with both leases",
            ("concurrent routines, commands of each", &names),
            "times",
            PAPER.map(|it| it.0).into_iter().zip(all),
            Paper::Figures(
                PAPER
                    .iter()
                    .flat_map(|(name, range)| {
                        range.map(|it| Reference::everywhere(format!("paper, {name}: {it}"), it))
                    })
                    .collect(),
            ),
        )],
    })
}
