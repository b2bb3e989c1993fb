//! The routines that wait for a place, and which of them are to be looked at.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::Bound;

use selvedge_core::NodeId;

use crate::RoutineId;

/// The routines that wait for a place. It follows from the routines: one that is not known to wait
/// in vain is looked at, so that after a restart all are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting {
    /// The routines that are looked at when one may start.
    awake: BTreeSet<RoutineId>,
    /// The routines that need a device, in order.
    queues: BTreeMap<NodeId, Vec<Waiter>>,
}

/// A waiting routine that needs a device.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    id: RoutineId,
    /// Must not be overtaken.
    stays_first: bool,
    /// Waits in vain until something changes on this device.
    sleeps: bool,
}

impl Waiting {
    /// A routine waits from now on, behind those that were submitted before.
    pub(crate) fn join(&mut self, id: RoutineId, devices: &[NodeId], stays_first: bool) {
        self.awake.insert(id);
        let waiter = Waiter {
            id,
            stays_first,
            sleeps: false,
        };
        for &at in devices {
            let queue = self.queues.entry(at).or_default();
            // Only one that was held back does not come last.
            let place = queue.partition_point(|it| it.id < id);
            queue.insert(place, waiter);
        }
    }

    /// From now on a waiting routine must not be overtaken.
    pub(crate) fn stays_first(&mut self, id: RoutineId, devices: &[NodeId]) {
        for at in devices {
            let queue = self.queues.get_mut(at).into_iter().flatten();
            for waiter in queue.filter(|it| it.id == id) {
                waiter.stays_first = true;
            }
        }
    }

    /// A routine waits no longer.
    pub(crate) fn leave(&mut self, id: RoutineId, devices: &[NodeId]) {
        self.awake.remove(&id);
        for &at in devices {
            if let Some(queue) = self.queues.get_mut(&at) {
                queue.retain(|it| it.id != id);
                if queue.is_empty() {
                    self.queues.remove(&at);
                }
            }
        }
    }

    /// Something has changed on a device: those that sleep there are looked at again, but for those
    /// behind one that must not be overtaken. Returns whether there are any.
    pub(crate) fn wake(&mut self, at: NodeId) -> bool {
        let mut is_any = false;
        let Some(queue) = self.queues.get_mut(&at) else {
            return false;
        };
        for waiter in queue {
            if core::mem::take(&mut waiter.sleeps) {
                self.awake.insert(waiter.id);
                is_any = true;
            }
            if waiter.stays_first {
                break;
            }
        }
        is_any
    }

    /// Waits in vain until something changes on this device, one that it needs.
    pub(crate) fn sleep(&mut self, id: RoutineId, at: NodeId) {
        let queue = self.queues.get_mut(&at);
        if let Some(waiter) = queue.into_iter().flatten().find(|it| it.id == id) {
            waiter.sleeps = true;
            self.awake.remove(&id);
        }
    }

    /// Whether anybody waits for this device.
    pub(crate) fn is_awaited(&self, at: NodeId) -> bool {
        self.queues.contains_key(&at)
    }

    /// Whether the same wait for the same devices in the same order, be they looked at or not; and
    /// one that is not looked at sleeps somewhere.
    #[cfg(feature = "check")]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let kept = |it: &Waiter| (it.id, it.stays_first);
        let mut queues = self.queues.iter().zip(&other.queues);
        let sleeps = |id| {
            self.queues
                .values()
                .flatten()
                .any(|it| it.id == id && it.sleeps)
        };
        self.queues.len() == other.queues.len()
            && queues.all(|(ours, theirs)| {
                ours.0 == theirs.0 && ours.1.iter().map(kept).eq(theirs.1.iter().map(kept))
            })
            && self.awake.is_subset(&other.awake)
            && other
                .awake
                .iter()
                .all(|&id| self.awake.contains(&id) != sleeps(id))
    }

    /// The routine that is to be looked at after this one.
    pub(crate) fn after(&self, id: RoutineId) -> Option<RoutineId> {
        let behind = (Bound::Excluded(id), Bound::Unbounded);
        self.awake.range(behind).next().copied()
    }

    /// Whether no routine that must not be overtaken waits for a device and came before this one.
    pub(crate) fn is_next(&self, id: RoutineId, at: NodeId) -> bool {
        self.first_before(id, at).is_none()
    }

    /// Those that wait for a device and came before this one.
    pub(crate) fn before(&self, id: RoutineId, at: NodeId) -> impl Iterator<Item = RoutineId> {
        let queue = self.queue(at).iter();
        queue.map(|it| it.id).take_while(move |it| *it < id)
    }

    fn queue(&self, at: NodeId) -> &[Waiter] {
        self.queues.get(&at).map_or(&[], Vec::as_slice)
    }

    /// The first that waits for a device, came before this one and must not be overtaken.
    pub(crate) fn first_before(&self, id: RoutineId, at: NodeId) -> Option<RoutineId> {
        let queue = self.queue(at).iter();
        let mut before = queue.take_while(|it| it.id < id);
        before.find(|it| it.stays_first).map(|it| it.id)
    }
}
