//! C9: two nodes that do not know each other, in every order of events.

use std::sync::Arc;

use selvedge_camera::Command::{Enter, Exit};
use selvedge_camera::check::Setup;
use selvedge_core::Machine;
use selvedge_sim::check::{Limits, Model, Observer, Outcome};

use crate::claims::{Claim, Experiment, Fault, Judgement, Sample, Samples, Verdict};
use crate::ricart_agrawala::checks;

const NAME: &str =
    "camera: ignorance, symmetric and asymmetric, with Ricart and Agrawala and with Camera";

pub(super) fn claim() -> Claim {
    Claim {
        id: "C9",
        claim: "Ricart and Agrawala's algorithm breaks under symmetric / asymmetric ignorance, Camera does not",
        source: "Camera, theorem 3 and theorem 5",
        unit: "steps until it breaks; states in which it holds",
        experiments: vec![Experiment {
            name: NAME.to_owned(),
            trials: 1,
            run: Arc::new(|_| explore()),
        }],
        judge,
    }
}

/// The number of steps after which a promise breaks, if it does; and the number of states.
fn outcome<M: Machine, O: Observer<M>>(model: &Model<M, O>) -> Result<[Option<u64>; 2], Fault> {
    let mut broken = None;
    let mut states = 0;
    for report in model.check(&Limits::default()) {
        if matches!(report.outcome, Outcome::Breaks { .. }) {
            broken = Some(report.steps as u64);
        } else if !report.complete && broken.is_none() {
            return Err(Fault::Outcome(report.to_string()));
        }
        states = report.states as u64;
    }
    Ok([broken, broken.is_none().then_some(states)])
}

fn explore() -> Result<Sample, Fault> {
    let camera = |lists| Setup {
        lists,
        ..Setup::full(3).visits(&[&[Enter, Exit], &[Enter, Exit]])
    };
    let found = [
        outcome(&checks::symmetric())?,
        outcome(&checks::asymmetric())?,
        outcome(&camera(&[&[3], &[3], &[1, 2]]).model())?,
        outcome(&camera(&[&[2, 3], &[3], &[1, 2]]).model())?,
    ];
    Ok(Sample(found.into_iter().flatten().collect()))
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let (_, sample) = samples.of(NAME).next()?;
    let [ra_one, _, ra_two, _, _, one, _, two] = sample.0.as_slice() else {
        return None;
    };
    let word = |figure: &Option<u64>| figure.map_or_else(|| "none".to_owned(), |it| it.to_string());
    let all = [ra_one, ra_two, one, two];
    Some(Judgement {
        paper: "breaks, breaks; holds, holds".to_owned(),
        ours: format!(
            "breaks after {}, {} steps; holds in all {}, {} states",
            word(ra_one),
            word(ra_two),
            word(one),
            word(two)
        ),
        verdict: if all.iter().all(|it| it.is_some()) {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: "Explored to the end, for three nodes of which two want to enter once. Camera also keeps \
                 the order of tokens, and nobody is stuck. Holds when the one breaks and the other does \
                 not, in both."
            .to_owned(),
        trials: 1,
        plots: Vec::new(),
    })
}
