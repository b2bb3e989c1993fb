//! The application's end of a channel.

use alloc::sync::Arc;
use core::future::poll_fn;

use super::commands::Submitter;
use super::service::OutcomeOf;
use super::snapshot::Watcher;
use super::sync::block_on;
use super::{Closed, Error, Service, Shared, Subscriber, TrySubmitError};

/// The application's end: clone it into every thread and task that needs one.
///
/// `M` is the host's machine, or another [`Service`], and `S` the type of the snapshots that the
/// host publishes, for instance the member list.
#[derive(Debug)]
pub struct Handle<M: Service, S> {
    shared: Arc<Shared<M, S>>,
}

impl<M: Service, S> Handle<M, S> {
    /// The first handle, which a new queue has counted already.
    pub(super) const fn new(shared: Arc<Shared<M, S>>) -> Self {
        Self { shared }
    }

    /// Submits a command at once. Await the outcome, or wait for it.
    ///
    /// # Errors
    /// When too many commands wait or the host has closed. The command is returned.
    pub fn try_submit(
        &self,
        command: M::Command,
    ) -> Result<OutcomeOf<M>, TrySubmitError<M::Command>> {
        self.shared.commands.try_submit(command)
    }

    /// Submits a command as soon as there is room, and waits for its outcome. Callers that wait for
    /// room get it in no certain order.
    ///
    /// Dropped while it waits for room, the future has submitted nothing. Dropped later, the
    /// command is carried out all the same, see [`Outcome`](super::Outcome).
    ///
    /// # Errors
    /// When the machine refuses it, or the host closes or does not answer.
    pub async fn submit(&self, command: M::Command) -> Result<M::Answer, Error<M::Reject>> {
        let outcome = {
            let mut command = Some(command);
            let mut submitter = Submitter::new(&self.shared.commands);
            poll_fn(|cx| submitter.poll_submit(&mut command, cx)).await?
        };
        outcome.await
    }

    /// Does as [`submit`](Self::submit) and blocks this thread meanwhile. Not on the host's own
    /// thread, nor in a task of an async runtime that runs the host: it would wait for itself.
    ///
    /// # Errors
    /// When the machine refuses it, or the host closes or does not answer.
    pub fn blocking_submit(&self, command: M::Command) -> Result<M::Answer, Error<M::Reject>> {
        block_on(self.submit(command))
    }

    /// The latest snapshot from the host. It never changes; read it as long as you like.
    ///
    /// The lock is held for the copy of one pointer. After the host has stopped, the last one
    /// stays.
    #[must_use]
    pub fn snapshot(&self) -> Arc<S> {
        self.shared.snapshot.get()
    }

    /// Waits for a snapshot that `is_wanted` accepts, the present one included, and returns it.
    /// `is_wanted` runs for the latest snapshot each time that there is a new one. A snapshot that
    /// is replaced before the caller looks is missed.
    ///
    /// Cancel-safe: dropping the future ends the wait and loses nothing.
    ///
    /// # Errors
    /// When the host has stopped, and `is_wanted` does not accept its last snapshot.
    pub async fn wait_for(&self, mut is_wanted: impl FnMut(&S) -> bool) -> Result<Arc<S>, Closed> {
        let mut watcher = Watcher::new(&self.shared.snapshot);
        poll_fn(|cx| watcher.poll_until(&mut is_wanted, cx)).await
    }

    /// Does as [`wait_for`](Self::wait_for) and blocks this thread meanwhile. Not on the host's own
    /// thread, nor in a task of an async runtime that runs the host: it would wait for itself.
    ///
    /// # Errors
    /// The error of [`wait_for`](Self::wait_for).
    pub fn blocking_wait_for(&self, is_wanted: impl FnMut(&S) -> bool) -> Result<Arc<S>, Closed> {
        block_on(self.wait_for(is_wanted))
    }

    /// Reads the events from now on. A snapshot that is read afterwards reflects all earlier ones.
    #[must_use]
    pub fn subscribe(&self) -> Subscriber<M::Event> {
        Subscriber::from_now(Arc::clone(&self.shared.events))
    }

    /// Reads the events from the oldest one that is kept: right after the start, all of them.
    #[must_use]
    pub fn subscribe_from_oldest(&self) -> Subscriber<M::Event> {
        Subscriber::from_oldest(Arc::clone(&self.shared.events))
    }
}

impl<M: Service, S> Clone for Handle<M, S> {
    fn clone(&self) -> Self {
        self.shared.commands.add_handle();
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<M: Service, S> Drop for Handle<M, S> {
    fn drop(&mut self) {
        self.shared.commands.remove_handle();
    }
}
