//! The test whether places agree with one order, by the plain rule: for published rules, under
//! which there may be no such order, and for comparison.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;

use crate::lineage::Entry;
use crate::run::Run;
use crate::schedule::order::Verdict;
use crate::schedule::place::Need;
use crate::{Hub, RoutineId, Value};

/// An implementation that searches all routines before and after each time, on all devices.
pub(crate) struct Plain<'a, V> {
    lineages: Vec<&'a [Entry<V>]>,
    /// The routines directly behind each routine, and directly in front.
    after: BTreeMap<RoutineId, Vec<RoutineId>>,
    before: BTreeMap<RoutineId, Vec<RoutineId>>,
    is_direct: bool,
    /// The range of places on each device, both ends included: before each choice, and after the
    /// last one.
    rooms: Vec<Vec<(usize, usize)>>,
}

impl<'a, V: Value> Plain<'a, V> {
    pub(crate) fn new(hub: &'a Hub<V>, new: &Run<V>, needs: &[Need]) -> Self {
        let devices = needs
            .iter()
            .map(|it| (it.device, hub.devices.get(&it.device)));
        let room = |(id, device): (_, Option<&_>)| {
            let first = device.map_or(0, |it| hub.first_place(id, it, new, false));
            (first, device.map_or(0, |it| it.lineage.len()))
        };
        let rooms = devices.clone().map(room).collect();
        let lineage = |it: (_, Option<&'a crate::lineage::Device<V>>)| {
            it.1.map_or(&[][..], |it| it.lineage.as_slice())
        };
        let after = hub.neighbours();
        let mut before: BTreeMap<RoutineId, Vec<RoutineId>> = BTreeMap::new();
        for (&first, those) in &after {
            for &second in those {
                before.entry(second).or_default().push(first);
            }
        }
        Self {
            lineages: devices.map(lineage).collect(),
            after,
            before,
            is_direct: hub.rules.direct_order(),
            rooms: vec![rooms],
        }
    }

    fn room(&self, number: usize) -> (usize, usize) {
        let rooms = self.rooms.get(number).and_then(|it| it.get(number));
        rooms.copied().unwrap_or_default()
    }

    pub(crate) fn first(&self, number: usize) -> usize {
        let rooms = self.rooms.first().and_then(|it| it.get(number));
        rooms.map_or(0, |it| it.0)
    }

    pub(crate) fn judge(&self, number: usize, at: usize) -> Verdict {
        let (first, last) = self.room(number);
        if at < first {
            Verdict::TooEarly
        } else if at > last {
            Verdict::TooLate
        } else {
            Verdict::Fits
        }
    }

    pub(crate) fn choose(&mut self, number: usize, at: usize) -> bool {
        self.rooms.truncate(number + 1);
        let mut rooms = self.rooms.last().cloned().unwrap_or_default();
        let lineage = self.lineages.get(number).copied().unwrap_or_default();
        let (front, behind) = lineage.split_at_checked(at).unwrap_or((lineage, &[]));
        let before = self.all(front, &self.before);
        let after = self.all(behind, &self.after);
        let later = rooms.iter_mut().zip(&self.lineages).skip(number + 1);
        let mut has_room = true;
        for ((first, last), lineage) in later {
            for (entry, place) in lineage.iter().zip(0..) {
                let is_in =
                    |those: &BTreeSet<_>| entry.routine().is_some_and(|it| those.contains(&it));
                if is_in(&before) {
                    *first = (*first).max(place + 1);
                }
                if is_in(&after) {
                    *last = (*last).min(place);
                }
            }
            has_room &= *first <= *last;
        }
        self.rooms.push(rooms);
        has_room
    }

    /// The routines given, and all that are on the same side of them, by way of any others.
    fn all(
        &self,
        these: &[Entry<V>],
        next: &BTreeMap<RoutineId, Vec<RoutineId>>,
    ) -> BTreeSet<RoutineId> {
        let mut stack: Vec<RoutineId> = these.iter().filter_map(Entry::routine).collect();
        let mut all = BTreeSet::new();
        while let Some(id) = stack.pop() {
            if all.insert(id) && !self.is_direct {
                stack.extend(next.get(&id).into_iter().flatten());
            }
        }
        all
    }
}

impl<V: Value> Hub<V> {
    /// The routines that come right behind each routine on some device.
    fn neighbours(&self) -> BTreeMap<RoutineId, Vec<RoutineId>> {
        let mut behind: BTreeMap<RoutineId, Vec<RoutineId>> = BTreeMap::new();
        for (_, device) in self.devices.iter() {
            let owners = || device.lineage.iter().filter_map(Entry::routine);
            for (first, second) in owners().zip(owners().skip(1)) {
                behind.entry(first).or_default().push(second);
            }
        }
        behind
    }
}
