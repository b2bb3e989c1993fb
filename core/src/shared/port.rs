//! The host's end of a channel.

use alloc::sync::Arc;
use core::future::poll_fn;
use core::task::{Context, Poll};
use core::time::Duration;

use super::sync::{block_on, block_on_for};
use super::{Closed, Reply, Service, Shared};

/// The host's end: it stands beside the driver in the host's loop.
///
/// The loop takes commands and steps the driver with each, [publishes](Self::publish) the result,
/// and then [answers](Reply::send).
///
/// A host that sleeps in something else, such as a blocking read from its socket, gives
/// [`poll_recv`](Self::poll_recv) a waker that interrupts that, for instance by a datagram to
/// itself.
///
/// Dropping the port closes it: commands in the queue get [`Error::Closed`](super::Error::Closed),
/// subscribers read the kept events and then [`RecvError::Closed`](super::RecvError::Closed).
#[derive(Debug)]
pub struct Port<M: Service, S> {
    shared: Arc<Shared<M, S>>,
}

/// A command, and its reply.
#[derive(Debug)]
pub struct Request<M: Service> {
    /// The command.
    pub command: M::Command,
    /// Takes the outcome.
    pub reply: Reply<M::Answer, M::Reject>,
}

impl<M: Service, S> Port<M, S> {
    pub(super) const fn new(shared: Arc<Shared<M, S>>) -> Self {
        Self { shared }
    }

    /// Waits for a command. Cancel-safe: dropping the future loses no command.
    ///
    /// # Errors
    /// When no command will come: the queue is empty, and all handles were dropped or the port was
    /// [closed](Self::close).
    pub async fn recv(&mut self) -> Result<Request<M>, Closed> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// Blocks this thread until there is a command.
    ///
    /// # Errors
    /// When no command will come.
    pub fn blocking_recv(&mut self) -> Result<Request<M>, Closed> {
        block_on(self.recv())
    }

    /// Blocks this thread until there is a command, for `timeout` at most: pass
    /// [`Driver::wait`](crate::Driver::wait). `None` when there is still none; it may return
    /// earlier than `timeout`, so read the clock.
    ///
    /// # Errors
    /// When no command will come. It then returns at once, so a host that continues must sleep by
    /// itself.
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<Option<Request<M>>, Closed> {
        block_on_for(self.recv(), timeout).transpose()
    }

    /// The oldest command, if one waits.
    ///
    /// # Errors
    /// When no command will come.
    pub fn try_recv(&mut self) -> Result<Option<Request<M>>, Closed> {
        self.shared.commands.try_recv()
    }

    /// The oldest command; without one, the task of `cx` is woken when that changes.
    ///
    /// # Errors
    /// When no command will come.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Result<Request<M>, Closed>> {
        self.shared.commands.poll_recv(cx)
    }

    /// Replaces the snapshot, and then sends the events of the same step to all subscribers. In
    /// this order, so a reader that saw an event reads a snapshot that reflects it.
    ///
    /// To publish after steps with events is enough where the snapshot changes with events only.
    /// Readers of former snapshots keep them.
    pub fn publish(&mut self, snapshot: S, events: impl IntoIterator<Item = M::Event>) {
        self.shared.snapshot.replace(snapshot);
        self.emit(events);
    }

    /// Sends events that changed nothing in the snapshot to all subscribers.
    pub fn emit(&mut self, events: impl IntoIterator<Item = M::Event>) {
        self.shared.events.emit(events);
    }

    /// Admits no more commands. Commands that wait already can still be received.
    pub fn close(&mut self) {
        self.shared.commands.close();
    }
}

impl<M: Service, S> Drop for Port<M, S> {
    fn drop(&mut self) {
        self.shared.commands.shut_down();
        self.shared.snapshot.close();
        self.shared.events.close();
    }
}
