//! Joining of committed routines that wait for the same unfinished ones.
//!
//! A committed routine keeps its places while an unfinished one is before it (errata H2 to H4).
//! Take two committed routines with the same unfinished ones before them, by way of any others. No
//! unfinished routine is between the two: it would be before the second one and not before the
//! first. So they can be one entry in the order, on all their devices, without a cycle. The place
//! of a later routine does not change either: it comes behind all routines that have touched a
//! device, and the unfinished routines, which must not be behind it, are the same.

use alloc::collections::{BTreeMap, BinaryHeap};
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use selvedge_core::NodeId;

use crate::lineage::{Device, Owner};
use crate::run::{Run, Stage};
use crate::schedule::Ranks;
use crate::{Hub, Placed, RoutineId, Value};

/// The number of committed routines, and the number of their entries that wait for their place in
/// the order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    committed: usize,
    unordered: usize,
}

impl Tally {
    pub(crate) fn add<V>(&mut self, run: &Run<V>) {
        self.committed += 1;
        self.unordered += run.order.len().max(1);
    }

    pub(crate) fn remove<V>(&mut self, run: &Run<V>) {
        self.committed -= 1;
        self.unordered -= run.order.len().max(1);
    }
}

/// Above this number of routines the hub does not look for them after each step.
const FEW: usize = 32;

impl<V: Value> Hub<V> {
    /// Joins the committed routines that can be joined. Takes O(e u), with e the number of places
    /// of routines on devices and u the number of unfinished routines; if there are many routines
    /// it runs only when the number of committed ones has doubled, so that each pays its share.
    pub(crate) fn join_committed(&mut self) {
        let committed = self.committed();
        let is_due = self.runs.len() <= FEW || committed > FEW && committed.is_power_of_two();
        if committed < 2 || !is_due || self.rules.compacts() {
            return;
        }
        for group in self.alike() {
            self.join(&group);
        }
    }

    /// Joins the committed routines that can be joined, if only that leaves at most `many`
    /// routines. Takes as long as to join them, and memory for a bit of each pair of a routine and
    /// an unfinished one, of which there are at most `many`.
    ///
    /// # Errors
    /// The number of routines that it would leave, if that is more; if the unfinished ones alone
    /// are too many, the current number. Nothing changed.
    pub(crate) fn leave_at_most(&mut self, many: usize) -> Result<(), usize> {
        if self.runs.len() <= many {
            return Ok(());
        }
        let committed = self.committed();
        let is_enough = self.runs.len().saturating_sub(committed) <= many;
        let can_join = is_enough && committed > 1 && !self.rules.compacts();
        let groups = if can_join { self.alike() } else { Vec::new() };
        let spared: usize = groups.iter().map(|it| it.len().saturating_sub(1)).sum();
        let left = self.runs.len().saturating_sub(spared);
        if left > many {
            return Err(left);
        }
        for group in groups {
            self.join(&group);
        }
        Ok(())
    }

    fn committed(&self) -> usize {
        debug_assert!(*self.tally == self.count(), "it follows from the routines");
        self.tally.committed
    }

    /// Counts committed routines. O(routines).
    pub(crate) fn count(&self) -> Tally {
        let mut tally = Tally::default();
        let is_committed = |run: &&Run<V>| run.stage == Stage::Committed;
        self.runs
            .values()
            .filter(is_committed)
            .for_each(|it| tally.add(it));
        tally
    }

    /// The committed routines that have the same unfinished ones before them, in the serial order.
    fn alike(&self) -> Vec<Vec<RoutineId>> {
        let pairs = self.pairs();
        let Ok(order) = self.serial(&pairs) else {
            // Published rules let routines come before each other.
            return Vec::new();
        };
        let active = |it: &usize| self.runs.at(*it).is_some_and(|it| it.1.is_active());
        let unfinished: Vec<usize> = (0..self.runs.len()).filter(active).collect();
        let mut before = Bits::new(self.runs.len(), unfinished.len());
        for &number in &order {
            if let Ok(nth) = unfinished.binary_search(&number) {
                before.set(number, nth);
            }
            for &(_, second) in behind(&pairs, number) {
                before.merge(number, second);
            }
        }
        let is_committed = |it: &usize| {
            let run = self.runs.at(*it);
            run.is_some_and(|it| it.1.stage == Stage::Committed)
        };
        let mut committed: Vec<usize> = order.into_iter().filter(is_committed).collect();
        // Routines of one group stay in the serial order.
        committed.sort_by_key(|it| before.row(*it));
        let groups = committed.chunk_by(|one, other| before.row(*one) == before.row(*other));
        let id = |it: &usize| self.runs.at(*it).map(|it| it.0);
        let groups = groups.filter(|group| group.len() > 1);
        groups
            .map(|group| group.iter().filter_map(id).collect())
            .collect()
    }

    /// Joins these into the one that stands for most.
    fn join(&mut self, group: &[RoutineId]) {
        let stands_for = |id: &&RoutineId| self.runs.get(id).map(|run| run.order.len());
        let Some(&kept) = group.iter().rev().max_by_key(stands_for) else {
            debug_assert!(false, "a group has routines");
            return;
        };
        let mut order = Vec::new();
        let mut places: BTreeMap<NodeId, RoutineId> = BTreeMap::new();
        for &id in group {
            let Some(run) = self.runs.remove(&id) else {
                debug_assert!(false, "the group is of routines of this hub");
                continue;
            };
            self.tally.remove(&run);
            for at in run.devices {
                let before = places.insert(at, id);
                if let (Some(before), Some(device)) = (before, self.devices.get_mut(&at)) {
                    device.join(at, before, id, &mut self.ranks, &mut order);
                }
            }
            if run.order.is_empty() {
                order.push(Placed::Routine(id));
            } else {
                order.extend(run.order);
            }
        }
        let mut slot = None;
        for (at, id) in &places {
            let device = self.devices.get_mut(at);
            if let Some(entry) = device.and_then(|it| it.entry_mut(*id)) {
                entry.owner = Owner::Routine(kept);
                slot = self.ranks.move_to(slot, entry, *at);
            }
        }
        if let Some(slot) = slot {
            self.ranks.begin(Some(slot));
            self.ranks.rank(slot);
        }
        let devices = places.into_keys().collect();
        let run = Run::committed(devices, order);
        self.tally.add(&run);
        self.runs.insert(kept, run);
    }

