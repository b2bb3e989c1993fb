//! Locks and waiting threads: those of std, or, built with `--cfg loom`, those of loom, which tries
//! every order in which threads can take the locks.
//!
//! `Arc` is always the type from `alloc`: its counts are not under test, and it is part of the
//! interface.

#[cfg(loom)]
pub(super) use loom::sync::{Condvar, Mutex, MutexGuard};
#[cfg(not(loom))]
pub(super) use std::sync::{Condvar, Mutex, MutexGuard};

use alloc::sync::Arc;
use alloc::task::Wake;
use core::mem;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::PoisonError;

/// Locks `mutex`, also when a thread panicked under the lock.
///
/// No foreign code runs under our locks and our own does not panic there, so a lock can only be
/// poisoned by an own defect. Even then each change is a single push, pop or replacement, and
/// the data behind the lock is whole: to go on is sound, and better than to pass a panic on to
/// every thread.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Blocks this thread until `future` is ready. For threads without an executor, and futures that
/// need none, such as the futures of this module. In a task of an async runtime it blocks that
/// runtime; where the runtime has one thread and runs the host as well, for ever.
///
/// ```
/// let ready = selvedge_core::shared::block_on(async { 7 });
/// assert_eq!(ready, 7);
/// ```
pub fn block_on<F: Future>(future: F) -> F::Output {
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

/// Does as [`block_on`], but for `timeout` at most. `None` when it is over, or when the future was
/// woken and still is not ready: only a host reads a clock, so it is not known how much of the time
/// is left.
///
/// ```
/// use core::future::pending;
/// use core::time::Duration;
///
/// let late = selvedge_core::shared::block_on_for(pending::<()>(), Duration::from_millis(1));
/// assert_eq!(late, None);
/// ```
pub fn block_on_for<F: Future>(future: F, timeout: Duration) -> Option<F::Output> {
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

/// The place where a thread sleeps until its waker is called. Not `std::thread::park`: a thread has
/// one token for that, and the application may use it for another purpose.
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

    #[cfg(not(loom))]
    fn park_for(&self, timeout: Duration) {
        let woken = lock(&self.woken);
        let (_woken, _timed_out) = self
            .bell
            .wait_timeout_while(woken, timeout, |woken| !*woken)
            .unwrap_or_else(PoisonError::into_inner);
    }

    /// loom has no time. It lets other threads run between any two locks, so to go on at once is a
    /// timeout at every moment.
    #[cfg(loom)]
    fn park_for(&self, _: Duration) {
        drop(lock(&self.woken));
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
