//! What can go wrong between a node and the users that queue for its section.

use thiserror::Error;

/// Nothing more will come.
///
/// To a [`Keeper`](super::Keeper): it was closed or no gate is left, and the node is outside. To a
/// [`Guard`](super::Guard): the keeper was closed or is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[error("the gate is closed: leave the section, or stop the host")]
pub struct Closed;

/// Why a user did not get in. `R` is why a machine refuses an Enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum EnterError<R> {
    /// Too many users wait. This one does not.
    #[error("{limit} callers wait already: try again later, or raise Limits::waiters")]
    Full {
        /// How many may wait.
        limit: usize,
    },
    /// The machine refused the Enter that was made for this user.
    #[error("the machine refused to enter: {0}")]
    Refused(R),
    /// This user's turn did not come in time. It waits no more.
    #[error("timed out before this caller's turn: try again, or wait longer")]
    TimedOut,
    /// The keeper was closed or is gone.
    #[error("the host admits no more callers: start it again")]
    Closed,
}

/// Why [`Gate::try_enter`](super::Gate::try_enter) did not get in. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum TryEnterError {
    /// The node is outside, a user is inside, or the entry may not be handed over once more.
    #[error("the section is not free now: wait for it with enter")]
    WouldWait,
    /// The keeper was closed or is gone.
    #[error("the host admits no more callers: start it again")]
    Closed,
}

/// The host reported what cannot have happened. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[error("{report:?} was reported while the node is {node:?}: report the outcome of each wish once")]
pub struct OutOfTurn {
    /// What was reported.
    pub report: Report,
    /// Where the node stands.
    pub node: Stage,
}

/// What a host reports to its keeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Report {
    /// [`Keeper::entered`](super::Keeper::entered)
    Entered,
    /// [`Keeper::released`](super::Keeper::released)
    Released,
    /// [`Keeper::refused`](super::Keeper::refused)
    Refused,
}

/// Where a node stands, by the wishes that were taken and what was reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// It is outside and asks for nothing.
    Outside,
    /// It asks to enter.
    Entering,
    /// It withdraws its Enter.
    Cancelling,
    /// It is inside.
    Inside,
    /// It exits.
    Exiting,
}
