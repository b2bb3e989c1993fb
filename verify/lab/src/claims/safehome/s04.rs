//! S4: whether any order of the routines explains the end.

use super::lab::{EV, FCFS, Figure, GSV, JIT, Load, Model, PSV, Setting, WV};
use super::notify::{experiments, fewest, words};
use crate::claims::{Claim, Judgement, Samples, Verdict};

const LOADS: [Load; 3] = [Load::Morning, Load::Party, Load::Factory];
const STRICT: [Model; 5] = [GSV, PSV, EV, JIT, FCFS];
const ROUTINES: usize = 9;

pub(super) fn claim() -> Claim {
    Claim {
        id: "S4",
        claim: "runs of 9 routines that end as no order of them does, in the morning, at the party and in the factory: WV / GSV, PSV and EV",
        source: "SafeHome, section 7.2, figure 12b",
        unit: "%",
        experiments: experiments(of(WV).into_iter().chain(others())),
        judge,
    }
}

fn of(model: Model) -> [Setting; 3] {
    LOADS.map(|load| Setting {
        few: Some(ROUTINES),
        ..Setting::new(load, model)
    })
}

fn others() -> impl Iterator<Item = Setting> {
    STRICT.into_iter().flat_map(of)
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let percent = |it: Setting| Some(100.0 * it.mean(Figure::Unexplained, samples)?);
    let weak: Option<Vec<f64>> = of(WV).into_iter().map(percent).collect();
    let strict: Option<Vec<f64>> = others().map(percent).collect();
    let (weak, strict) = (weak?, strict?);
    let worst = strict.iter().copied().fold(0.0, f64::max);
    Some(Judgement {
        paper: "above 0 / 0".to_owned(),
        verdict: if worst == 0.0 && weak.iter().any(|&it| it > 0.0) {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        ours: format!("{} / {worst}", words(weak, 1)),
        reason: format!(
            "Every order of the {ROUTINES} routines may explain the end. Each writes a state of its own; \
             with states that several write, fewer ends of WV would be noticed. EV is run with each of its \
             schedulers. Holds when WV is above 0 somewhere and all others are exactly 0."
        ),
        trials: fewest(of(WV).into_iter().chain(others()), samples),
        plots: Vec::new(),
    })
}
