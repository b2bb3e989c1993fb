//! Into gaps of the plan, first found first taken (section 5, algorithm 1, mended: errata H15 to
//! H17).

use alloc::vec::Vec;

use selvedge_core::{NodeId, Span, Time};

use crate::lineage::Entry;
use crate::schedule::{Need, Place};
use crate::{Hub, RoutineId, Value};

impl<V: Value> Hub<V> {
    /// The earliest places in gaps that agree with one order; behind all others if none is found
    /// within [`Config::search_limit`](crate::Config::search_limit).
    pub(crate) fn timeline(&mut self, id: RoutineId, now: Time) -> Vec<Place> {
        let needs = self.needs(id);
        let work = needs.iter().map(|it| it.until).max().unwrap_or_default();
        let longest = Span(work.0.saturating_mul(self.config.stretch.into()) / 100);
        let mut chosen: Vec<Place> = Vec::with_capacity(needs.len());
        let mut from = 0;
        let mut left = self.config.search_limit;
        while let Some(&need) = needs.get(chosen.len()) {
            if left == 0 {
                self.counters.unplaced += 1;
                return self.behind_all(id, now);
            }
            left -= 1;
            self.counters.searched += 1;
            let first = chosen.first().map(|it| it.start);
            let place = self.gap(need, self.soonest(need, &needs, &chosen, now), from);
            let in_time = |it: &Place| {
                let begin = first.unwrap_or(it.start);
                (it.start + it.length).since(begin) <= longest
            };
            match place {
                Some(place) if in_time(&place) => {
                    chosen.push(place);
                    if self.is_serial(&chosen) {
                        from = 0;
                    } else {
                        chosen.pop();
                        from = place.at + 1;
                    }
                }
                // Later gaps are later still: the former choice was wrong.
                Some(_) | None => {
                    let Some(former) = chosen.pop() else {
                        return self.behind_all(id, now);
                    };
                    from = former.at + 1;
                }
            }
        }
        chosen
    }

    /// When the routine can need this device at the soonest, after what was chosen.
    fn soonest(&self, need: Need, needs: &[Need], chosen: &[Place], now: Time) -> Time {
        let delayed = chosen.iter().zip(needs).map(|(place, before)| {
            let delay = place.start.since(now + before.from);
            now + need.from + delay
        });
        delayed.max().unwrap_or(now + need.from)
    }

    /// The first gap, from the place with number `from` on, that is long enough.
    fn gap(&self, need: Need, soonest: Time, from: usize) -> Option<Place> {
        let device: NodeId = need.device;
        let first = self.earliest(device)?.max(from);
        let lineage = &self.devices.get(&device)?.lineage;
        let length = need.until - need.from;
        let before = lineage.get(..first).unwrap_or_default();
        let open = before.iter().filter(|it| !it.released);
        let mut start = open.map(Entry::end).fold(soonest, Time::max);
        for at in first..=lineage.len() {
            let Some(next) = lineage.get(at) else {
                return Some(Place {
                    device,
                    at,
                    start,
                    length,
                });
            };
            if start + length <= next.start {
                return Some(Place {
                    device,
                    at,
                    start,
                    length,
                });
            }
            start = start.max(next.end());
        }
        None
    }
}
