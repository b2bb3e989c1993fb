//! Into gaps of the plan, first found first taken (section 5, algorithm 1, mended: errata H15 to
//! H17).

use alloc::vec::Vec;

use selvedge_core::{Span, Time};

use crate::lineage::{Device, Entry};
use crate::schedule::order::{Room, Sides};
use crate::schedule::place::{Need, Place};
use crate::{Hub, RoutineId, Value};

/// Why there are no places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unplaced {
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
        let work = needs.iter().map(|it| it.until).max().unwrap_or_default();
        let longest = Span(work.0.saturating_mul(self.config.stretch.into()) / 100);
        let mut left = self.config.search_limit;
        let mut found = Err(Unplaced::NoGap);
        if let Some(run) = self.runs.get(&id) {
            let mut sides = Sides::new(self, run, &needs);
            found = self.search(&needs, now, longest, &mut sides, &mut left);
            if found == Err(Unplaced::NoGap) {
                found = self.search(&needs, now, Span(u64::MAX), &mut sides, &mut left);
            }
        }
        self.counters.searched += u64::from(self.config.search_limit - left);
        self.counters.unplaced += u64::from(found == Err(Unplaced::GaveUp));
        found.unwrap_or_else(|_| self.behind_all(&needs, now))
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
        // In front of this the next place must not be.
        let mut from = 0;
        while let Some(&need) = needs.get(chosen.len()) {
            *left = left.checked_sub(1).ok_or(Unplaced::GaveUp)?;
            let number = chosen.len();
            let device = self.devices.get(&need.device).ok_or(Unplaced::NoGap)?;
            let mut room = sides.room(number).ok_or(Unplaced::NoGap)?;
            room.first = room.first.max(from);
            let delay = chosen.last().map_or(Span::ZERO, |former| {
                let planned = needs.get(number - 1).map_or(Span::ZERO, |it| it.from);
                former.start.since(now + planned)
            });
            let place = need.gap(device, room, now + need.from + delay);
            let begin = chosen.first().map(|it| it.start);
            let in_time = |it: &Place| {
                let begin = begin.unwrap_or(it.start);
                (it.start + it.length).since(begin) <= longest
            };
            let Some(place) = place.filter(in_time) else {
                // Later gaps are later still: the former choice was wrong.
                let former = chosen.pop().ok_or(Unplaced::NoGap)?;
                from = former.at + 1;
                continue;
            };
            if sides.choose(number, device, place.at) {
                chosen.push(place);
                from = 0;
            } else {
                from = place.at + 1;
            }
        }
        for place in &mut chosen {
            let device = self.devices.get(&place.device);
            place.leased = device.is_some_and(|it| sides.leases(it, place.at));
        }
        Ok(chosen)
    }
}

impl Need {
    /// The first gap that is long enough.
    fn gap<V: Value>(self, device: &Device<V>, room: Room, soonest: Time) -> Option<Place> {
        let length = self.until - self.from;
        let before = device.lineage.get(..room.first).unwrap_or_default();
        let open = before.iter().filter(|it| !it.released);
        let mut start = open.map(Entry::end).fold(soonest, Time::max);
        for at in room.first..=room.last {
            let next = device.lineage.get(at);
            if next.is_none_or(|next| start + length <= next.start) {
                return Some(Place {
                    device: self.device,
                    at,
                    start,
                    length,
                    leased: false,
                });
            }
            start = start.max(next.map_or(start, Entry::end));
        }
        None
    }
}
