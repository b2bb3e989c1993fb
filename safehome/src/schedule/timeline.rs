//! Placement in gaps of the plan, in the first gaps found (section 5, algorithm 1, corrected:
//! errata H15 to H17).

use alloc::vec::Vec;

use selvedge_core::{Span, Time};

use crate::lineage::Entry;
use crate::schedule::order::{Sides, Verdict};
use crate::schedule::place::{Draft, Need, Place};
use crate::{Hub, RoutineId, Value};

/// The reason why there are no places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unplaced {
    /// No gaps agree with one order in time.
    NoGap,
    /// The search limit was reached.
    GaveUp,
}

impl<V: Value> Hub<V> {
    /// The earliest places in gaps that agree with one order: without stretching the routine beyond
    /// [`Config::stretch`](crate::Config::stretch) if possible, or else any. Behind all others if
    /// none are found within [`Config::search_limit`](crate::Config::search_limit).
    ///
    /// Not in front of a routine that sets the same devices, if neither asks for a state: otherwise
    /// the first one would be last. If that leaves only gaps that stretch it, it takes these:
    /// behind all others it would be stretched as much, and later ones would have to go behind it.
    pub(crate) fn timeline(&mut self, id: RoutineId, now: Time, draft: &mut Draft) {
        let Some(run) = self.runs.get(&id) else {
            debug_assert!(false, "the routine is unfinished");
            return;
        };
        self.find_needs(run, &mut draft.needs);
        let mut sides = Sides::new(self, run, &draft.needs, &mut draft.memory);
        let (needs, places) = (&draft.needs, &mut draft.places);
        let (found, left) = self.earliest(needs, now, &mut sides, &mut draft.search, places);
        self.counters.searched += u64::from(self.config.search_limit - left);
        self.counters.unplaced += u64::from(found == Err(Unplaced::GaveUp));
        if found.is_err() {
            self.behind_all(now, draft);
        }
    }

    /// Finds the places, if there are any, and the number of gaps that it could still have
    /// examined.
    pub(super) fn earliest(
        &self,
        needs: &[Need],
        now: Time,
        sides: &mut Sides<'_, V>,
        search: &mut Search,
        places: &mut Vec<Place>,
    ) -> (Result<(), Unplaced>, u16) {
        let work = needs.iter().map(|it| it.until).max().unwrap_or_default();
        let longest = Span(work.0.saturating_mul(self.config.stretch.into()) / 100);
        let mut left = self.config.search_limit;
        search.plans.clear();
        let mut found = self.search(needs, now, longest, sides, search, &mut left);
        if found == Err(Unplaced::NoGap) {
            let longest = Span(u64::MAX);
            found = self.search(needs, now, longest, sides, search, &mut left);
        }
        let place = |(need, it): (&Need, &Chosen)| {
            let device = self.devices.get(&need.device);
            Place {
                device: need.device,
                at: it.at,
                start: it.start,
                length: need.length(),
                leased: device.is_some_and(|device| self.leases(device, it.at)),
            }
        };
        places.clear();
        if found.is_ok() {
            places.extend(needs.iter().zip(&search.chosen).map(place));
        }
        (found, left)
    }

    /// Chooses the gaps, if there are any; examines at most `left`.
    fn search(
        &self,
        needs: &[Need],
        now: Time,
        longest: Span,
        sides: &mut Sides<'_, V>,
        search: &mut Search,
        left: &mut u16,
    ) -> Result<(), Unplaced> {
        let Search { plans, chosen } = search;
        chosen.clear();
        // The next gap to examine, if an earlier one of the device did not fit, and the earliest
        // time.
        let mut next = None;
        while let Some(need) = needs.get(chosen.len()) {
            *left = left.checked_sub(1).ok_or(Unplaced::GaveUp)?;
            let number = chosen.len();
            if plans.count() <= number {
                let device = self.devices.get(&need.device).ok_or(Unplaced::NoGap)?;
                plans.add(need.length(), &device.lineage, sides.first(number));
            }
            let plan = plans.get(number);
            let (nth, soonest) = next.take().unwrap_or_else(|| {
                let delay = chosen.last().map_or(Span::ZERO, |former| {
                    let planned = needs.get(number - 1).map_or(Span::ZERO, |it| it.from);
                    former.start.since(now + planned)
                });
                let soonest = now + need.from + delay;
                (first_until(plan, soonest + need.length()), soonest)
            });
            let begin = chosen.first().map(|it| it.start);
            let is_in_time = |start: Time| {
                let begin = begin.unwrap_or(start);
                (start + need.length()).since(begin) <= longest
            };
            let judge = |at| sides.judge(number, at);
            let Some(found) = first_fitting(plan, nth, soonest, is_in_time, judge) else {
                // Later gaps begin even later: the choice before was wrong.
                let former = chosen.pop().ok_or(Unplaced::NoGap)?;
                next = Some((former.nth + 1, former.soonest));
                continue;
            };
            if !sides.choose(number, found.at) {
                next = Some((found.nth + 1, soonest));
                continue;
            }
            chosen.push(found);
        }
        Ok(())
    }
}

