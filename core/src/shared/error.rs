//! Errors between a host and its application.

use thiserror::Error;

/// The other end was dropped or closed.
///
/// A [`Port`](super::Port) returns it when all handles were dropped or the port was closed, and the
/// queue is empty. A [`Handle`](super::Handle) that waits for a snapshot returns it when the host
/// has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[error("the other end was dropped or closed: stop the host, or start it again")]
pub struct Closed;

/// The reason why a command was not carried out. `R` is the machine's `Reject`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Error<R> {
    /// The machine refused it. Nothing changed.
    #[error("the machine refused the command: {0}")]
    Rejected(R),
    /// The host closed before it took the command, or before the state that was waited for. Nothing
    /// changed.
    #[error("the host has stopped: start it again")]
    Closed,
    /// The host took the command and dropped it without an answer. It may have been carried out.
    #[error(
        "the host took the command and did not answer: read a snapshot to see if it was carried out"
    )]
    Unanswered,
}

impl<R> From<Closed> for Error<R> {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

/// The reason why a command was not submitted. The command is returned, and nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum TrySubmitError<C> {
    /// Too many commands wait.
    #[error("{limit} commands wait already: wait for room with submit, or raise Limits::commands")]
    Full {
        /// The command, which was not submitted.
        command: C,
        /// The largest number of commands that may wait.
        limit: usize,
    },
    /// The host has closed.
    #[error("the host has stopped: start it again")]
    Closed {
        /// The command, which was not submitted.
        command: C,
    },
}

/// The reason why a subscriber got no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum RecvError {
    /// It was too slow. The next event is the oldest one that is kept; a snapshot that is read now
    /// reflects the missed events.
    #[error(
        "{missed} events were missed: read a snapshot, and read faster or raise Limits::events"
    )]
    Lagged {
        /// The number of missed events.
        missed: u64,
    },
    /// The host has stopped, and all events have been read.
    #[error("the host has stopped: no event will come")]
    Closed,
}
