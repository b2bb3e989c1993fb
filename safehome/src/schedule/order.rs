//! Whether places agree with one order of all routines.

use alloc::vec::Vec;

use selvedge_core::NodeId;

use crate::lineage::{Device, Entry};
use crate::run::{Run, Stage};
use crate::{Hub, RoutineId, Value};

/// Who comes before a new routine and who after it, by the places that it has chosen, and by way of
/// any others (erratum H1: looking at direct neighbours alone is not enough).
///
/// Those that are committed count as long as somebody before them is unfinished (errata H2, H3).
/// Whoever comes before somebody before it comes before it, so in the order of each device those
/// before are in front, those after are behind, and the new routine may go anywhere between.
///
/// Each entry is followed once while places are added, so a routine's places cost O(e l) together,
/// with e the entries of those on either side and l those of one device; nothing is copied.
pub(crate) struct Sides<'a, V> {
    hub: &'a Hub<V>,
    /// All live routines, by id.
    all: Vec<Live<'a, V>>,
    /// Who was marked, in order: the way back.
    trail: Vec<usize>,
    /// Whose neighbours are to be looked at.
    stack: Vec<usize>,
}

struct Live<'a, V> {
    id: RoutineId,
    run: &'a Run<V>,
    stays: Stays,
    side: Option<Side>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Before,
    After,
}

/// Whether a new routine must not go before one that has not touched a common device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stays {
    Nowhere,
    /// On the device that it waits for now (erratum H18).
    WhereItWaits,
    Everywhere,
}

/// The places on a device between which a routine may choose, both ends included; none if `first`
/// is larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) first: usize,
    pub(crate) last: usize,
}

impl<'a, V: Value> Sides<'a, V> {
    /// Of a routine that has chosen nothing yet.
    pub(crate) fn new(hub: &'a Hub<V>) -> Self {
        let live = |(&id, run): (&RoutineId, &'a Run<V>)| Live {
            id,
            run,
            stays: Stays::of(run, hub.config.pre_leases),
            side: None,
        };
        let mut all = Vec::with_capacity(hub.runs.len());
        all.extend(hub.runs.iter().map(live));
        Self {
            trail: Vec::with_capacity(all.len()),
            stack: Vec::new(),
            hub,
            all,
        }
    }

    /// Takes a place, in front of the entry with this number. Returns how to take it
    /// [back](Self::take_back).
    pub(crate) fn choose(&mut self, device: &Device<V>, at: usize) -> usize {
        let way_back = self.trail.len();
        let (left, right) = device
            .lineage
            .split_at_checked(at)
            .unwrap_or((&device.lineage, &[]));
        let mut left = left.iter().rev().filter_map(Entry::routine);
        let mut right = right.iter().filter_map(Entry::routine);
        if self.hub.rules.direct_order() {
            left.for_each(|it| self.mark(it, Side::Before));
            right.for_each(|it| self.mark(it, Side::After));
            self.stack.clear();
            return way_back;
        }
        if let Some(next) = right.next() {
            self.reach(next, Side::After);
        }
        if let Some(former) = left.next() {
            self.reach(former, Side::Before);
        }
        way_back
    }

    /// Takes back what was chosen last.
    pub(crate) fn take_back(&mut self, way_back: usize) {
        for at in self.trail.drain(way_back.min(self.trail.len())..) {
            if let Some(live) = self.all.get_mut(at) {
                live.side = None;
            }
        }
    }

    /// Where it may go on a device: behind all that have touched it and all that must not be
    /// overtaken, and in the order of what was chosen.
    pub(crate) fn room(&self, id: NodeId, device: &Device<V>) -> Room {
        let lineage = &device.lineage;
        let mut room = Room {
            first: 0,
            last: lineage.len(),
        };
        for (at, entry) in lineage.iter().enumerate().rev() {
            if entry.touched {
                room.first = room.first.max(at + 1);
            }
            let Some(live) = entry.routine().and_then(|it| self.all.get(self.index(it)?)) else {
                continue;
            };
            if live.side == Some(Side::After) {
                room.last = at;
            }
            let stays = match live.stays {
                Stays::Nowhere => false,
                Stays::WhereItWaits => live.run.waits_for(id),
                Stays::Everywhere => true,
            };
            if stays || live.side == Some(Side::Before) {
                room.first = room.first.max(at + 1);
            }
            // Who is further in front is before this one.
            if room.first > 0 && !self.hub.rules.direct_order() {
                break;
            }
        }
        room
    }

    /// Whether somebody who has started comes behind this place.
    pub(crate) fn leases(&self, device: &Device<V>, at: usize) -> bool {
        let behind = device.lineage.iter().skip(at).filter_map(Entry::routine);
        let mut behind = behind.filter_map(|it| self.all.get(self.index(it)?));
        behind.any(|it| it.run.stage == Stage::Running)
    }

    fn index(&self, id: RoutineId) -> Option<usize> {
        // Numbers are given in a row, so most are found where they would be if all were live.
        let first = self.all.first()?.id;
        let guess = usize::try_from(id.0.checked_sub(first.0)?).unwrap_or(usize::MAX);
        if self.all.get(guess).is_some_and(|it| it.id == id) {
            return Some(guess);
        }
        self.all.binary_search_by_key(&id, |it| it.id).ok()
    }

    /// Marks it, and all beyond it on this side.
    fn reach(&mut self, id: RoutineId, side: Side) {
        self.mark(id, side);
        while let Some(at) = self.stack.pop() {
            let Some(&Live { id, run, .. }) = self.all.get(at) else {
                continue;
            };
            for device in &run.devices {
                let Some(device) = self.hub.devices.get(device) else {
                    continue;
                };
                let Some(place) = device.position(id) else {
                    continue;
                };
                let next = match side {
                    Side::Before => {
                        let before = device.lineage.get(..place).unwrap_or_default();
                        before.iter().rev().find_map(Entry::routine)
                    }
                    Side::After => {
                        let behind = device.lineage.get(place + 1..).unwrap_or_default();
                        behind.iter().find_map(Entry::routine)
                    }
                };
                if let Some(next) = next {
                    self.mark(next, side);
                }
            }
        }
    }

    fn mark(&mut self, id: RoutineId, side: Side) {
        if let Some(at) = self.index(id)
            && let Some(live) = self.all.get_mut(at)
            && live.side.is_none()
        {
            live.side = Some(side);
            self.trail.push(at);
            self.stack.push(at);
        }
    }
}

impl Stays {
    fn of<V>(run: &Run<V>, pre_leases: bool) -> Self {
        match run.stage {
            Stage::Aborting(_) | Stage::Committed => Self::Everywhere,
            Stage::Waiting | Stage::Placed | Stage::Running if run.late => Self::Everywhere,
            Stage::Running if !pre_leases => Self::Everywhere,
            Stage::Running => Self::WhereItWaits,
            Stage::Waiting | Stage::Placed => Self::Nowhere,
        }
    }
}
