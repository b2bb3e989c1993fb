//! Distances that are measured: the time from the direct ping of a probe to its acknowledgement.

use selvedge_core::{Member, NodeId, Time};

use crate::Membership;
use crate::list::{Entry, RoundTrip};
use crate::target::weight;

impl Membership {
    /// Notes that the ping of the probe that was just begun leaves now.
    pub(crate) fn begin_measuring(&mut self, target: Member, now: Time) {
        if self.config.round_trip_unit.is_none() {
            return;
        }
        self.probing.begin_measuring(now);
        // Probes failed, perhaps because this node is slow: then it measures itself.
        if self.probing.is_stretched() {
            self.note_another_ping(target);
        }
    }

    /// Notes that the period of a probe ended. An acknowledgement that has not come by now may come
    /// in the period of the next probe of that member.
    pub(crate) fn end_measuring(&mut self, target: Member) {
        if self.probing.end_measuring().is_some() {
            self.note_another_ping(target);
        }
    }

    /// Notes that the next acknowledgement of this member may be that of another ping than the open
    /// or the next probe's.
    pub(crate) fn note_another_ping(&mut self, target: Member) {
        if self.config.round_trip_unit.is_some()
            && let Some(slot) = self.list.find(target.id)
            && let Some(round_trip) = self.list.measure(slot)
        {
            round_trip.set_ambiguous();
        }
    }

    /// Takes a direct acknowledgement of the member in `slot`.
    pub(crate) fn on_ack(&mut self, from: Member, slot: Option<usize>, now: Time) {
        let is_it = |&slot: &usize| self.list.entry(slot).map(Entry::member) == Some(from);
        let (Some(unit), Some(slot)) = (self.config.round_trip_unit, slot.filter(is_it)) else {
            return;
        };
        let sent = self.probing.take_measured(from);
        let sample = sent.map(|sent| now.since(sent));
        if let Some(round_trip) = self.list.measure(slot)
            && round_trip.take_ack()
            && let Some(sample) = sample
            && let Some(weighed) = round_trip.take(sample, unit)
        {
            self.counters.distances += 1;
            self.weigh(slot, weighed, RoundTrip::micros(unit));
        }
    }

    /// Weighs all measured members anew, after a change of the unit or of the exponent. O(N log N).
    pub(crate) fn weigh_anew(&mut self) {
        let Some(unit) = self.config.round_trip_unit.map(RoundTrip::micros) else {
            return;
        };
        for slot in 0..self.list.slots() {
            if let Some(round_trip) = self.list.measure(slot)
                && let Some(weighed) = round_trip.weigh_anew(unit)
            {
                self.weigh(slot, weighed, unit);
            }
        }
    }

    fn weigh(&mut self, slot: usize, round_trip: u32, unit: u32) {
        let weight = weight(round_trip, unit, self.config.exponent);
        self.list.set_own_weight(slot, weight);
    }

    /// The number of relays for pings of this member that are drawn uniformly, and not by weight. By
    /// weight all relays would be in this node's own site, and share the path that is broken: one
    /// is drawn from all members, and all are where the target is not within the unit.
    pub(crate) fn relays_alike(&self, target: NodeId) -> u8 {
        let Some(unit) = self.config.round_trip_unit.map(RoundTrip::micros) else {
            return 0;
        };
        let slot = self.list.find(target);
        let round_trip = slot.and_then(|slot| self.list.round_trip(slot).weighed());
        if round_trip.is_some_and(|it| it <= unit) {
            1
        } else {
            self.config.relays
        }
    }

    /// The longest round trip of a neighbour in microseconds: the unit, or that of the nearest
    /// member if none is that near. O(N).
    pub(crate) fn reach(&self) -> u32 {
        let slots = self.list.all();
        let there = slots.filter(|&slot| self.list.draws().has(slot));
        let weighed = there.filter_map(|slot| self.list.round_trip(slot).weighed());
        weighed.min().unwrap_or_default()
    }

    /// Returns true if the member in `slot` is a neighbour, where `reach` is the longest round trip
    /// of one.
    pub(crate) fn is_neighbour(&self, slot: usize, reach: u32) -> bool {
        match self.list.round_trip(slot).weighed() {
            Some(round_trip) => round_trip <= reach,
            None => self.list.entry(slot).is_some_and(Entry::is_neighbour),
        }
    }
}
