//! E9: the time in which Feedback finds an unknown c.

use std::sync::Arc;

use chacha20::ChaCha8Rng;
use rand_core::SeedableRng;
use selvedge_celect::estimate::{Average, Feedback, Misses, published};
use selvedge_core::Ratio;

use super::missing::draw;
use crate::claims::plot::over;
use crate::claims::stats::{mean, median, quantile};
use crate::claims::{Claim, Experiment, Judgement, Paper, Reference, Sample, Samples, Verdict};

const NODES: u16 = 128;
/// The number of lists that lack the lowest node.
const REAL: u16 = 13;
const ROUNDS: usize = 200;
/// The thesis' figure, in elections.
const PAPER: usize = 20;
/// An estimate has arrived when it is within this distance, and so is the mean of the next ones.
const CLOSE: f64 = 2.0;
const NEXT: usize = 10;
/// The thesis does not give the number of initiators of an election here; for figures 7.1 and 7.2
/// it is 5.
const INITIATORS: usize = 5;
const ALPHA: Ratio = Ratio::new(1, 10);
const THOUSAND: f64 = 1_000.0;

/// A way to find c.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Formula 7.1, with a whole number of nodes that are asked; the number of initiators.
    Printed(usize),
    /// The same, and c is kept as it is between elections.
    PrintedReal(usize),
    /// The corrected formula; the number of elections in a pool.
    Pooled(usize),
    /// The number of answers that lacked the lowest.
    Counted,
}

const WAYS: [(&str, Way); 7] = [
    ("as printed", Way::Printed(INITIATORS)),
    ("as printed, not truncated", Way::PrintedReal(INITIATORS)),
    ("as printed, 100 initiators", Way::Printed(100)),
    ("100 initiators, not truncated", Way::PrintedReal(100)),
    ("pools of 10 elections", Way::Pooled(10)),
    ("pools of 20 elections", Way::Pooled(20)),
    ("counted", Way::Counted),
];

pub(super) fn claim() -> Claim {
    Claim {
        id: "E9",
        claim: "elections until Feedback, from c = 1, comes to the real c of 13 at N = 128",
        source: "churn-tolerant election, section 7.3.2, figure 7.5",
        unit: "elections, median",
        experiments: WAYS.map(experiment).into(),
        judge,
    }
}

fn name(way: &str) -> String {
    format!("celect: Feedback from c = 1 to {REAL} of {NODES}, {way}")
}

