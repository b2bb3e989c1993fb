//! P7: the number of followers of a unit that may be lost.

use std::sync::Arc;

use chacha20::ChaCha8Rng;
use rand_core::SeedableRng;
use selvedge_core::Span;
use selvedge_pcm::{DutyCycle, Limits, gateway};

use super::world::{BEGINS, Seen, Setting, World, is_right};
use crate::claims::plot::over;
use crate::claims::stats::mean;
use crate::claims::{Claim, Experiment, Fault, Judgement, Paper, Sample, Samples, Verdict};

const NAME: &str = "pcm: a unit of five, of which some are gone";
const TRIALS: u32 = 100;
/// Of the performant followers alone, and with the two others.
const PAPER: [u32; 2] = [1, 3];
/// The times that followers of a unit sleep in ten seconds and a second: the first three are
/// performant.
const ASLEEP: [u32; 5] = [1_000, 2_000, 3_000, 8_000, 9_000];
/// The places of the performant ones, and of the others, in a set of places.
const PERFORMANT: u32 = 0b0_0111;
const LOW: u32 = 0b1_1000;
/// All sets of places but none and all.
const SETS: core::ops::RangeInclusive<u32> = 1..=30;
const LENGTH: Span = Span::secs(5);
/// A silent follower is purged, and its unit's task given to a unit again, long before.
const MOST: Span = Span::secs(600);

pub(super) fn claim() -> Claim {
    Claim {
        id: "P7",
        claim: "a unit of five answers although so many are gone: of its performant quorum / with the two others",
        source: "PCM, section 4.3.2",
        unit: "disconnections",
        experiments: vec![Experiment {
            name: NAME.to_owned(),
            trials: TRIALS,
            run: Arc::new(measure),
        }],
        judge,
    }
}

/// For each set of followers that are lost, soon after the unit was given a function: the time
/// until the right answer.
fn measure(seed: u64) -> Result<Sample, Fault> {
    let times = SETS.map(|set| lose(set, seed)).collect::<Result<_, _>>()?;
    Ok(Sample(times))
}

fn lose(set: u32, seed: u64) -> Result<Option<u64>, Fault> {
    let setting = Setting {
        gateways: 1,
        config: gateway::Config::new(),
        limits: Limits::new(),
        length: LENGTH,
        lost: 0,
    };
    let mut world = World::new(&setting, ChaCha8Rng::seed_from_u64(seed))?;
    for asleep_ms in ASLEEP {
        let duty = DutyCycle {
            active_ms: 1_000,
            busy_ms: 0,
            asleep_ms,
        };
        world.add(duty, 0)?;
    }
    world.run_for(Span::secs(10) * (BEGINS + 3))?;
    if !world.has_all(1) {
        return Err(Fault::Outcome("the followers are not one unit".to_owned()));
    }
    let start = world.now();
    world.submit(b"a function")?;
    let wait = world.below(LENGTH);
    let is_answer = |_: &World, it: &Seen| matches!(it, Seen::Answered(_));
    if world.run_until(wait, is_answer)?.is_none() {
        let members: Vec<_> = world
            .gateway(0)
            .and_then(|it| it.tables())
            .map(|it| it.members(0).collect())
            .unwrap_or_default();
        let ended = members.into_iter().zip(0_u32..);
        for (member, _) in ended.filter(|(_, place)| set >> place & 1 == 1) {
            if let Some(at) = world.place(member) {
                world.stop_follower(at);
            }
        }
        world.run_until(MOST, is_answer)?;
    }
    let answer = world.seen().iter().find_map(|(at, it)| match it {
        Seen::Answered(answer) => Some((*at, is_right(answer))),
        Seen::Gateway(..) | Seen::Returned(_) => None,
    });
    let right = answer.filter(|it| it.1);
    Ok(right.map(|(at, _)| at.since(start).0))
}

/// The times until the answer, in all trials; nothing where it did not come in one.
fn times(set: u32, samples: &Samples) -> Option<Vec<f64>> {
    let at = set.checked_sub(*SETS.start())?;
    let all = samples.of(NAME).map(|(_, it)| {
        let time = it.0.get(at as usize).copied().flatten()?;
        Some(super::energy::seconds(Span(time)))
    });
    all.collect()
}