    /// All routines, each behind the routines that come before it.
    ///
    /// # Errors
    /// A routine that comes before itself, by way of others.
    pub(crate) fn one_order(&self) -> Result<Vec<RoutineId>, RoutineId> {
        let order = self.serial(&self.pairs())?;
        let ids = order.into_iter().filter_map(|it| Some(self.runs.at(it)?.0));
        Ok(ids.collect())
    }

    /// The same order as numbers among the routines.
    fn serial(&self, pairs: &[(usize, usize)]) -> Result<Vec<usize>, RoutineId> {
        // For each routine, the number of direct predecessors that are not in the order yet.
        let mut waits = vec![0_usize; self.runs.len()];
        for &(_, second) in pairs {
            if let Some(waits) = waits.get_mut(second) {
                *waits += 1;
            }
        }
        let is_first = |it: &(usize, &usize)| *it.1 == 0;
        let first = waits.iter().enumerate().filter(is_first);
        let mut next: BinaryHeap<Reverse<usize>> = first.map(|it| Reverse(it.0)).collect();
        let mut order = Vec::with_capacity(waits.len());
        while let Some(Reverse(number)) = next.pop() {
            order.push(number);
            for &(_, second) in behind(pairs, number) {
                if let Some(waits) = waits.get_mut(second) {
                    *waits -= 1;
                    if *waits == 0 {
                        next.push(Reverse(second));
                    }
                }
            }
        }
        let left = waits.iter().position(|it| *it > 0);
        match left.and_then(|it| self.runs.at(it)) {
            None => Ok(order),
            Some((routine, _)) => Err(routine),
        }
    }

    /// The pairs of routines that are neighbours on a device, by their numbers, in order.
    fn pairs(&self) -> Vec<(usize, usize)> {
        let mut pairs = Vec::new();
        for (_, device) in self.devices.iter() {
            let mut before = None;
            for entry in &device.lineage {
                let number = entry.routine().and_then(|it| self.runs.number(it));
                if let (Some(first), Some(second)) = (before, number) {
                    pairs.push((first, second));
                }
                before = number.or(before);
            }
        }
        pairs.sort_unstable();
        pairs
    }

    /// The number of committed routines, failures and manual changes that wait for their place in
    /// the order.
    pub(crate) fn unordered(&self) -> usize {
        debug_assert!(*self.tally == self.count(), "it follows from the routines");
        self.tally.unordered
    }
}

/// The pairs of which this one is the first.
fn behind(pairs: &[(usize, usize)], number: usize) -> &[(usize, usize)] {
    let from = pairs.partition_point(|it| it.0 < number);
    let pairs = pairs.get(from..).unwrap_or_default();
    let count = pairs.iter().take_while(|it| it.0 == number).count();
    pairs.get(..count).unwrap_or_default()
}

/// A matrix of bits, with one row for each number.
struct Bits {
    /// The number of words in a row.
    width: usize,
    words: Vec<u64>,
}

impl Bits {
    fn new(rows: usize, bits: usize) -> Self {
        let width = bits.div_ceil(64);
        Self {
            width,
            words: vec![0; rows * width],
        }
    }

    fn set(&mut self, row: usize, bit: usize) {
        if let Some(word) = self.words.get_mut(row * self.width + bit / 64) {
            *word |= 1 << (bit % 64);
        }
    }

    /// Sets the bits of one row in another one, too.
    fn merge(&mut self, row: usize, into: usize) {
        for nth in 0..self.width {
            let bits = self.words.get(row * self.width + nth).copied();
            if let Some(word) = self.words.get_mut(into * self.width + nth) {
                *word |= bits.unwrap_or_default();
            }
        }
    }

    fn row(&self, row: usize) -> &[u64] {
        let from = row * self.width;
        self.words.get(from..from + self.width).unwrap_or_default()
    }
}

impl<V: Clone + Eq> Device<V> {
    /// Replaces the places of two committed routines by the place of the second one. Entries
    /// between them move into its order.
    fn join(
        &mut self,
        at: NodeId,
        before: RoutineId,
        after: RoutineId,
        ranks: &mut Ranks,
        order: &mut Vec<Placed<V>>,
    ) {
        let (Some(first), Some(second)) = (self.position(before), self.position(after)) else {
            // The entries before all routines are settled.
            return;
        };
        if first >= second {
            debug_assert!(false, "the group is in the serial order");
            return;
        }
        let mut wrote = None;
        for entry in self.lineage.drain(first..second) {
            ranks.leave(&entry, at);
            debug_assert!(
                entry.routine().is_none_or(|it| it == before),
                "another routine is between"
            );
            order.extend(entry.happening(at));
            wrote = entry.wrote.or(wrote);
        }
        if let Some(entry) = self.lineage.get_mut(first) {
            entry.wrote = entry.wrote.take().or(wrote);
        }
    }
}