fn experiment((words, way): (&'static str, Way)) -> Experiment {
    Experiment {
        name: name(words),
        trials: 100,
        run: Arc::new(move |seed| Ok(course(way, seed))),
    }
}

/// The number of answers that lack the lowest, when a run asks `answers` of the other nodes, 0 to N
/// - 2, the first of which lack it.
fn missing(answers: u16, rng: &mut ChaCha8Rng) -> u16 {
    let others = usize::from(NODES) - 1;
    let asked = draw((0..others).collect(), answers.into(), rng);
    let lack = asked.iter().filter(|&&it| it < usize::from(REAL));
    lack.count() as u16
}

/// c after each election, in thousandths.
fn course(way: Way, seed: u64) -> Sample {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let nodes = u32::from(NODES);
    let mut whole = 1;
    let mut average = Average::new(1.0, ALPHA);
    let mut halves = Average::new(1.0, Ratio::new(1, 2));
    let mut pool = Feedback::new();
    let mut columns = Vec::new();
    // All answers name one candidate: all the lowest, or all the next.
    let is_single = |answers: u16, missing: u16| missing == 0 || missing == answers;
    for round in 1..=ROUNDS {
        let mut values = |c: u16, initiators: usize| -> Vec<u32> {
            let answers = c.saturating_add(1).min(NODES - 1);
            let value = |it: u16| if is_single(answers, it) { 1 } else { 2 };
            let runs = (0..initiators).map(|_| value(missing(answers, &mut rng)));
            runs.collect()
        };
        let found = match way {
            Way::Printed(initiators) => {
                let c = u16::try_from(whole).unwrap_or(u16::MAX);
                let found = published::feedback(nodes, c.into(), &values(c, initiators));
                whole = published::average(whole, found, ALPHA);
                f64::from(whole)
            }
            Way::PrintedReal(initiators) => {
                let c = average.value() as u16;
                average.add(published::feedback(nodes, c.into(), &values(c, initiators)));
                average.value()
            }
            Way::Pooled(elections) => {
                let c = halves.churn(nodes, 0);
                for value in values(c, INITIATORS) {
                    pool.add(value == 1);
                }
                if round % elections == 0 {
                    let found = pool.churn(nodes, c);
                    found.into_iter().for_each(|it| halves.add(it));
                    pool = Feedback::new();
                }
                halves.value()
            }
            Way::Counted => {
                let answers = average.churn(nodes, 0) + 1;
                let mut misses = Misses::new();
                for _ in 0..INITIATORS {
                    misses.add(answers, missing(answers, &mut rng));
                }
                let found = misses.churn(nodes - 1);
                found.into_iter().for_each(|it| average.add(it.into()));
                average.value()
            }
        };
        columns.push(Some((found * THOUSAND).round() as u64));
    }
    Sample(columns)
}

/// The results of one way to find c.
struct Seen {
    /// The median of the first election after which c is close, in the mean of the next elections;
    /// `None` where half of the trials or more have no such election.
    there: Option<usize>,
    /// The median of the first election with c within the band.
    first: Option<usize>,
    /// The mean course.
    course: Vec<f64>,
    /// The mean of the last half, and its 5th and 95th percentile.
    end: [f64; 3],
    /// Trials that ended at 0, and at N or close.
    stuck: [usize; 2],
    trials: usize,
}

fn seen(samples: &Samples, way: &str) -> Option<Seen> {
    let name = name(way);
    let courses: Vec<Vec<f64>> = samples
        .of(&name)
        .map(|(_, sample)| {
            let figures = sample.0.iter().flatten();
            figures.map(|&it| it as f64 / THOUSAND).collect()
        })
        .collect();
    let real = f64::from(REAL);
    let is_close = |it: f64| (it - real).abs() <= CLOSE;
    let there = |course: &Vec<f64>| {
        let at = course.windows(NEXT).position(|next| {
            mean(next).is_some_and(is_close) && next.first().is_some_and(|&it| is_close(it))
        });
        at.map_or(f64::INFINITY, |at| at as f64 + 1.0)
    };
    let first = |course: &Vec<f64>| {
        let at = course.iter().position(|&it| is_close(it));
        at.map_or(f64::INFINITY, |at| at as f64 + 1.0)
    };
    let whole = |figures: Vec<f64>| {
        let it = median(&figures)?;
        it.is_finite().then_some(it.ceil() as usize)
    };
    let late: Vec<f64> = courses
        .iter()
        .flat_map(|it| it.iter().skip(ROUNDS / 2).copied())
        .collect();
    let last = |is: fn(f64) -> bool| {
        courses
            .iter()
            .filter(move |it| it.last().is_some_and(|&it| is(it)))
    };
    Some(Seen {
        there: whole(courses.iter().map(there).collect()),
        first: whole(courses.iter().map(first).collect()),
        course: (0..ROUNDS)
            .map(|round| {
                let at: Vec<f64> = courses
                    .iter()
                    .filter_map(|it| it.get(round).copied())
                    .collect();
                mean(&at)
            })
            .collect::<Option<_>>()?,
        end: [mean(&late)?, quantile(&late, 0.05)?, quantile(&late, 0.95)?],
        stuck: [last(|it| it == 0.0).count(), last(|it| it > 100.0).count()],
        trials: courses.len(),
    })
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let all = WAYS.map(|(words, _)| seen(samples, words).map(|it| (words, it)));
    let all = all.into_iter().collect::<Option<Vec<_>>>()?;
    let (_, counted) = all.last()?;
    let notified = |it: Option<usize>| it.map_or("never".to_owned(), |it| it.to_string());
    let rows: Vec<String> = all
        .iter()
        .map(|(words, seen)| {
            let [end, low, high] = seen.end;
            let [zero, full] = seen.stuck;
            format!(
                "{words}: within {CLOSE} first at {}, there at {}, later {end:.1} (90% from {low:.0} to \
                 {high:.0}), {zero} ended at 0 and {full} above 100",
                notified(seen.first),
                notified(seen.there),
            )
        })
        .collect();
    let rounds: Vec<String> = (1..=ROUNDS)
        .map(|it| {
            if it % 20 == 0 {
                format!("{it}")
            } else {
                String::new()
            }
        })
        .collect();
    let lines = all
        .iter()
        .map(|(words, seen)| (*words, seen.course.clone()));
    let plot = over(
        "The mean estimate after so many elections (figure 7.5)",
        ("elections", &rounds),
        "c",
        lines,
        Paper::Figures(vec![
            Reference::everywhere("real", f64::from(REAL)),
            Reference {
                name: format!("thesis: there from about {PAPER} elections on"),
                y: f64::from(REAL),
                x: Some((PAPER as f64 - 1.0, ROUNDS as f64 - 1.0)),
            },
        ]),
    );
    Some(Judgement {
        paper: format!("about {PAPER}"),
        ours: notified(counted.there),
        verdict: match counted.there {
            Some(there) if there < PAPER => Verdict::Better,
            Some(there) if there <= PAPER + PAPER / 2 => Verdict::Holds,
            Some(_) | None => Verdict::Differs,
        },
        reason: format!(
            "Ours lets each initiator report how many of its answers lacked the lowest, and averages \
             that with the thesis' alpha of 0.1. There is an estimate when it is within {CLOSE}, and so is \
             the mean of it and the next {}. {INITIATORS} initiators an election where not said. {}. As \
             printed, from 5 initiators, five values say next to nothing: the formula is not linear and d = 2 \
             gives N, so the estimate ends there, or at 0 where all agree and it is truncated (erratum F1). \
             With d nearly exact, from 100 initiators, it takes what alpha takes: 12 times 0.9^t is below 2 \
             from t = 18 on, which is the thesis' figure; truncated it stops where a tenth of what is \
             missing is less than one. Better below \
             {PAPER}, holds up to half more.",
            NEXT - 1,
            rows.join("; "),
        ),
        trials: all.iter().map(|(_, seen)| seen.trials).min()?,
        plots: vec![plot],
    })
}
