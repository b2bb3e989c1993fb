//! The ranks that the hub keeps of its routines.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use selvedge_core::{NodeId, Untracked};

use crate::config::Visibility;
use crate::lineage::Device;
use crate::lineage::Entry;
use crate::published::Rules;
use crate::run::{Run, Stage};
use crate::schedule::ranks::{Note, Ranks, Slot};
use crate::{Hub, RoutineId, Value};

impl<V: Value> Hub<V> {
    /// Returns true if the routines have one order, so that [`Ranks`] can decide which comes before
    /// which. By published rules there may be none.
    pub(crate) fn keeps_ranks(&self) -> bool {
        self.config.visibility == Visibility::Eventual && self.rules == Rules::default()
    }

    /// A slot for a routine that is about to take its places.
    pub(crate) fn new_slot(&mut self, id: RoutineId) -> Option<Slot> {
        if !self.keeps_ranks() {
            return None;
        }
        let note = self.runs.get(&id).map(Run::note).unwrap_or_default();
        self.ranks.add(note)
    }

    /// Notes that a routine with places has started, or must not be overtaken.
    pub(crate) fn ranks_begin(&mut self, id: RoutineId) {
        let run = self.runs.get(&id);
        let mut devices = run.into_iter().flat_map(|it| &it.devices);
        let slot = devices.find_map(|at| *self.devices.get(at)?.entry(id)?.slot);
        self.ranks.begin(slot);
    }

    /// Returns true if the kept ranks follow from the orders of the devices and from the routines.
    pub(crate) fn ranks_agree(&self) -> bool {
        let mut places = 0;
        let mut agree = self.devices.iter().all(|(&id, device)| {
            let mut entries = device.lineage.iter().filter(|it| it.routine().is_some());
            if !self.keeps_ranks() {
                return entries.all(|it| it.slot.is_none());
            }
            let slots: Vec<Slot> = entries.clone().filter_map(|it| *it.slot).collect();
            places += slots.len();
            let rank = |it: &Slot| self.ranks.rank_of(*it);
            let is_noted = |it: &Entry<V>| {
                let run = it.routine().and_then(|it| self.runs.get(&it));
                let note = it.slot.map(|it| self.ranks.note(it));
                let (Some(run), Some(note)) = (run, note) else {
                    return false;
                };
                it.touched || note.has_begun || run.note() == note
            };
            let beside = |at: usize, slot: &Slot| {
                let before = at.checked_sub(1).and_then(|at| slots.get(at));
                let found = self.ranks.on(*slot, id);
                found == Some([before.copied(), slots.get(at + 1).copied()])
            };
            slots.len() == entries.clone().count()
                && slots.is_sorted_by(|first, second| rank(first) < rank(second))
                && entries.all(is_noted)
                && slots.iter().enumerate().all(|(at, it)| beside(at, it))
        });
        agree &= self.ranks.places() == places;
        agree
    }

    /// Computes all ranks. O(e log n), with e the number of places of n routines.
    pub(crate) fn rank_all(&mut self) {
        self.ranks = Untracked::default();
        let order = self.one_order();
        let (true, Ok(order)) = (self.keeps_ranks(), order) else {
            return;
        };
        // A routine that is about to be undone may have lost all its places.
        let entries = self.devices.iter().flat_map(|it| &it.1.lineage);
        let placed: BTreeSet<RoutineId> = entries.filter_map(Entry::routine).collect();
        let mut slots = BTreeMap::new();
        for id in order.iter().filter(|it| placed.contains(it)) {
            if let Some(run) = self.runs.get(id) {
                slots.insert(*id, self.ranks.add(run.note()));
            }
        }
        for (&id, device) in self.devices.iter_mut() {
            for entry in &mut device.lineage {
                let owner = entry.routine();
                entry.slot = Untracked(owner.and_then(|it| *slots.get(&it)?));
            }
            for at in 0..device.lineage.len() {
                device.link(id, at, &mut self.ranks);
            }
        }
        for id in order {
            if let Some(&Some(slot)) = slots.get(&id) {
                self.ranks.rank(slot);
            }
        }
    }
}

impl<V: Value> Run<V> {
    /// The facts that decide whether others may go before it.
    fn note(&self) -> Note {
        Note {
            sets: self.sets,
            urgency: self.urgency(),
            has_begun: self.stage != Stage::Placed && !self.is_placeless() || self.late,
        }
    }
}

impl<V: Clone + Eq> Device<V> {
    /// Links the routine at this place to its neighbours.
    pub(super) fn link(&self, id: NodeId, at: usize, ranks: &mut Ranks) {
        let Some(slot) = self.lineage.get(at).and_then(|it| *it.slot) else {
            // It is no routine, or no ranks are kept.
            return;
        };
        let (before, behind) = self.lineage.split_at_checked(at).unwrap_or_default();
        let before = before.iter().rev().find_map(|it| *it.slot);
        let after = behind.iter().skip(1).find_map(|it| *it.slot);
        ranks.link(slot, id, before, after);
    }
}
