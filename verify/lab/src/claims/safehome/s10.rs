//! S10: the difference between the serial order and the order of submission.

use super::lab::{EV, Figure, Load, Setting};
use super::notify::{experiments, fewest, plot, words};
use super::scenario::{Micro, TABLE_3};
use crate::claims::{Claim, Judgement, Paper, Reference, Samples, Verdict};

const PAPER: [f64; 2] = [3.0, 10.0];

pub(super) fn claim() -> Claim {
    Claim {
        id: "S10",
        claim: "pairs of routines that are serialized otherwise than submitted, with long commands of 10, 20 and 40 minutes; with 0, 10, 25 and 50% of the routines long",
        source: "SafeHome, section 7.6, figure 17",
        unit: "%",
        experiments: experiments(settings()),
        judge,
    }
}

fn by_length() -> Vec<Setting> {
    let load = |long_seconds| {
        Load::Micro(Micro {
            long_seconds,
            ..TABLE_3
        })
    };
    [600, 1_200, 2_400]
        .map(|it| Setting::new(load(it), EV))
        .to_vec()
}

fn by_share() -> Vec<Setting> {
    let load = |long| Load::Micro(Micro { long, ..TABLE_3 });
    [0, 10, 25, 50]
        .map(|it| Setting::new(load(it), EV))
        .to_vec()
}

fn settings() -> impl Iterator<Item = Setting> {
    by_length().into_iter().chain(by_share())
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let percent = |settings: Vec<Setting>, figure| -> Option<Vec<f64>> {
        let all = settings.into_iter();
        all.map(|it| Some(100.0 * it.mean(figure, samples)?))
            .collect()
    };
    let sharing = Figure::SwappedSharing;
    let ours = [
        percent(by_length(), sharing)?,
        percent(by_share(), sharing)?,
    ];
    let all = [
        percent(by_length(), Figure::Swapped)?,
        percent(by_share(), Figure::Swapped)?,
    ];
    let is = |low: f64| {
        ours.iter()
            .flatten()
            .all(|it| (low..=PAPER[1]).contains(it))
    };
    Some(Judgement {
        paper: "3 to 10".to_owned(),
        ours: format!(
            "{}; {}",
            words(ours[0].clone(), 1),
            words(ours[1].clone(), 1)
        ),
        verdict: if is(PAPER[0]) {
            Verdict::Holds
        } else if is(0.0) {
            Verdict::Better
        } else {
            Verdict::Differs
        },
        reason: format!(
            "Of the pairs that share a device, of which alone an order matters. Holds from 3 to 10%, \
             better when some are below. Of all pairs, in the order that the hub tells: {}; {}%.",
            words(all[0].clone(), 1),
            words(all[1].clone(), 1),
        ),
        trials: fewest(settings(), samples),
        plots: vec![plot(
            "S10: pairs serialized otherwise than submitted",
            ("% of routines that are long", &["0", "10", "25", "50"]),
            ("% of pairs that share a device", sharing, 100.0),
            [("EV", by_share())],
            samples,
            Paper::Figures(
                PAPER
                    .map(|it| Reference::everywhere(format!("paper: {it}%"), it))
                    .into(),
            ),
        )],
    })
}
