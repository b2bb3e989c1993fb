//! S9: routines that wait after they have started.

use super::lab::{EV, Figure, JIT, Load, Model, Setting};
use super::scenario::{Micro, TABLE_3};
use super::tell::{experiments, fewest, plot, words};
use crate::claims::{Claim, Judgement, Samples, Verdict};

const COMMANDS: [u64; 4] = [2, 3, 4, 8];
const PAPER: [f64; 3] = [5.0, 25.0, 15.0];

pub(super) fn claim() -> Claim {
    Claim {
        id: "S9",
        claim: "routines that take longer than their commands, with 2 / 4 / 8 commands",
        source: "SafeHome, section 7.5.1, figure 15c",
        unit: "% of routines",
        experiments: experiments(settings()),
        judge,
    }
}

fn of(model: Model) -> Vec<Setting> {
    let load = |commands| {
        Load::Micro(Micro {
            commands,
            ..TABLE_3
        })
    };
    COMMANDS
        .map(|commands| Setting::new(load(commands), model))
        .to_vec()
}

fn settings() -> impl Iterator<Item = Setting> {
    [EV, JIT].into_iter().flat_map(of)
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let percent = |model| -> Option<Vec<f64>> {
        let all = of(model).into_iter();
        all.map(|it| Some(100.0 * it.mean(Figure::Stretched, samples)?))
            .collect()
    };
    let ours = percent(EV)?;
    let &[at_2, _, at_4, at_8] = ours.as_slice() else {
        return None;
    };
    let ours = [at_2, at_4, at_8];
    let rises_and_falls = at_4 > at_2 && at_8 < at_4;
    let near = ours
        .iter()
        .zip(PAPER)
        .all(|(ours, paper)| (ours - paper).abs() <= 10.0);
    Some(Judgement {
        paper: "5 / 25 / 15".to_owned(),
        ours: words(ours, 1).replace(", ", " / "),
        verdict: if ours.iter().zip(PAPER).all(|(&ours, paper)| ours <= paper) {
            Verdict::Better
        } else if rises_and_falls && near {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "Of those that were committed, from the first command on. Better when none is above the \
             paper's, holds when it rises and falls within 10 points of them. Under JiT, with 2, 3, 4 and 8 \
             commands: {}%.",
            words(percent(JIT)?, 1),
        ),
        trials: fewest(settings(), samples),
        plots: vec![plot(
            "S9: routines that take longer than their commands",
            ("commands", &["2", "3", "4", "8"]),
            ("% of routines", Figure::Stretched, 100.0),
            [EV, JIT].map(|model| (model.name, of(model))),
            samples,
        )],
    })
}
