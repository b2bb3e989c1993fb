//! The application's end of a host.

use std::net::SocketAddr;
use std::sync::Arc;

use selvedge_core::shared::{self, Closed, Service, Subscriber};
use selvedge_core::{Delta, Machine};
use tokio::sync::{oneshot, watch};

use crate::traffic::Counters;
use crate::{RunError, Traffic, block_on};

/// The types of commands and events between handles and the task.
pub(crate) struct Hosting<M>(core::marker::PhantomData<fn() -> M>);

impl<M: Machine> Service for Hosting<M> {
    type Command = Command<M>;
    type Answer = ();
    type Event = M::Event;
    type Reject = M::Reject;
}

/// A command of a handle.
pub(crate) enum Command<M: Machine> {
    Machine(M::Command),
    Learn(Delta),
    Read(Look<M>),
    Leave(M::Command),
    Stop,
}

/// Reads from a machine, and passes on the result.
pub(crate) type Look<M> = Box<dyn FnOnce(&M) + Send>;

impl<M: Machine> core::fmt::Debug for Command<M> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Machine(command) => f.debug_tuple("Machine").field(command).finish(),
            Self::Learn(delta) => f.debug_tuple("Learn").field(delta).finish(),
            Self::Read(_) => f.write_str("Read"),
            Self::Leave(command) => f.debug_tuple("Leave").field(command).finish(),
            Self::Stop => f.write_str("Stop"),
        }
    }
}

/// The outcome of the host; nothing while it runs.
pub(crate) type End = Option<Result<(), RunError>>;

/// The error of a command that a machine `M` did not carry out.
pub type Error<M> = shared::Error<<M as Machine>::Reject>;

/// A running host, to clone into every thread and task that needs it. `S` is what
/// [`Setup::view`](crate::Setup::view) publishes.
///
/// Each wait is a future that runs on any executor; in a thread, pass it to
/// [`block_on`](crate::block_on). A dropped future waits no more; a command that the host has taken
/// is carried out.
///
/// When the last handle is dropped the host stops, as in a crash. Subscribers do not keep it
/// running.
pub struct Handle<M: Machine, S = ()> {
    pub(crate) shared: shared::Handle<Hosting<M>, S>,
    pub(crate) address: SocketAddr,
    pub(crate) counters: Arc<Counters>,
    pub(crate) end: watch::Receiver<End>,
}

impl<M: Machine, S> Handle<M, S> {
    /// The address at which it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its counters. They outlive the host.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.counters.report()
    }

    /// Gives the machine a command. It returns when the machine has taken the command, its facts
    /// are stored and its effects are carried out.
    ///
    /// # Errors
    /// When the machine refuses the command, or the host has ended.
    pub async fn submit(&self, command: M::Command) -> Result<(), Error<M>> {
        self.shared.submit(Command::Machine(command)).await
    }

    /// Does as [`submit`](Self::submit) and blocks this thread meanwhile.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// In a task of a tokio runtime, as [`block_on`].
    #[track_caller]
    pub fn blocking_submit(&self, command: M::Command) -> Result<(), Error<M>> {
        block_on(self.submit(command))
    }

    /// Gives the machine a change of membership, from a membership service of the application.
    ///
    /// # Errors
    /// When the machine refuses the change, or the host has ended.
    pub async fn learn(&self, delta: Delta) -> Result<(), Error<M>> {
        self.shared.submit(Command::Learn(delta)).await
    }

    /// Reads from the machine itself, for data too large to be published after each round. `look`
    /// runs in the host's task, when the facts of the steps before it are stored: keep it short.
    ///
    /// # Errors
    /// When the host has ended.
    pub async fn read<T: Send + 'static>(
        &self,
        look: impl FnOnce(&M) -> T + Send + 'static,
    ) -> Result<T, Closed> {
        let (found, outcome) = oneshot::channel();
        // A caller that waits no more needs no answer.
        let look = Box::new(move |machine: &M| drop(found.send(look(machine))));
        // The machine does not see it, so that it cannot refuse it.
        drop(self.shared.submit(Command::Read(look)).await);
        outcome.await.map_err(|_| Closed)
    }

    /// The latest published snapshot. It never changes; a reader that saw an event or got an outcome
    /// reads a snapshot that reflects it.
    #[must_use]
    pub fn snapshot(&self) -> Arc<S> {
        self.shared.snapshot()
    }

    /// Waits for a snapshot that `is_wanted` accepts, the present one included. A snapshot that is
    /// replaced before the caller looks is missed.
    ///
    /// # Errors
    /// When the host has ended, and `is_wanted` does not accept its last snapshot.
    pub async fn wait_for(&self, is_wanted: impl FnMut(&S) -> bool) -> Result<Arc<S>, Closed> {
        self.shared.wait_for(is_wanted).await
    }

    /// Reads the events of the machine from now on. A reader that falls behind by more than
    /// [`Setup::limits`](crate::Setup::limits) learns the number of events that it missed.
    #[must_use]
    pub fn events(&self) -> Subscriber<M::Event> {
        self.shared.subscribe()
    }

    /// Reads the events from the oldest that is kept: right after the start, all of them.
    #[must_use]
    pub fn events_from_oldest(&self) -> Subscriber<M::Event> {
        self.shared.subscribe_from_oldest()
    }

    /// Gives the machine its last command, and ends the host: when the effects of the command are
    /// carried out, or after the event that [`Setup::ends_with`](crate::Setup::ends_with) accepts.
    /// The port is free when this returns.
    ///
    /// # Errors
    /// When the machine refuses the command, and then the host goes on; or the host ended otherwise
    /// meanwhile.
    pub async fn leave(&self, command: M::Command) -> Result<(), Error<M>> {
        self.shared.submit(Command::Leave(command)).await
    }

    /// Ends the host without a message to other nodes, as in a crash. The port is free when this
    /// returns, and the folder of a durable machine is.
    ///
    /// # Errors
    /// When the host had failed before.
    pub async fn stop(&self) -> Result<(), RunError> {
        // A host that has ended answers nothing, and `ended` knows why.
        drop(self.shared.submit(Command::Stop).await);
        self.ended().await
    }

    /// Waits until the host has ended: it has left, was stopped, or failed.
    ///
    /// # Errors
    /// When it failed, for instance because a fact cannot be stored.
    pub async fn ended(&self) -> Result<(), RunError> {
        let mut end = self.end.clone();
        match end.wait_for(Option::is_some).await {
            Ok(ended) => ended.clone().unwrap_or(Ok(())),
            Err(_) => Err(RunError::Aborted),
        }
    }
}

impl<M: Machine, S> Clone for Handle<M, S> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            address: self.address,
            counters: Arc::clone(&self.counters),
            end: self.end.clone(),
        }
    }
}

impl<M: Machine, S> core::fmt::Debug for Handle<M, S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Handle")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
