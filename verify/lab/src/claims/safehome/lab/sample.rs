//! The figures of a home after its run.

use selvedge_core::Span;

use super::super::scenario::Need;
use super::explain::explains;
use super::world::{Job, World};
use super::{Figure, PARTS};
use crate::claims::Sample;
use crate::claims::stats::{mean, quantile_of_sorted};

impl World {
    pub(super) fn sample(&self, is_whole: bool) -> Sample {
        let jobs = || self.jobs.iter().zip(&self.scenario.routines);
        let committed = || jobs().filter(|(job, _)| job.committed);
        let latency = |job: &Job| job.ended.map_or(0, |it| it.since(job.submitted).0);
        let latencies = sorted(committed().map(|(job, _)| latency(job)));
        let at = |share| quantile_of_sorted(&latencies, share).map(|it| (it / 1_000.0) as u64);
        let mut figures = vec![None; Figure::Swapped as usize];
        let mut put = |figure: Figure, value: Option<u64>| {
            if let Some(place) = figures.get_mut(figure as usize) {
                *place = value;
            }
        };
        put(
            Figure::Mean,
            mean(&latencies).map(|it| (it / 1_000.0) as u64),
        );
        put(Figure::Median, at(0.5));
        put(Figure::P90, at(0.9));
        put(Figure::P95, at(0.95));
        let works = sorted(jobs().map(|(_, needs)| work(needs).0));
        put(
            Figure::MeanWork,
            mean(&works).map(|it| (it / 1_000.0) as u64),
        );
        let middle = quantile_of_sorted(&works, 0.5);
        put(Figure::MedianWork, middle.map(|it| (it / 1_000.0) as u64));
        let normal = committed().map(|(job, needs)| latency(job) * PARTS / work(needs).0.max(1));
        put(Figure::Normalized, average(normal));
        put(
            Figure::Parallelism,
            (self.ran.0 * PARTS).checked_div(self.ran.1),
        );
        let by_time = u128::from(self.ran_for.0.0) * u128::from(PARTS);
        let by_time = by_time.checked_div(u128::from(self.ran_for.1.0));
        put(Figure::ParallelismByTime, by_time.map(|it| it as u64));
        put(
            Figure::Incongruent,
            average(jobs().map(|(job, _)| u64::from(job.collided.is_some()) * PARTS)),
        );
        let time = |(job, _): (&Job, _)| {
            let (started, ended) = (job.started?, job.ended?);
            let after = job.collided.map_or(0, |it| ended.since(it).0);
            Some(
                (after * PARTS)
                    .checked_div(ended.since(started).0)
                    .unwrap_or(0),
            )
        };
        put(Figure::IncongruentTime, average(jobs().filter_map(time)));
        let is_explained = is_whole.then(|| u64::from(!self.is_explained()) * PARTS);
        put(Figure::Unexplained, is_explained);
        let aborted = || jobs().filter(|(job, _)| job.ended.is_some() && !job.committed);
        put(
            Figure::Aborted,
            Some(aborted().count() as u64 * PARTS / self.jobs.len().max(1) as u64),
        );
        let share = |part: usize, needs: &[Need]| part as u64 * PARTS / needs.len().max(1) as u64;
        put(
            Figure::RolledBack,
            average(aborted().map(|(job, needs)| share(job.done, needs))),
        );
        let hit = aborted().filter(|(job, _)| job.is_hit);
        put(
            Figure::RolledBackHit,
            average(hit.map(|(job, needs)| share(job.done, needs))),
        );
        put(
            Figure::Restored,
            average(aborted().map(|(job, needs)| share(job.restored, needs))),
        );
        let stretched = committed().filter_map(|(job, needs)| {
            let took = job.ended?.since(job.started?);
            Some(u64::from(took > work(needs)) * PARTS)
        });
        put(Figure::Stretched, average(stretched));
        Sample(figures)
    }

    /// The share of pairs in another order than they were submitted in, by the order that the hub
    /// reported; and the same for pairs that share a device.
    pub(super) fn swapped(&self) -> [Option<u64>; 2] {
        let mut pairs = [(0, 0); 2];
        for (at, &one) in self.order.iter().enumerate() {
            for &other in self.order.iter().skip(at + 1) {
                let routines = &self.scenario.routines;
                let needs = |it: usize| {
                    routines
                        .get(it)
                        .into_iter()
                        .flat_map(|it| it.iter())
                        .map(|it| it.0)
                };
                let shares = needs(one).any(|it| needs(other).any(|other| it == other));
                for ((swapped, all), counts) in pairs.iter_mut().zip([true, shares]) {
                    *swapped += u64::from(counts && one > other);
                    *all += u64::from(counts);
                }
            }
        }
        pairs.map(|(swapped, all)| (swapped * PARTS).checked_div(all))
    }

    /// Returns true if any order of the routines leaves the devices as they are.
    fn is_explained(&self) -> bool {
        let states: Vec<u32> = self.things.iter().map(|it| it.state).collect();
        let routines: Vec<&[Need]> = self.scenario.routines.iter().map(|it| &**it).collect();
        explains(&routines, &states)
    }
}

fn sorted(values: impl Iterator<Item = u64>) -> Vec<f64> {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values.into_iter().map(|it| it as f64).collect()
}

/// The time that the commands take.
fn work(needs: &[Need]) -> Span {
    Span::secs(needs.iter().map(|it| u64::from(it.1)).sum())
}

fn average(values: impl Iterator<Item = u64>) -> Option<u64> {
    let (sum, count) = values.fold((0, 0), |(sum, count), it| (sum + it, count + 1));
    u64::checked_div(sum, count)
}
