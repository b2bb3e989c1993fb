//! The application's end of a gate, and the users that wait there.

use alloc::sync::Arc;
use core::future::poll_fn;
use core::pin::pin;
use core::task::{Context, Poll};
use core::time::Duration;

use crate::shared::sync::{block_on, block_on_for, lock};

use super::state::Ticket;
use super::{EnterError, Guard, Shared, TryEnterError};

/// The application's end: clone it into every thread and task that needs the section.
#[derive(Debug)]
pub struct Gate<T: Copy, R> {
    shared: Arc<Shared<T, R>>,
}

impl<T: Copy, R> Gate<T, R> {
    /// A gate that the state has counted already.
    pub(super) const fn new(shared: Arc<Shared<T, R>>) -> Self {
        Self { shared }
    }

    /// Waits for this user's turn in the section, from the first poll on.
    ///
    /// A dropped future waits no more. If its turn comes in that moment, the turn goes to the next
    /// user, and when no user waits the node cancels, or exits. So to give up after some time, drop
    /// the future then. A future that waits keeps its turn while it is not polled, and all users
    /// behind it wait.
    ///
    /// # Errors
    /// When too many wait, the machine refuses, or the controller was closed.
    pub async fn enter(&self) -> Result<Guard<T, R>, EnterError<R>> {
        let mut waiter = Waiter::new(&self.shared);
        poll_fn(|cx| waiter.poll_enter(cx)).await
    }

    /// Does as [`enter`](Self::enter) until `timer` is ready, for instance the `sleep` of a
    /// runtime.
    ///
    /// # Errors
    /// The errors of [`enter`](Self::enter), and [`EnterError::TimedOut`].
    pub async fn enter_until(
        &self,
        timer: impl Future<Output = ()>,
    ) -> Result<Guard<T, R>, EnterError<R>> {
        let mut timer = pin!(timer);
        let mut waiter = Waiter::new(&self.shared);
        poll_fn(|cx| match waiter.poll_enter(cx) {
            Poll::Ready(outcome) => Poll::Ready(outcome),
            Poll::Pending => timer.as_mut().poll(cx).map(|()| Err(EnterError::TimedOut)),
        })
        .await
    }

    /// Does as [`enter`](Self::enter) and blocks this thread meanwhile. Not on the host's own
    /// thread, nor in a task of an async runtime that runs the host: it would wait for itself.
    ///
    /// # Errors
    /// The errors of [`enter`](Self::enter).
    pub fn blocking_enter(&self) -> Result<Guard<T, R>, EnterError<R>> {
        block_on(self.enter())
    }

    /// Does as [`blocking_enter`](Self::blocking_enter), for `timeout` at most.
    ///
    /// # Errors
    /// The errors of [`enter`](Self::enter), and [`EnterError::TimedOut`].
    pub fn blocking_enter_timeout(&self, timeout: Duration) -> Result<Guard<T, R>, EnterError<R>> {
        // A waiter is woken when its turn has come or never will, and not before: so a wait that
        // ends here without a result has timed out.
        block_on_for(self.enter(), timeout).unwrap_or(Err(EnterError::TimedOut))
    }

    /// Enters if that takes no message: the node is inside, no user has the section or waits for
    /// it, and the entry may be handed over once more
    /// ([`Limits::handovers`](super::Limits::handovers)).
    ///
    /// No node alone knows whether the section is free, so this does not ask for it, and does not
    /// have the node ask. Repeated calls never get in by themselves: use [`enter`](Self::enter) for
    /// that. This call is for work that is worth doing while the node is inside anyway.
    ///
    /// # Errors
    /// [`TryEnterError::WouldWait`] in all other cases, and when the controller was closed.
    pub fn try_enter(&self) -> Result<Guard<T, R>, TryEnterError> {
        let token = self.shared.change(|state| state.try_enter())?;
        Ok(Guard::new(Arc::clone(&self.shared), token))
    }
}

impl<T: Copy, R> Clone for Gate<T, R> {
    fn clone(&self) -> Self {
        lock(&self.shared.state).add_gate();
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<T: Copy, R> Drop for Gate<T, R> {
    fn drop(&mut self) {
        self.shared.change(|state| state.remove_gate());
    }
}

/// A user that waits for its turn. When dropped, it waits no more.
struct Waiter<'a, T: Copy, R> {
    shared: &'a Arc<Shared<T, R>>,
    /// Empty before it waits, and when its turn has come.
    place: Option<Ticket>,
}

impl<'a, T: Copy, R> Waiter<'a, T, R> {
    const fn new(shared: &'a Arc<Shared<T, R>>) -> Self {
        Self {
            shared,
            place: None,
        }
    }

    fn poll_enter(&mut self, cx: &Context<'_>) -> Poll<Result<Guard<T, R>, EnterError<R>>> {
        let mut waker = Some(cx.waker().clone());
        let outcome = self
            .shared
            .change(|state| state.poll_enter(&mut self.place, &mut waker));
        drop(waker);
        outcome.map_ok(|token| Guard::new(Arc::clone(self.shared), token))
    }
}

impl<T: Copy, R> Drop for Waiter<'_, T, R> {
    fn drop(&mut self) {
        if let Some(ticket) = self.place {
            let left = self.shared.change(|state| state.withdraw(ticket));
            drop(left);
        }
    }
}
