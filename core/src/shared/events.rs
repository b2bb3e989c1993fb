//! One ring of events for all subscribers.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::poll_fn;
use core::task::{Context, Poll, Waker};

use super::RecvError;
use super::sync::{Mutex, block_on, lock};
use super::wait::{Place, Waiters};
use crate::BoundedQueue;

/// The latest events, up to a limit that all subscribers share.
#[derive(Debug)]
pub(super) struct Ring<E> {
    state: Mutex<State<E>>,
}

#[derive(Debug)]
struct State<E> {
    /// Shared, so that a subscriber clones its event after it has given the lock back.
    kept: BoundedQueue<Arc<E>>,
    /// The number of the event after the last one; the first has number 0.
    next: u64,
    open: bool,
    waiting: Waiters,
}

impl<E> Ring<E> {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            state: Mutex::new(State {
                kept: BoundedQueue::new(limit),
                next: 0,
                open: true,
                waiting: Waiters::default(),
            }),
        }
    }

    pub(super) fn emit(&self, events: impl IntoIterator<Item = E>) {
        let events: Vec<_> = events.into_iter().map(Arc::new).collect();
        if events.is_empty() {
            return;
        }
        let mut given_up = Vec::with_capacity(events.len());
        let mut state = lock(&self.state);
        for event in events {
            state.next += 1;
            given_up.extend(state.kept.push_over(event));
        }
        let waiting = state.waiting.take();
        drop(state);
        drop(given_up);
        waiting.wake();
    }

    /// Closes the ring: no more events will come. The kept events can still be read.
    pub(super) fn close(&self) {
        let mut state = lock(&self.state);
        state.open = false;
        let waiting = state.waiting.take();
        drop(state);
        waiting.wake();
    }
}

impl<E> State<E> {
    /// The number of the oldest event that is kept; without any, of the next one.
    fn oldest(&self) -> u64 {
        self.next - self.kept.len() as u64
    }

    /// The event with this number, or the reason why it cannot be read; `Ok(None)` while it is
    /// still to come.
    fn get(&self, number: u64) -> Result<Option<Arc<E>>, RecvError> {
        let oldest = self.oldest();
        if number < oldest {
            let missed = oldest - number;
            return Err(RecvError::Lagged { missed });
        }
        let behind = usize::try_from(number - oldest).unwrap_or(usize::MAX);
        match self.kept.iter().nth(behind) {
            Some(event) => Ok(Some(Arc::clone(event))),
            None if self.open => Ok(None),
            None => Err(RecvError::Closed),
        }
    }
}

/// A reader of a host's events, with its own cursor, from the moment at which it subscribed.
///
/// A subscriber that falls behind by more than [`Limits::events`](super::Limits::events) gets
/// [`RecvError::Lagged`] once and goes on with the oldest event that is kept. It never delays the
/// host or another subscriber. It outlives the handle that it came from.
#[derive(Debug)]
pub struct Subscriber<E> {
    ring: Arc<Ring<E>>,
    /// The number of the next event to read.
    next: u64,
    place: Place,
}

impl<E> Subscriber<E> {
    pub(super) fn from_now(ring: Arc<Ring<E>>) -> Self {
        let next = lock(&ring.state).next;
        Self::from(ring, next)
    }

    pub(super) fn from_oldest(ring: Arc<Ring<E>>) -> Self {
        let next = lock(&ring.state).oldest();
        Self::from(ring, next)
    }

    fn from(ring: Arc<Ring<E>>, next: u64) -> Self {
        Self {
            ring,
            next,
            place: Place::default(),
        }
    }
}

impl<E: Clone> Subscriber<E> {
    /// Waits for the next event. Cancel-safe: a dropped future has taken nothing.
    ///
    /// # Errors
    /// When it missed events, or the host has stopped and all were read.
    pub async fn recv(&mut self) -> Result<E, RecvError> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// Blocks this thread until the next event. Not on the host's own thread, nor in a task of an
    /// async runtime that runs the host: it would wait for itself.
    ///
    /// # Errors
    /// When it missed events, or the host has stopped and all were read.
    pub fn blocking_recv(&mut self) -> Result<E, RecvError> {
        block_on(self.recv())
    }

    /// The next event, if there is one already.
    ///
    /// # Errors
    /// When it missed events, or the host has stopped and all were read.
    pub fn try_recv(&mut self) -> Result<Option<E>, RecvError> {
        match self.read(None) {
            Poll::Ready(event) => event.map(Some),
            Poll::Pending => Ok(None),
        }
    }

    /// The next event; without one, the task of `cx` is woken when that changes.
    ///
    /// # Errors
    /// When it missed events, or the host has stopped and all were read.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Result<E, RecvError>> {
        self.read(Some(cx.waker().clone()))
    }

    fn read(&mut self, waker: Option<Waker>) -> Poll<Result<E, RecvError>> {
        let mut state = lock(&self.ring.state);
        let found = state.get(self.next);
        match found {
            Ok(Some(event)) => {
                drop(state);
                self.next += 1;
                Poll::Ready(Ok(Arc::unwrap_or_clone(event)))
            }
            Ok(None) => {
                let former = waker.and_then(|waker| state.waiting.register(&mut self.place, waker));
                drop(state);
                drop(former);
                Poll::Pending
            }
            Err(error) => {
                drop(state);
                if let RecvError::Lagged { missed } = error {
                    self.next += missed;
                }
                Poll::Ready(Err(error))
            }
        }
    }
}

impl<E> Drop for Subscriber<E> {
    fn drop(&mut self) {
        let waker = lock(&self.ring.state).waiting.remove(&self.place);
        drop(waker);
    }
}
