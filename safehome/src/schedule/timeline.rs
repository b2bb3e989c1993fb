//! Into gaps of the plan, first found first taken (section 5, algorithm 1, mended: errata H15 to
//! H17).

use alloc::vec::Vec;

use selvedge_core::{Span, Time};

use crate::lineage::Entry;
use crate::schedule::order::{Sides, Verdict};
use crate::schedule::place::{Need, Place};
use crate::{Hub, RoutineId, Value};

/// Why there are no places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unplaced {
    /// No gaps agree with one order in time.
    NoGap,
    /// As many were looked at as may be.
    GaveUp,
}

impl<V: Value> Hub<V> {
    /// The earliest places in gaps that agree with one order: such that the routine is not
    /// stretched beyond [`Config::stretch`](crate::Config::stretch), or else any. Behind all others
    /// if none are found within [`Config::search_limit`](crate::Config::search_limit).
    ///
    /// Not in front of a routine that sets the same devices, if neither asks for a state: the first
    /// one would come last. Where that leaves only gaps that stretch it, it takes these: behind all
    /// others it would be stretched as much, and later ones would have to go behind it.
    pub(crate) fn timeline(&mut self, id: RoutineId, now: Time) -> Vec<Place> {
        let needs = self.needs(id);
        let found = self.runs.get(&id).map(|run| {
            let mut sides = Sides::new(self, run, &needs);
            self.earliest(&needs, now, &mut sides)
        });
        let (found, left) = found.unwrap_or((Err(Unplaced::NoGap), self.config.search_limit));
        self.counters.searched += u64::from(self.config.search_limit - left);
        self.counters.unplaced += u64::from(found == Err(Unplaced::GaveUp));
        found.unwrap_or_else(|_| self.behind_all(&needs, now))
    }

    /// The places, if there are any, and how many more gaps might have been looked at.
    pub(super) fn earliest(
        &self,
        needs: &[Need],
        now: Time,
        sides: &mut Sides<'_, V>,
    ) -> (Result<Vec<Place>, Unplaced>, u16) {
        let work = needs.iter().map(|it| it.until).max().unwrap_or_default();
        let longest = Span(work.0.saturating_mul(self.config.stretch.into()) / 100);
        let mut left = self.config.search_limit;
        let mut found = self.search(needs, now, longest, sides, &mut left);
        if found == Err(Unplaced::NoGap) {
            found = self.search(needs, now, Span(u64::MAX), sides, &mut left);
        }
        (found, left)
    }

    /// The places, if there are any; `left` gaps may be looked at.
    fn search(
        &self,
        needs: &[Need],
        now: Time,
        longest: Span,
        sides: &mut Sides<'_, V>,
        left: &mut u16,
    ) -> Result<Vec<Place>, Unplaced> {
        let mut chosen: Vec<Place> = Vec::with_capacity(needs.len());
        let mut plans: Vec<Vec<Gap>> = Vec::with_capacity(needs.len());
        // In front of this the next place must not be.
        let mut from = 0;
        while let Some(&need) = needs.get(chosen.len()) {
            *left = left.checked_sub(1).ok_or(Unplaced::GaveUp)?;
            let number = chosen.len();
            let device = self.devices.get(&need.device).ok_or(Unplaced::NoGap)?;
            let delay = chosen.last().map_or(Span::ZERO, |former| {
                let planned = needs.get(number - 1).map_or(Span::ZERO, |it| it.from);
                former.start.since(now + planned)
            });
            let soonest = now + need.from + delay;
            let begin = chosen.first().map(|it| it.start);
            let in_time = |it: &Place| {
                let begin = begin.unwrap_or(it.start);
                (it.start + it.length).since(begin) <= longest
            };
            if plans.len() <= number {
                plans.push(need.plan(&device.lineage, sides.first(number)));
            }
            let plan = plans.get(number).map_or(&[][..], Vec::as_slice);
            let gaps = need.gaps(plan, from, soonest);
            let Some(place) = first_of(gaps.take_while(in_time), number, sides) else {
                // Later gaps are later still: the former choice was wrong.
                let former = chosen.pop().ok_or(Unplaced::NoGap)?;
                from = former.at + 1;
                continue;
            };
            if sides.choose(number, place.at) {
                chosen.push(place);
                from = 0;
            } else {
                from = place.at + 1;
            }
        }
        for place in &mut chosen {
            let device = self.devices.get(&place.device);
            place.leased = device.is_some_and(|it| self.leases(it, place.at));
        }
        Ok(chosen)
    }
}

/// The first of these places that agrees with those that were chosen.
fn first_of<V: Value>(
    mut places: impl Iterator<Item = Place>,
    number: usize,
    sides: &mut Sides<'_, V>,
) -> Option<Place> {
    places.find_map(|place| match sides.judge(number, place.at) {
        Verdict::Fits => Some(Some(place)),
        Verdict::TooEarly => None,
        // And so are all that follow.
        Verdict::TooLate => Some(None),
    })?
}

/// A gap in the plan of a device, in front of the entry with this number.
#[derive(Clone, Copy, Debug)]
struct Gap {
    at: usize,
    /// When those in front give the device back.
    free: Time,
    /// When the next one takes it, if there is one.
    until: Option<Time>,
}

impl Need {
    /// The gaps from this entry on that are long enough. What was planned for those in front of it
    /// that gave the device back is over. O(entries).
    fn plan<V>(self, lineage: &[Entry<V>], first: usize) -> Vec<Gap> {
        let length = self.until - self.from;
        let (before, behind) = lineage.split_at_checked(first).unwrap_or((lineage, &[]));
        let open = before.iter().filter(|it| !it.released);
        let mut free = open.map(Entry::end).max().unwrap_or_default();
        let mut plan = Vec::new();
        for (next, at) in behind.iter().zip(first..) {
            let until = Some(next.start);
            if free + length <= next.start {
                plan.push(Gap { at, free, until });
            }
            free = free.max(next.end());
        }
        let (at, until) = (lineage.len(), None);
        plan.push(Gap { at, free, until });
        plan
    }

    /// The places in these gaps from this entry on that are long enough from the soonest time on:
    /// those behind are later.
    fn gaps(self, plan: &[Gap], from: usize, soonest: Time) -> impl Iterator<Item = Place> + '_ {
        let length = self.until - self.from;
        let first = plan.partition_point(|it| it.at < from);
        plan.iter().skip(first).filter_map(move |gap| {
            let start = soonest.max(gap.free);
            let is_long = gap.until.is_none_or(|until| start + length <= until);
            is_long.then_some(Place {
                device: self.device,
                at: gap.at,
                start,
                length,
                leased: false,
            })
        })
    }
}
