//! The user that is inside.

use alloc::sync::Arc;
use core::fmt;
use core::future::poll_fn;
use core::task::{Context, Poll};

use crate::shared::sync::{block_on, lock};

use super::state::Ticket;
use super::{Closed, Shared};

/// The section belongs to the holder of this guard until the guard is dropped, or until the node is
/// fenced.
///
/// The guard outlives the gate that it came from. If it is forgotten instead of dropped, it is
/// inside forever.
#[must_use = "dropped at once, it leaves the section at once"]
pub struct Guard<T: Copy, R> {
    shared: Arc<Shared<T, R>>,
    token: T,
}

impl<T: Copy, R> Guard<T, R> {
    pub(super) const fn new(shared: Arc<Shared<T, R>>, token: T) -> Self {
        Self { shared, token }
    }

    /// Leaves the section, as dropping the guard does.
    pub fn exit(self) {
        drop(self);
    }

    /// The fencing token of this entry. All users to which one entry was handed over have the same
    /// token.
    #[must_use]
    pub const fn token(&self) -> T {
        self.token
    }

    /// Returns true if the node was fenced, or left the section by itself: other nodes may be
    /// inside. This can be true from the start.
    #[must_use]
    pub fn is_fenced(&self) -> bool {
        lock(&self.shared.state).is_fenced()
    }

    /// Returns true if the controller was closed or dropped. A closed controller still reports a fence, and
    /// waits for this guard to leave. A dropped controller does not: the other nodes do not learn that
    /// the guard leaves.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        lock(&self.shared.state).is_closed()
    }

    /// Waits until the node is fenced, see [`is_fenced`](Self::is_fenced).
    ///
    /// # Errors
    /// When the controller was closed or dropped, see [`is_closed`](Self::is_closed): a good reason to
    /// leave, too.
    pub async fn fenced(&self) -> Result<(), Closed> {
        let mut watcher = Watcher {
            shared: &self.shared,
            place: None,
        };
        poll_fn(|cx| watcher.poll_fenced(cx)).await
    }

    /// Does as [`fenced`](Self::fenced) and blocks this thread meanwhile. Not on the host's own
    /// thread, nor in a task of an async runtime that runs the host: it would wait for itself.
    ///
    /// # Errors
    /// The error of [`fenced`](Self::fenced).
    pub fn blocking_fenced(&self) -> Result<(), Closed> {
        block_on(self.fenced())
    }
}

impl<T: Copy + fmt::Debug, R> fmt::Debug for Guard<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}

impl<T: Copy, R> Drop for Guard<T, R> {
    fn drop(&mut self) {
        self.shared.change(|state| state.leave());
    }
}

/// A user that waits for the guard to be fenced. When dropped, it waits no more.
struct Watcher<'a, T: Copy, R> {
    shared: &'a Shared<T, R>,
    place: Option<Ticket>,
}

impl<T: Copy, R> Watcher<'_, T, R> {
    fn poll_fenced(&mut self, cx: &Context<'_>) -> Poll<Result<(), Closed>> {
        let mut waker = Some(cx.waker().clone());
        let outcome = self
            .shared
            .change(|state| state.poll_fenced(&mut self.place, &mut waker));
        drop(waker);
        outcome
    }
}

impl<T: Copy, R> Drop for Watcher<'_, T, R> {
    fn drop(&mut self) {
        if let Some(ticket) = self.place {
            let waker = self.shared.change(|state| state.unwatch(ticket));
            drop(waker);
        }
    }
}