/// The sets of `count` lost followers; of the performant ones alone, or with both others.
fn sets(count: u32, with_low: bool) -> impl Iterator<Item = u32> {
    let low = if with_low { LOW } else { 0 };
    SETS.filter(move |it| it & LOW == low && it.count_ones() == count)
}

/// The largest number of lost followers, of any set, with which an answer came.
fn survived(with_low: bool, samples: &Samples) -> u32 {
    let least = if with_low { LOW.count_ones() } else { 1 };
    let most = if with_low { 4 } else { PERFORMANT.count_ones() };
    let is_answered = |count: &u32| sets(*count, with_low).all(|it| times(it, samples).is_some());
    (least..=most).take_while(is_answered).last().unwrap_or(0)
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let trials = samples.of(NAME).count();
    let ours = (trials > 0).then(|| [false, true].map(|it| survived(it, samples)))?;
    let words = |[quorum, with_low]: [u32; 2]| format!("{quorum} / {with_low}");
    let seconds = |count: u32| {
        let sets = SETS.filter(move |it| it.count_ones() == count);
        let all: Vec<f64> = sets.filter_map(|it| times(it, samples)).flatten().collect();
        mean(&all)
    };
    let by_count: Vec<f64> = (1..=4).filter_map(seconds).collect();
    let as_words: Vec<String> = by_count.iter().map(|it| format!("{it:.0}")).collect();
    let names = ["1", "2", "3", "4"].map(ToOwned::to_owned);
    Some(Judgement {
        paper: words(PAPER),
        ours: words(ours),
        verdict: match (ours.iter().zip(PAPER))
            .map(|(ours, it)| (*ours).cmp(&it))
            .min()
        {
            Some(core::cmp::Ordering::Greater) => Verdict::Better,
            Some(core::cmp::Ordering::Equal) => Verdict::Holds,
            Some(core::cmp::Ordering::Less) | None => Verdict::Differs,
        },
        reason: format!(
            "All {} sets of followers, which are gone for good at a random moment of the first {} s of a function. A \
             follower that is gone is purged, and the majority is that of those that are left; where the orchestrator is gone, \
             the others vote again for the next one (erratum Q6). So one follower that is left answers, after {} s where one / two \
             / three / four are gone, in the mean. That holds for followers that are silent: of those that are left fewer than half \
             may return something wrong (erratum Q5). The paper has units formed anew when one performant follower \
             is left; there are no others here. Better when both figures are above the paper's, holds when none is below.",
            SETS.count(),
            super::energy::seconds(LENGTH),
            as_words.join(" / "),
        ),
        trials,
        plots: vec![over(
            "Completion of a function while followers are lost",
            ("of five followers are gone", &names),
            "s",
            [("", by_count)],
            Paper::reports("it says how many, and not how long it takes"),
        )],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_of_the_performant_ones_alone_or_have_both_others() {
        let of = |count, with_low| sets(count, with_low).collect::<Vec<u32>>();
        assert_eq!(of(1, false), [0b001, 0b010, 0b100]);
        assert_eq!(of(3, false), [PERFORMANT]);
        assert_eq!(of(2, true), [LOW]);
        assert_eq!(of(3, true), [0b11_001, 0b11_010, 0b11_100]);
        assert_eq!(of(5, true).len(), 0);
    }

    /// With one answer missing in one trial the number of its set does not count.
    #[test]
    fn a_number_counts_when_all_its_sets_are_answered_in_all_trials() {
        let mut samples = Samples::new(1, 1, Vec::new());
        let mut times = vec![Some(1); SETS.count()];
        samples.add(NAME, 0, Sample(times.clone()));
        assert_eq!([false, true].map(|it| survived(it, &samples)), [3, 4]);
        let first_and_second = 0b011 - *SETS.start() as usize;
        times[first_and_second] = None;
        samples.add(NAME, 1, Sample(times));
        assert_eq!([false, true].map(|it| survived(it, &samples)), [1, 4]);
    }
}
