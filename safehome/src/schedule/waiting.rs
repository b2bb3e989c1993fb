//! The routines that wait for a place, and the ones among them to examine.

use alloc::vec::Vec;

use selvedge_core::NodeId;
use smallvec::SmallVec;

use crate::RoutineId;

/// The routines that wait for a place. It is derived from the routines: a routine is examined
/// unless it is known to wait in vain, so after a restart all are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting {
    /// The routines that are examined when one may start, in order.
    awake: Vec<RoutineId>,
    /// The routines that need each device, in order. A list that has become empty keeps its memory,
    /// until the device is [forgotten](Self::forget).
    queues: Vec<(NodeId, Queue)>,
}

/// The routines that wait for a device.
#[derive(Clone, Debug, Default)]
struct Queue {
    /// In order; few for most devices.
    waiters: SmallVec<[Waiter; 2]>,
    /// The number of routines that must not be overtaken.
    firsts: usize,
}

/// A waiting routine that needs a device.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    id: RoutineId,
    /// True if it must not be overtaken.
    stays_first: bool,
    /// True if it waits in vain until something changes on this device.
    sleeps: bool,
}

impl Waiting {
    /// Lets a routine wait from now on, behind the routines that were submitted before.
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
                // Only a routine that was held back is not the last.
                let place = queue.waiters.partition_point(|it| it.id < id);
                queue.waiters.insert(place, waiter);
                queue.firsts += usize::from(stays_first);
            }
        }
    }

    /// Notes that a waiting routine must not be overtaken.
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

    /// Removes a routine that does not wait any more.
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

    /// Removes a device for which no routine waits.
    pub(crate) fn forget(&mut self, at: NodeId) {
        if let Ok(place) = self.place(at) {
            self.queues.remove(place);
        }
    }

    /// Wakes the routines that sleep on a device that has changed, except the ones behind a routine
    /// that must not be overtaken. Returns true if there are any.
    #[inline]
    pub(crate) fn wake(&mut self, at: NodeId) -> bool {
        // Under most models there are no queues at all.
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

    /// Puts a routine to sleep until something changes on this device, which it needs.
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

    /// Returns true if no routine is awake.
    pub(crate) const fn is_empty(&self) -> bool {
        self.awake.is_empty()
    }

    /// Returns true if a routine waits for this device.
    #[inline]
    pub(crate) fn is_awaited(&self, at: NodeId) -> bool {
        self.queue(at).is_some_and(|it| !it.waiters.is_empty())
    }

    /// Returns true if the same routines wait for the same devices in the same order, awake or not;
    /// and each one that is not awake sleeps somewhere.
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

    /// The next awake routine after this one.
    pub(crate) fn after(&self, id: RoutineId) -> Option<RoutineId> {
        let next = self.awake.partition_point(|&it| it <= id);
        self.awake.get(next).copied()
    }

    /// Returns true if no routine that must not be overtaken waits for a device and came before
    /// this one.
    pub(crate) fn is_next(&self, id: RoutineId, at: NodeId) -> bool {
        self.first_before(id, at).is_none()
    }

    /// The routines that wait for a device and came before this one.
    pub(crate) fn before(&self, id: RoutineId, at: NodeId) -> impl Iterator<Item = RoutineId> {
        let waiters = self.queue(at).map_or(&[][..], |it| it.waiters.as_slice());
        let ids = waiters.iter().map(|it| it.id);
        ids.take_while(move |it| *it < id)
    }

    fn queue(&self, at: NodeId) -> Option<&Queue> {
        let queue = self.queues.get(self.place(at).ok()?)?;
        Some(&queue.1)
    }

    /// The position of the list of a device, or the position at which to insert it. Most awaited
    /// devices have consecutive ids.
    #[inline]
    fn place(&self, at: NodeId) -> Result<usize, usize> {
        let first = self.queues.first().ok_or(0_usize)?;
        let guess = usize::try_from(at.0.wrapping_sub(first.0.0)).unwrap_or(usize::MAX);
        if self.queues.get(guess).is_some_and(|it| it.0 == at) {
            return Ok(guess);
        }
        self.queues.binary_search_by_key(&at, |it| it.0)
    }

    /// The first routine that waits for a device, came before this one and must not be overtaken.
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
