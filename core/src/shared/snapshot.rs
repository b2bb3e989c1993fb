//! The latest snapshot, and its waiters.

use alloc::sync::Arc;
use core::mem;
use core::task::{Context, Poll};

use super::Closed;
use super::sync::{Mutex, lock};
use super::wait::{Place, Waiters};

#[derive(Debug)]
pub(super) struct Published<S> {
    state: Mutex<State<S>>,
}

#[derive(Debug)]
struct State<S> {
    snapshot: Arc<S>,
    /// True until the host stops: another snapshot may follow.
    open: bool,
    waiting: Waiters,
}

impl<S> Published<S> {
    pub(super) fn new(snapshot: S) -> Self {
        Self {
            state: Mutex::new(State {
                snapshot: Arc::new(snapshot),
                open: true,
                waiting: Waiters::default(),
            }),
        }
    }

    pub(super) fn get(&self) -> Arc<S> {
        Arc::clone(&lock(&self.state).snapshot)
    }

    pub(super) fn replace(&self, snapshot: S) {
        let snapshot = Arc::new(snapshot);
        let mut state = lock(&self.state);
        let former = mem::replace(&mut state.snapshot, snapshot);
        let waiting = state.waiting.take();
        drop(state);
        drop(former);
        waiting.wake();
    }

    /// Closes the cell. The last snapshot stays.
    pub(super) fn close(&self) {
        let mut state = lock(&self.state);
        state.open = false;
        let waiting = state.waiting.take();
        drop(state);
        waiting.wake();
    }
}

/// A caller that waits for a snapshot, until it is dropped.
pub(super) struct Watcher<'a, S> {
    published: &'a Published<S>,
    place: Place,
}

impl<'a, S> Watcher<'a, S> {
    pub(super) fn new(published: &'a Published<S>) -> Self {
        Self {
            published,
            place: Place::default(),
        }
    }

    pub(super) fn poll_until(
        &mut self,
        is_wanted: &mut impl FnMut(&S) -> bool,
        cx: &Context<'_>,
    ) -> Poll<Result<Arc<S>, Closed>> {
        loop {
            let state = lock(&self.published.state);
            let (seen, open) = (Arc::clone(&state.snapshot), state.open);
            drop(state);
            if is_wanted(&seen) {
                return Poll::Ready(Ok(seen));
            }
            if !open {
                return Poll::Ready(Err(Closed));
            }
            let waker = cx.waker().clone();
            let mut state = lock(&self.published.state);
            // `is_wanted` ran without the lock: a snapshot that came meanwhile woke no waiter.
            if state.open && Arc::ptr_eq(&state.snapshot, &seen) {
                let former = state.waiting.register(&mut self.place, waker);
                drop(state);
                drop(former);
                return Poll::Pending;
            }
            drop(state);
        }
    }
}

impl<S> Drop for Watcher<'_, S> {
    fn drop(&mut self) {
        let waker = lock(&self.published.state).waiting.remove(&self.place);
        drop(waker);
    }
}
