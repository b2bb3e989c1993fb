//! Locks: those of std, or, built with `--cfg loom`, those of loom, which tries every order in
//! which threads can take them.
//!
//! `Arc` is always that of `alloc`: its counts are not under test, and it is part of the interface.

#[cfg(loom)]
pub(super) use loom::sync::{Condvar, Mutex, MutexGuard};
#[cfg(not(loom))]
pub(super) use std::sync::{Condvar, Mutex, MutexGuard};

use std::sync::PoisonError;

/// Locks `mutex`, also when a thread panicked under the lock.
///
/// No foreign code runs under our locks and our own does not panic there, so a lock can be poisoned
/// by a defect of ours only. Even then each change is a single push, pop or replacement, and what
/// is behind the lock is whole: to go on is sound, and better than to pass a panic on to every
/// thread.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
