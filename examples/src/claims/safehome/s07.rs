//! S7: what leases are worth.

use super::lab::{EV, Figure, Load, Model, Setting};
use super::scenario::{Micro, TABLE_3};
use super::tell::{experiments, fewest, plot, ratio};
use crate::claims::{Claim, Judgement, Samples, Verdict};

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

fn judge(samples: &Samples) -> Option<Judgement> {
    let range = |model| -> Option<[f64; 2]> {
        let (all, both) = (of(model), of(BOTH));
        let ratios = all.iter().zip(&both);
        let ratios = ratios.map(|(it, both)| ratio(it, both, Figure::Normalized, samples));
        let ratios: Option<Vec<f64>> = ratios.collect();
        let ratios = ratios?;
        let least = ratios.iter().copied().fold(f64::MAX, f64::min);
        Some([least, ratios.into_iter().fold(0.0, f64::max)])
    };
    let (none, post, pre) = (range(NONE)?, range(NO_POST)?, range(NO_PRE)?);
    let percent = |[low, high]: [f64; 2]| {
        format!("{:.0} to {:.0}", 100.0 * (low - 1.0), 100.0 * (high - 1.0))
    };
    let is_ordered = post[0] > 1.0 && post[1] > pre[1];
    Some(Judgement {
        paper: "3 to 5.5 / 71 to 107 / 29 to 50".to_owned(),
        ours: format!(
            "{:.1} to {:.1} / {} / {}",
            none[0],
            none[1],
            percent(post),
            percent(pre)
        ),
        verdict: if is_ordered && none[0] >= 3.0 {
            Verdict::Better
        } else if is_ordered && none[1] >= 3.0 && pre[1] > 1.1 {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: "Normalized latency with 2, 4 and 8 concurrent routines of 3 commands, and 4 of 2 and 4 \
                 commands, the least and the largest. Holds when post-leases are worth more than \
                 pre-leases, these are worth 10%, and both together 3 times somewhere."
            .to_owned(),
        trials: fewest(settings(), samples),
        plots: vec![plot(
            "S7: latency / what the commands take",
            (
                "concurrent routines, commands of each",
                &["2, 3", "4, 3", "8, 3", "4, 2", "4, 4"],
            ),
            ("times", Figure::Normalized, 1.0),
            [
                ("both leases", of(BOTH).to_vec()),
                ("no pre-leases", of(NO_PRE).to_vec()),
                ("no post-leases", of(NO_POST).to_vec()),
                ("none", of(NONE).to_vec()),
            ],
            samples,
        )],
    })
}
