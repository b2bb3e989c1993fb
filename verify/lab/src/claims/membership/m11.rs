//! M11: the worked example of Algorithm 1, exactly.

use std::sync::Arc;

use chacha20::ChaCha8Rng;
use rand_core::SeedableRng;
use selvedge_core::{Driver, Input, Member, NodeId, Time};
use selvedge_membership::{
    Body, Claim as Reported, Command, Config, Membership, Message, Metadata, Record,
};

use crate::claims::{
    Axis, Claim, Experiment, Fault, Judgement, Line, Paper, Plot, Point, Reference, Sample,
    Samples, Verdict,
};

const NAME: &str = "membership: the worked example of Algorithm 1";
/// Probabilities in percent, before and after.
const BEFORE: [u32; 4] = [43, 30, 17, 10];
const AFTER: [u64; 4] = [31, 27, 17, 25];

pub(super) fn claim() -> Claim {
    Claim {
        id: "M11",
        claim: "an UNLUCKY report of the last of [0.43, 0.3, 0.17, 0.1] makes these probabilities",
        source: "Medley-F, section 3.2.1",
        unit: "",
        experiments: vec![Experiment {
            name: NAME.to_owned(),
            trials: 1,
            run: Arc::new(|_| example()),
        }],
        judge,
    }
}

/// The probabilities after the report, in millionths.
fn example() -> Result<Sample, Fault> {
    // With m = 1 a weight is one over the distance: all distances whole, all weights in proportion.
    let product: u32 = BEFORE.iter().product();
    let distances = BEFORE.map(|weight| product / weight);
    let config = Config::thesis()
        .with_exponent(1)
        .with_unit_distance(distances.first().copied().unwrap_or(1))
        .with_neighbour_distance(product)
        .with_passive(None);
    let machine = Membership::new(Member::new(5, 0), config).map_err(Fault::network)?;
    let mut driver = Driver::new(machine);
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut step = |driver: &mut Driver<Membership>, input| {
        driver
            .step(Time::ZERO, &mut rng, input, |_| {})
            .map_err(Fault::network)
    };
    let join = Command::Join { seeds: Vec::new() };
    step(&mut driver, Input::Command(join))?;
    for (id, distance) in (1..).zip(distances) {
        let from = Member::new(id, 0);
        let mut message = Message::bare(Body::Ack { origin: None });
        message.records.push(Record {
            member: from,
            revision: 0,
            claim: Reported::Alive(Metadata::default()),
        });
        step(&mut driver, Input::Message { from, message })?;
        let id = from.id;
        step(
            &mut driver,
            Input::Command(Command::SetDistance { id, distance }),
        )?;
    }
    let from = Member::new(4, 0);
    let message = Message::bare(Body::Unlucky);
    step(&mut driver, Input::Message { from, message })?;
    // Reports are acted on when the period ends.
    let end = driver.deadline().unwrap_or_default();
    driver.expire(end, &mut rng, |_| {});
    let share = |id| {
        let (weight, total) = driver.machine().member(NodeId(id))?.share();
        u64::try_from(u128::from(weight) * 1_000_000 / u128::from(total.max(1))).ok()
    };
    Ok(Sample((1..=4).map(share).collect()))
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let (_, sample) = samples.of(NAME).next()?;
    let shares = sample.0.iter().copied().collect::<Option<Vec<u64>>>()?;
    let percent: Vec<u64> = shares.iter().map(|it| (it + 5_000) / 10_000).collect();
    let words = |shares: &[u64]| {
        let words = shares.iter().map(|it| format!("0.{it:02}"));
        format!("[{}]", words.collect::<Vec<_>>().join(", "))
    };
    let lines = vec![Line {
        name: "measured".to_owned(),
        points: shares
            .iter()
            .zip(0..)
            .map(|(&share, nth)| {
                let y = share as f64 / 1e6;
                Point {
                    x: f64::from(nth),
                    y,
                    low: y,
                    high: y,
                }
            })
            .collect(),
    }];
    Some(Judgement {
        paper: words(&AFTER),
        ours: words(&percent),
        verdict: if percent == AFTER {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "Read from a running node, in millionths: {shares:?}. The text takes the mean of all four, \
             as lines 2 and 3 of Algorithm 1 do for the least likely member. Holds when equal to two \
             digits."
        ),
        trials: 1,
        plots: vec![Plot {
            title: "Probabilities after the report".to_owned(),
            x: Axis::Names(
                "member".to_owned(),
                (1..=4).map(|nth| format!("M{nth}")).collect(),
            ),
            y: Axis::Plain("probability".to_owned()),
            lines,
            paper: Paper::Figures(
                AFTER
                    .iter()
                    .zip(0..)
                    .map(|(&after, nth)| Reference::at(nth, "thesis", after as f64 / 100.0))
                    .collect(),
            ),
        }],
    })
}
