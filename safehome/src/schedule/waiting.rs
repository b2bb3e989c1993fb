//! The routines that wait for a place, and which of them are to be looked at.

use alloc::vec::Vec;

use selvedge_core::NodeId;
use smallvec::SmallVec;

use crate::RoutineId;

/// The routines that wait for a place. It follows from the routines: one that is not known to wait
/// in vain is looked at, so that after a restart all are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting {
    /// The routines that are looked at when one may start, in order.
    awake: Vec<RoutineId>,
    /// By device, the routines that need it, in order. A list that has become empty keeps its
    /// memory, until the device is [forgotten](Self::forget).
    queues: Vec<(NodeId, Queue)>,
}

/// Those that wait for a device.
#[derive(Clone, Debug, Default)]
struct Queue {
    /// In order; few for most devices.
    waiters: SmallVec<[Waiter; 2]>,
    /// How many of them must not be overtaken.
    firsts: usize,
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
        self.awaken(id);
        let waiter = Waiter {
            id,
            stays_first,
            sleeps: false,
        };
        for &at in devices {
            let place = self.place(at).unwrap_or_else(|place| {
                self.queues.insert(place, (at, Queue::default()));
                place
            });
            if let Some((_, queue)) = self.queues.get_mut(place) {
                // Only one that was held back does not come last.
                let place = queue.waiters.partition_point(|it| it.id < id);
                queue.waiters.insert(place, waiter);
                queue.firsts += usize::from(stays_first);
            }
        }
    }

    /// From now on a waiting routine must not be overtaken.
    pub(crate) fn stays_first(&mut self, id: RoutineId, devices: &[NodeId]) {
        for &at in devices {
            if let Some(queue) = self.queue_mut(at)
                && let Some(waiter) = queue.waiter(id)
                && !core::mem::replace(&mut waiter.stays_first, true)
            {
                queue.firsts += 1;
            }
        }
    }

    /// A routine waits no longer.
    pub(crate) fn leave(&mut self, id: RoutineId, devices: &[NodeId]) {
        self.fall_asleep(id);
        for &at in devices {
            if let Some(queue) = self.queue_mut(at)
                && let Ok(place) = queue.waiters.binary_search_by_key(&id, |it| it.id)
            {
                let waiter = queue.waiters.remove(place);
                queue.firsts -= usize::from(waiter.stays_first);
            }
        }
    }

    /// There is no such device any more, and nobody waits for it.
    pub(crate) fn forget(&mut self, at: NodeId) {
        if let Ok(place) = self.place(at) {
            self.queues.remove(place);
        }
    }

    /// Something has changed on a device: those that sleep there are looked at again, but for those
    /// behind one that must not be overtaken. Returns whether there are any.
    #[inline]
    pub(crate) fn wake(&mut self, at: NodeId) -> bool {
        // Under most models there are none at all.
        !self.queues.is_empty() && self.wake_queue(at)
    }

    fn wake_queue(&mut self, at: NodeId) -> bool {
        let mut is_any = false;
        let Ok(place) = self.place(at) else {
            return false;
        };
        let queue = self.queues.get_mut(place).map(|it| &mut it.1.waiters);
        for waiter in queue.into_iter().flatten() {
            if core::mem::take(&mut waiter.sleeps) {
                if let Err(place) = self.awake.binary_search(&waiter.id) {
                    self.awake.insert(place, waiter.id);
                }
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
        if let Some(waiter) = self.queue_mut(at).and_then(|it| it.waiter(id)) {
            waiter.sleeps = true;
            self.fall_asleep(id);
        }
    }

    fn awaken(&mut self, id: RoutineId) {
        if let Err(place) = self.awake.binary_search(&id) {
            self.awake.insert(place, id);
        }
    }

    fn fall_asleep(&mut self, id: RoutineId) {
        if let Ok(place) = self.awake.binary_search(&id) {
            self.awake.remove(place);
        }
    }

    fn queue_mut(&mut self, at: NodeId) -> Option<&mut Queue> {
        let place = self.place(at).ok()?;
        self.queues.get_mut(place).map(|it| &mut it.1)
    }

    /// Whether no routine is to be looked at.
    pub(crate) const fn is_empty(&self) -> bool {
        self.awake.is_empty()
    }

    /// Whether anybody waits for this device.
    #[inline]
    pub(crate) fn is_awaited(&self, at: NodeId) -> bool {
        self.queue(at).is_some_and(|it| !it.waiters.is_empty())
    }

    /// Whether the same wait for the same devices in the same order, be they looked at or not; and
    /// one that is not looked at sleeps somewhere.
    #[cfg(feature = "check")]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let kept = |it: &Waiter| (it.id, it.stays_first);
        let awaited = |it: &Self| -> Vec<_> {
            let queues = it.queues.iter().filter(|it| !it.1.waiters.is_empty());
            queues
                .map(|(at, queue)| (*at, queue.waiters.iter().map(kept).collect::<Vec<_>>()))
                .collect()
        };
        let sleeps = |id| {
            let mut waiters = self.queues.iter().flat_map(|it| &it.1.waiters);
            waiters.any(|it| it.id == id && it.sleeps)
        };
        awaited(self) == awaited(other)
            && self.awake.iter().all(|it| other.awake.contains(it))
            && other
                .awake
                .iter()
                .all(|&id| self.awake.contains(&id) != sleeps(id))
    }

    /// The routine that is to be looked at after this one.
    pub(crate) fn after(&self, id: RoutineId) -> Option<RoutineId> {
        let next = self.awake.partition_point(|&it| it <= id);
        self.awake.get(next).copied()
    }

    /// Whether no routine that must not be overtaken waits for a device and came before this one.
    pub(crate) fn is_next(&self, id: RoutineId, at: NodeId) -> bool {
        self.first_before(id, at).is_none()
    }

    /// Those that wait for a device and came before this one.
    pub(crate) fn before(&self, id: RoutineId, at: NodeId) -> impl Iterator<Item = RoutineId> {
        let waiters = self.queue(at).map_or(&[][..], |it| it.waiters.as_slice());
        let ids = waiters.iter().map(|it| it.id);
        ids.take_while(move |it| *it < id)
    }

    fn queue(&self, at: NodeId) -> Option<&Queue> {
        let queue = self.queues.get(self.place(at).ok()?)?;
        Some(&queue.1)
    }

    /// Where the list of a device is, or belongs. Most devices that are waited for have ids in a
    /// row.
    #[inline]
    fn place(&self, at: NodeId) -> Result<usize, usize> {
        let first = self.queues.first().ok_or(0_usize)?;
        let guess = usize::try_from(at.0.wrapping_sub(first.0.0)).unwrap_or(usize::MAX);
        if self.queues.get(guess).is_some_and(|it| it.0 == at) {
            return Ok(guess);
        }
        self.queues.binary_search_by_key(&at, |it| it.0)
    }

    /// The first that waits for a device, came before this one and must not be overtaken.
    pub(crate) fn first_before(&self, id: RoutineId, at: NodeId) -> Option<RoutineId> {
        let queue = self.queue(at).filter(|it| it.firsts > 0)?;
        let mut before = queue.waiters.iter().take_while(|it| it.id < id);
        before.find(|it| it.stays_first).map(|it| it.id)
    }
}

impl Queue {
    fn waiter(&mut self, id: RoutineId) -> Option<&mut Waiter> {
        let place = self.waiters.binary_search_by_key(&id, |it| it.id).ok()?;
        self.waiters.get_mut(place)
    }
}
