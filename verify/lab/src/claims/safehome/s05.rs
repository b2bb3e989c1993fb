//! S5: latency of the three schedulers.

use super::lab::{EV, FCFS, FCFS_ALONE, Figure, JIT, JIT_ALONE, Load, Model, Setting, WV};
use super::notify::{experiments, fewest, plot, ratio, words};
use super::scenario::{FIGURE_14, Micro, TABLE_3};
use crate::claims::{Claim, Judgement, Paper, Reference, Samples, Verdict};

pub(super) const MODELS: [Model; 3] = [FCFS, JIT, EV];
pub(super) const CONCURRENT: [usize; 3] = [2, 4, 8];
const PAPER: [f64; 2] = [2.36, 1.33];
/// The mean latency of FCFS and JiT in times of Timeline's that the authors' program gives at the
/// settings of figure 14, with 4 concurrent routines: 60 runs of its published sources.
const THEIRS: [f64; 2] = [1.75, 1.45];

pub(super) fn claim() -> Claim {
    Claim {
        id: "S5",
        claim: "Timeline's latency is shorter than FCFS's / JiT's, with 4 concurrent routines",
        source: "SafeHome, section 7.5, figure 14a",
        unit: "times",
        experiments: experiments(settings()),
        judge,
    }
}

pub(super) fn of(model: Model) -> [Setting; 3] {
    CONCURRENT.map(|concurrent| {
        let load = Load::Micro(Micro {
            concurrent,
            ..TABLE_3
        });
        Setting::new(load, model)
    })
}

/// The same with users that wait, without leases, and under weak visibility.
fn others() -> [Setting; 6] {
    let users = Load::Micro(Micro {
        users: true,
        ..TABLE_3
    });
    let [fcfs, jit, timeline] = MODELS.map(|model| Setting::new(users, model));
    let [fcfs_alone, jit_alone, weak] =
        [FCFS_ALONE, JIT_ALONE, WV].map(|model| Setting::new(Load::Micro(TABLE_3), model));
    [fcfs, jit, timeline, fcfs_alone, jit_alone, weak]
}

/// At the settings that the authors' program ran, with leases and, as there, without.
fn as_theirs() -> [Setting; 5] {
    [FCFS, JIT, FCFS_ALONE, JIT_ALONE, EV].map(|model| Setting::new(Load::Micro(FIGURE_14), model))
}

pub(super) fn settings() -> impl Iterator<Item = Setting> {
    let tables = MODELS.into_iter().flat_map(of);
    tables.chain(others()).chain(as_theirs())
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let [fcfs, jit, timeline] = MODELS.map(of);
    let ours = |nth: usize| -> Option<[f64; 2]> {
        let (fcfs, jit) = (fcfs.get(nth)?, jit.get(nth)?);
        let timeline = timeline.get(nth)?;
        Some([
            ratio(fcfs, timeline, Figure::Normalized, samples)?,
            ratio(jit, timeline, Figure::Normalized, samples)?,
        ])
    };
    let (at_2, at_4, at_8) = (ours(0)?, ours(1)?, ours(2)?);
    let is = |band: f64| {
        at_4.iter()
            .zip(PAPER)
            .all(|(ours, paper)| *ours >= paper * band)
    };
    // In the paper FCFS is the slowest of the three.
    let is_ranked = at_4[0] > at_4[1];
    let slow = MODELS.map(|model| {
        let load = of(model)[1];
        load.mean(Figure::Normalized, samples).unwrap_or_default()
    });
    let [_, ours_at_4, _] = of(EV);
    let [fcfs, jit, timeline, fcfs_alone, jit_alone, weak] = others();
    let users = [
        ratio(&fcfs, &timeline, Figure::Normalized, samples)?,
        ratio(&jit, &timeline, Figure::Normalized, samples)?,
    ];
    let alone = [
        ratio(&fcfs_alone, &ours_at_4, Figure::Normalized, samples)?,
        ratio(&jit_alone, &ours_at_4, Figure::Normalized, samples)?,
    ];
    let as_theirs = {
        let [fcfs, jit, fcfs_alone, jit_alone, timeline] = as_theirs();
        let all = [fcfs, jit, fcfs_alone, jit_alone];
        all.map(|it| ratio(&it, &timeline, Figure::Mean, samples))
    };
    let weak = weak.mean(Figure::Normalized, samples)?;
    Some(Judgement {
        paper: "2.36 / 1.33".to_owned(),
        ours: format!("{:.2} / {:.2}", at_4[0], at_4[1]),
        verdict: if !is_ranked {
            Verdict::Differs
        } else if is(1.0) {
            Verdict::Better
        } else if is(0.8) {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "Latency in times of what a routine's commands take; means. Better from the paper's figures \
             on, holds from 80% of them. FCFS, JiT and Timeline: {}. With 2 concurrent routines {}, with 8 \
             {}; with 4 users who wait for their routines {}; with FCFS and JiT without leases, as in the authors' program, {}. At the settings \
             published with that program for figure 14 (4 commands, 15 devices, 20% long), mean latencies: {}, \
             without leases {}; that program gives {}. Differs also when FCFS is not the slowest, as it is in \
             the paper. WV, which promises nothing: {weak:.2}.",
            words(slow, 2),
            words(at_2, 2),
            words(at_8, 2),
            words(users, 2),
            words(alone, 2),
            words(as_theirs.into_iter().take(2).flatten(), 2),
            words(as_theirs.into_iter().skip(2).flatten(), 2),
            words(THEIRS, 2),
        ),
        trials: fewest(settings(), samples),
        plots: vec![plot(
            "S5: latency / what the commands take",
            ("concurrent routines", &["2", "4", "8"]),
            ("times", Figure::Normalized, 1.0),
            MODELS.map(|model| (model.name, of(model).to_vec())),
            samples,
            Paper::Figures(
                PAPER
                    .iter()
                    .zip(["FCFS", "JiT"])
                    .map(|(times, name)| {
                        let name = format!("paper: {name}, {times} times Timeline");
                        Reference::at(1, name, slow[2] * times)
                    })
                    .collect(),
            ),
        )],
    })
}
