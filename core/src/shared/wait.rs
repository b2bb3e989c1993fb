//! Waiting: as a thread, and as one of many.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::task::Wake;
use core::mem;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::PoisonError;

use super::sync::{Condvar, Mutex, lock};

/// Blocks this thread until `future` is ready.
pub(super) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let parker = Arc::new(Parker::default());
    let waker = Waker::from(Arc::clone(&parker));
    let mut cx = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return output;
        }
        parker.park();
    }
}

/// Blocks this thread until `future` is ready, but for `timeout` at most. Gives up earlier when
/// the system wakes the thread for no reason, because only a host reads a clock.
pub(super) fn block_on_for<F: Future>(future: F, timeout: Duration) -> Option<F::Output> {
    let mut future = pin!(future);
    let parker = Arc::new(Parker::default());
    let waker = Waker::from(Arc::clone(&parker));
    let mut cx = Context::from_waker(&waker);
    if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
        return Some(output);
    }
    parker.park_for(timeout);
    match future.as_mut().poll(&mut cx) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// Where a thread sleeps until its waker is called. Not `std::thread::park`: a thread has one
/// token for that, and the application may use it for something else.
#[derive(Debug, Default)]
struct Parker {
    woken: Mutex<bool>,
    bell: Condvar,
}

impl Parker {
    fn park(&self) {
        let mut woken = lock(&self.woken);
        while !mem::take(&mut *woken) {
            woken = self
                .bell
                .wait(woken)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn park_for(&self, timeout: Duration) {
        let woken = lock(&self.woken);
        if !*woken {
            let (_woken, _timed_out) = self
                .bell
                .wait_timeout(woken, timeout)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        *lock(&self.woken) = true;
        self.bell.notify_one();
    }
}

/// The wakers of all that wait for the same thing.
///
/// It stands behind a lock. What it hands out is woken or dropped when the lock is free again: both
/// may run code of an executor, which may want the same lock.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    wakers: BTreeMap<u64, Waker>,
    next: u64,
}

/// The place of one that waits. It holds no more than one waker.
#[derive(Debug, Default)]
pub(super) struct Place(Option<u64>);

impl Waiters {
    /// Keeps `waker` at `place` and returns the one that was there. O(log n).
    pub(super) fn register(&mut self, place: &mut Place, waker: Waker) -> Option<Waker> {
        let key = *place.0.get_or_insert_with(|| {
            self.next += 1;
            self.next
        });
        self.wakers.insert(key, waker)
    }

    /// Takes out the waker at `place`. O(log n).
    pub(super) fn remove(&mut self, place: &Place) -> Option<Waker> {
        self.wakers.remove(&place.0?)
    }

    /// Takes out all wakers, to be woken. Whoever goes on waiting registers again. O(1).
    pub(super) fn take(&mut self) -> Woken {
        Woken(mem::take(&mut self.wakers))
    }
}

/// Wakers that are to be called once the lock is free.
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
