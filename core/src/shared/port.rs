//! The host's end.

use alloc::sync::Arc;
use core::future::poll_fn;
use core::task::{Context, Poll};
use core::time::Duration;

use super::sync::{block_on, block_on_for};
use super::{Closed, Reply, Service, Shared};

/// The host's end: it stands beside the driver in the host's loop.
///
/// The loop takes commands and steps the driver with each, [publishes](Self::publish) what came of
/// it, and then [answers](Reply::send).
///
/// A host that sleeps in something else, such as a blocking read from its socket, gives
/// [`poll_recv`](Self::poll_recv) a waker that interrupts that, for instance by a datagram to
/// itself.
///
/// Dropping the port closes: commands in the queue get [`Error::Closed`](super::Error::Closed),
/// subscribers read what is kept and then [`RecvError::Closed`](super::RecvError::Closed).
#[derive(Debug)]
pub struct Port<M: Service, S> {
    shared: Arc<Shared<M, S>>,
}

/// A command, and the way to answer it.
#[derive(Debug)]
pub struct Request<M: Service> {
    /// What is asked.
    pub command: M::Command,
    /// Takes the outcome.
    pub reply: Reply<M::Answer, M::Reject>,
}

impl<M: Service, S> Port<M, S> {
    pub(super) const fn new(shared: Arc<Shared<M, S>>) -> Self {
        Self { shared }
    }

    /// Waits for a command. Cancel-safe: a dropped future has taken nothing.
    ///
    /// # Errors
    /// When no command will come: the queue is empty, and all handles are gone or the port was
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

    /// Blocks this thread until there is a command, for `timeout` at most: how long
    /// [`Driver::wait`](crate::Driver::wait) says. `None` when there is still none. That may be
    /// earlier than asked, so look at the clock.
    ///
    /// # Errors
    /// When no command will come; at once, so a host that goes on must sleep by itself.
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

    /// Replaces the snapshot, and then tells all subscribers these events of the same step. In this
    /// order, so a reader that saw an event reads a snapshot that reflects it.
    ///
    /// To publish after steps with events is enough where the snapshot changes with events only.
    /// Readers of former snapshots keep them.
    pub fn publish(&mut self, snapshot: S, events: impl IntoIterator<Item = M::Event>) {
        self.shared.snapshot.replace(snapshot);
        self.emit(events);
    }

    /// Tells all subscribers these events, which changed nothing in the snapshot.
    pub fn emit(&mut self, events: impl IntoIterator<Item = M::Event>) {
        self.shared.events.emit(events);
    }

    /// Takes no more commands in. Those that wait already can still be received.
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