/// Results that are remembered during a search for gaps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Search {
    plans: Plans,
    chosen: Vec<Chosen>,
}

/// A place in the gap with this number.
#[derive(Clone, Debug)]
struct Chosen {
    nth: usize,
    /// The earliest time for which it was searched.
    soonest: Time,
    at: usize,
    start: Time,
}

/// The first place that agrees with the chosen ones, in these gaps from this one on.
fn first_fitting(
    plan: &[Gap],
    first: usize,
    soonest: Time,
    is_in_time: impl Fn(Time) -> bool,
    mut judge: impl FnMut(usize) -> Verdict,
) -> Option<Chosen> {
    for (gap, nth) in plan.get(first..)?.iter().zip(first..) {
        let (at, start) = (gap.at, soonest.max(gap.free));
        if !is_in_time(start) {
            return None;
        }
        match judge(at) {
            Verdict::Fits => {
                return Some(Chosen {
                    nth,
                    soonest,
                    at,
                    start,
                });
            }
            Verdict::TooEarly => {}
            // All following gaps are too late as well.
            Verdict::TooLate => return None,
        }
    }
    None
}

/// The first of these gaps that does not end before. Each has at least the needed length, so it
/// ends no sooner than the ones in front of it: none behind it ends before, either. O(log gaps).
fn first_until(plan: &[Gap], end: Time) -> usize {
    plan.partition_point(|it| it.until < end)
}

/// A gap in the plan of a device, in front of the entry with this number.
#[derive(Clone, Copy, Debug)]
struct Gap {
    at: usize,
    /// The time at which the routines in front give the device back.
    free: Time,
    /// The time at which the next routine takes it, or else the end of time.
    until: Time,
}

/// The gaps that are long enough, of one device after the other.
#[derive(Clone, Debug, Default)]
struct Plans {
    gaps: Vec<Gap>,
    /// The end of the gaps of each device.
    ends: Vec<usize>,
}

impl Plans {
    fn clear(&mut self) {
        self.gaps.clear();
        self.ends.clear();
    }

    /// Adds the gaps of the next device, of this length and from this entry on. The plans of
    /// routines in front of it that gave the device back are over. O(entries).
    fn add<V>(&mut self, length: Span, lineage: &[Entry<V>], first: usize) {
        let (before, behind) = lineage.split_at_checked(first).unwrap_or((lineage, &[]));
        let open = before.iter().filter(|it| !it.released);
        let mut free = open.map(Entry::end).max().unwrap_or_default();
        for (next, at) in behind.iter().zip(first..) {
            let until = next.start;
            if free + length <= until {
                self.gaps.push(Gap { at, free, until });
            }
            free = free.max(next.end());
        }
        let (at, until) = (lineage.len(), Time(u64::MAX));
        self.gaps.push(Gap { at, free, until });
        self.ends.push(self.gaps.len());
    }

    /// The number of devices.
    const fn count(&self) -> usize {
        self.ends.len()
    }

    fn get(&self, number: usize) -> &[Gap] {
        let begin = number.checked_sub(1).and_then(|it| self.ends.get(it));
        let (begin, end) = (begin.copied().unwrap_or_default(), self.ends.get(number));
        let gaps = end.and_then(|&end| self.gaps.get(begin..end));
        gaps.unwrap_or_default()
    }
}
