//! S6: parallelism of the three schedulers.

use super::lab::{FCFS_ALONE, Figure, JIT_ALONE, Load, Setting};
use super::notify::{experiments, fewest, plot, ratio, words};
use super::s05::{MODELS, of, settings};
use super::scenario::TABLE_3;
use crate::claims::{Claim, Judgement, Paper, Reference, Samples, Verdict};

const PAPER: [f64; 2] = [2.3, 2.0];

pub(super) fn claim() -> Claim {
    Claim {
        id: "S6",
        claim: "Timeline's parallelism is higher than FCFS's / JiT's, with 4 concurrent routines",
        source: "SafeHome, section 7.5, figure 14c",
        unit: "times",
        experiments: experiments(settings()),
        judge,
    }
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let [fcfs, jit, timeline] = MODELS.map(|model| of(model)[1]);
    let ours = [
        ratio(&timeline, &fcfs, Figure::Parallelism, samples)?,
        ratio(&timeline, &jit, Figure::Parallelism, samples)?,
    ];
    let alone = [FCFS_ALONE, JIT_ALONE].map(|model| {
        let alone = Setting::new(Load::Micro(TABLE_3), model);
        ratio(&timeline, &alone, Figure::Parallelism, samples)
    });
    let is = |band: f64| {
        ours.iter()
            .zip(PAPER)
            .all(|(ours, paper)| *ours >= paper * band)
    };
    let by_time = [
        ratio(&timeline, &fcfs, Figure::ParallelismByTime, samples)?,
        ratio(&timeline, &jit, Figure::ParallelismByTime, samples)?,
    ];
    let levels = [fcfs, jit, timeline].map(|it| it.mean(Figure::Parallelism, samples));
    Some(Judgement {
        paper: "2.3 / 2.0".to_owned(),
        ours: words(ours, 2).replace(", ", " / "),
        verdict: if is(1.0) {
            Verdict::Better
        } else if is(0.8) {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "How many run, at moments at which one starts or ends. By time, while any runs, Timeline's is {} \
             times that of FCFS and JiT. Better from the paper's figures on, \
             holds from 80% of them. FCFS, JiT and Timeline: {}. Under FCFS with leases routines start at once \
             and wait afterwards, and those that wait count as running; without leases, as in the authors' \
             program, Timeline's is {} times that of FCFS and JiT.",
            words(by_time, 2),
            words(levels.into_iter().flatten(), 2),
            words(alone.into_iter().flatten(), 2),
        ),
        trials: fewest(settings(), samples),
        plots: vec![plot(
            "S6: parallelism",
            ("concurrent routines", &["2", "4", "8"]),
            ("routines", Figure::Parallelism, 1.0),
            MODELS.map(|model| (model.name, of(model).to_vec())),
            samples,
            Paper::Figures(
                PAPER
                    .iter()
                    .zip(["FCFS", "JiT"])
                    .zip(levels)
                    .filter_map(|((times, name), level)| {
                        let name = format!("paper: Timeline, {times} times {name}");
                        Some(Reference::at(1, name, level? * times))
                    })
                    .collect(),
            ),
        )],
    })
}
