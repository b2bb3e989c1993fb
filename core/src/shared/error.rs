//! What can go wrong between a host and its application.

use thiserror::Error;

/// Nothing more will come.
///
/// To a [`Port`](super::Port): all handles were dropped or the port was closed, and the queue is
/// empty. To a [`Handle`](super::Handle) that waits for a snapshot: the host has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[error("the other end was dropped or closed: stop the host, or start it again")]
pub struct Closed;

/// Why a command was not carried out. `R` is the machine's `Reject`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Error<R> {
    /// The machine refused it. Nothing changed.
    #[error("the machine refused the command: {0}")]
    Rejected(R),
    /// The host closed before it took the command, or before the state that was waited for. Nothing
    /// changed.
    #[error("the host has stopped: start it again")]
    Closed,
    /// The host took the command and went away without an answer. It may have been carried out.
    #[error(
        "the host took the command and did not answer: read a snapshot to see what became of it"
    )]
    Unanswered,
}

impl<R> From<Closed> for Error<R> {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

/// Why a command was not submitted. It comes back, and nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum TrySubmitError<C> {
    /// Too many commands wait.
    #[error("{limit} commands wait already: wait for room with submit, or raise Limits::commands")]
    Full {
        /// What was to be submitted.
        command: C,
        /// How many may wait.
        limit: usize,
    },
    /// The host has closed.
    #[error("the host has stopped: start it again")]
    Closed {
        /// What was to be submitted.
        command: C,
    },
}

/// Why a subscriber got no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum RecvError {
    /// It was too slow. The next one is the oldest event that is kept; a snapshot that is read now
    /// reflects what was missed.
    #[error(
        "{missed} events were missed: read a snapshot, and read faster or raise Limits::events"
    )]
    Lagged {
        /// How many events it missed.
        missed: u64,
    },
    /// The host is gone, and all events have been read.
    #[error("the host has stopped: no event will come")]
    Closed,
}
