//! Errors between a node and the users that queue for its section.

use thiserror::Error;

/// The other end was dropped or closed.
///
/// A [`Controller`](super::Controller) returns it when it was closed or no gate is left, and the node is
/// outside. A [`Guard`](super::Guard) returns it when the controller was closed or dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[error("the gate is closed: leave the section, or stop the host")]
pub struct Closed;

/// The reason why a user did not enter. `R` is the machine's reason to refuse an Enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum EnterError<R> {
    /// Too many users wait. This user does not wait.
    #[error("{limit} callers wait already: try again later, or raise Limits::waiters")]
    Full {
        /// The largest number of users that may wait.
        limit: usize,
    },
    /// The machine refused the Enter that was made for this user.
    #[error("the machine refused to enter: {0}")]
    Refused(R),
    /// This user's turn did not come in time. It waits no more.
    #[error("timed out before this caller's turn: try again, or wait longer")]
    TimedOut,
    /// The controller was closed or dropped.
    #[error("the host admits no more callers: start it again")]
    Closed,
}

/// The reason why [`Gate::try_enter`](super::Gate::try_enter) did not enter. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum TryEnterError {
    /// The node is outside, a user is inside, or the entry may not be handed over once more.
    #[error("the section is not free now: wait for it with enter")]
    WouldWait,
    /// The controller was closed or dropped.
    #[error("the host admits no more callers: start it again")]
    Closed,
}

/// The error of a report that does not fit the state of the node. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[error(
    "{report:?} was reported while the node is {node:?}: report the outcome of each command once"
)]
pub struct OutOfTurn {
    /// The refused report.
    pub report: Report,
    /// The state of the node.
    pub node: Stage,
}

/// A report from a host to its controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Report {
    /// [`Controller::entered`](super::Controller::entered)
    Entered,
    /// [`Controller::released`](super::Controller::released)
    Released,
    /// [`Controller::refused`](super::Controller::refused)
    Refused,
}

/// The state of a node, by the commands that the host took and its reports.
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
