//! S1: the cost of serial equivalence in latency.

use super::lab::{EV, Figure, Load, Setting, WV};
use super::notify::{above, experiments, fewest, plot, words};
use crate::claims::{Claim, Judgement, Paper, Reference, Samples, Verdict};

const LOADS: [Load; 3] = [Load::Morning, Load::Party, Load::Factory];
const PAPER: f64 = 23.1;

pub(super) fn claim() -> Claim {
    Claim {
        id: "S1",
        claim: "median latency under EV is above that under WV, in the morning, at the party and in the factory, by",
        source: "SafeHome, section 7.2",
        unit: "%",
        experiments: experiments(settings()),
        judge,
    }
}

fn settings() -> impl Iterator<Item = Setting> {
    let both = |load| [EV, WV].map(|model| Setting::new(load, model));
    LOADS.into_iter().flat_map(both)
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let of = |model| LOADS.map(|load| Setting::new(load, model));
    let ours: Option<Vec<f64>> = of(EV)
        .iter()
        .zip(&of(WV))
        .map(|(ev, wv)| above(ev, wv, Figure::Median, samples))
        .collect();
    let ours = ours?;
    let over_work = of(EV).map(|it| {
        let latency = it.mean(Figure::Median, samples).unwrap_or_default();
        let work = it.mean(Figure::MedianWork, samples).unwrap_or(f64::NAN);
        100.0 * (latency / work - 1.0)
    });
    let work = of(WV).map(|it| it.mean(Figure::MeanWork, samples).unwrap_or_default());
    let means = |model| {
        let means = of(model).map(|it| it.mean(Figure::Mean, samples).unwrap_or_default());
        words(means, 0)
    };
    let weak_factory = of(WV)[2].mean(Figure::Median, samples)?;
    let largest = ours.iter().copied().fold(f64::MIN, f64::max);
    Some(Judgement {
        paper: "0 to 23.1".to_owned(),
        verdict: match largest {
            ..0.0 => Verdict::Better,
            0.0..=PAPER => Verdict::Holds,
            _ => Verdict::Differs,
        },
        ours: words(ours, 1),
        reason: format!(
            "Medians of each run, in the mean of all. Holds when none is above {PAPER}%. Ours lets a device \
             do one command at a time under WV too, as a device does; the authors' program does not, so its \
             WV never waits and takes what the commands take. Above that our EV is by {}%. Mean latencies in \
             s: EV {}, WV {}, commands alone {}; the authors' program gives EV 302, 1073, 108 and WV 258, \
             956, 81.",
            words(over_work, 1),
            means(EV),
            means(WV),
            words(work, 0),
        ),
        trials: fewest(settings(), samples),
        plots: vec![plot(
            "S1: median latency",
            ("", &["morning", "party", "factory"]),
            ("s", Figure::Median, 1.0),
            [EV, WV].map(|model| (model.name, of(model).to_vec())),
            samples,
            Paper::Figures(vec![Reference::at(
                2,
                format!("paper: EV {PAPER}% above WV"),
                weak_factory * (1.0 + PAPER / 100.0),
            )]),
        )],
    })
}
