//! Waiting for something together with others.

use alloc::collections::BTreeMap;
use core::mem;
use core::task::Waker;

/// The wakers of all tasks that wait for the same thing.
///
/// It stands behind a lock. Wakers that it returns are woken or dropped when the lock is free
/// again: both may run code of an executor, which may want the same lock.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    wakers: BTreeMap<u64, Waker>,
    next: u64,
}

/// The place of a task that waits. It holds no more than one waker.
#[derive(Debug, Default)]
pub(super) struct Place(Option<u64>);

impl Waiters {
    /// Keeps `waker` at `place` and returns the former one. O(log n).
    pub(super) fn register(&mut self, place: &mut Place, waker: Waker) -> Option<Waker> {
        let key = *place.0.get_or_insert_with(|| {
            self.next += 1;
            self.next
        });
        self.wakers.insert(key, waker)
    }

    /// Removes the waker at `place` and returns it. O(log n).
    pub(super) fn remove(&mut self, place: &Place) -> Option<Waker> {
        self.wakers.remove(&place.0?)
    }

    /// Removes all wakers and returns them, to be woken. A task that goes on waiting registers
    /// again. O(1).
    pub(super) fn take(&mut self) -> Woken {
        Woken(mem::take(&mut self.wakers))
    }
}

/// Wakers to call once the lock is free.
#[must_use]
pub(super) struct Woken(BTreeMap<u64, Waker>);

impl Woken {
    /// Calls them, longest waiting places first.
    pub(super) fn wake(self) {
        for waker in self.0.into_values() {
            waker.wake();
        }
    }
}
