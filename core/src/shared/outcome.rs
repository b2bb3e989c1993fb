//! The answer to one command: promised once, given once.

use alloc::sync::Arc;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use super::Error;
use super::sync::{Mutex, block_on, lock};

/// The result of a submitted command: await it, or [`wait`](Self::wait) for it. `A` is the answer
/// of a command that was carried out, `R` the reason of a refusal.
///
/// Dropping it gives up the answer alone. The command stays in the queue and is carried out: the
/// caller could not know whether the host has taken it already. Polled again after it was ready, it
/// stays pending.
#[derive(Debug)]
#[must_use = "await it or wait for it; the command is carried out in any case"]
pub struct Outcome<A, R> {
    slot: Arc<Mutex<Slot<A, R>>>,
}

/// The host's duty to report the result of a command.
///
/// Dropped without an answer it gives [`Error::Unanswered`].
#[derive(Debug)]
#[must_use = "the caller that submitted the command waits for its outcome"]
pub struct Reply<A, R> {
    /// Empty once the answer was given.
    slot: Option<Arc<Mutex<Slot<A, R>>>>,
}

#[derive(Debug)]
struct Slot<A, R> {
    outcome: Option<Result<A, Error<R>>>,
    waker: Option<Waker>,
}

/// Both ends of one answer.
pub(super) fn pair<A, R>() -> (Reply<A, R>, Outcome<A, R>) {
    let slot = Arc::new(Mutex::new(Slot {
        outcome: None,
        waker: None,
    }));
    let reply = Reply {
        slot: Some(Arc::clone(&slot)),
    };
    (reply, Outcome { slot })
}

impl<A, R> Outcome<A, R> {
    /// Blocks this thread until the host has answered. Not on the host's own thread, nor in a task
    /// of an async runtime that runs the host: it would wait for itself.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn wait(self) -> Result<A, Error<R>> {
        block_on(self)
    }
}

impl<A, R> Future for Outcome<A, R> {
    type Output = Result<A, Error<R>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let waker = cx.waker().clone();
        let mut slot = lock(&self.slot);
        if let Some(outcome) = slot.outcome.take() {
            return Poll::Ready(outcome);
        }
        let former = slot.waker.replace(waker);
        drop(slot);
        drop(former);
        Poll::Pending
    }
}

impl<A, R> Reply<A, R> {
    /// Answers with the result of [`Driver::step`](crate::Driver::step). Publish first, so that the
    /// caller that gets the answer reads the effect of its command.
    pub fn send(self, outcome: Result<A, R>) {
        self.settle(outcome.map_err(Error::Rejected));
    }

    /// Answers that the command was never taken.
    pub(super) fn refuse(self) {
        self.settle(Err(Error::Closed));
    }

    fn settle(mut self, outcome: Result<A, Error<R>>) {
        if let Some(slot) = self.slot.take() {
            settle(&slot, outcome);
        }
    }
}

impl<A, R> Drop for Reply<A, R> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            settle(&slot, Err(Error::Unanswered));
        }
    }
}

fn settle<A, R>(slot: &Mutex<Slot<A, R>>, outcome: Result<A, Error<R>>) {
    let mut slot = lock(slot);
    slot.outcome = Some(outcome);
    let waker = slot.waker.take();
    drop(slot);
    if let Some(waker) = waker {
        waker.wake();
    }
}
