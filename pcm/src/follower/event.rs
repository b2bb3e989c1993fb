//! Commands, events, timers and errors.

use selvedge_core::settings::OutOfRange;
use selvedge_core::{Member, NodeId};
use thiserror::Error;

use crate::{DutyCycle, Function, Library, Returned, TaskId};

/// A command of the host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Starts the follower: the first phase begins.
    Start,
    /// The gateway's mailboxes cannot be reached. The follower goes to the next gateway of its list.
    Unreachable,
    /// The mailboxes at its gateway can be reached, and were emptied: messages from it and to it may be
    /// lost. It attaches itself again at once, and repeats messages that are not acknowledged; its gateway
    /// sends it its open tasks again. This costs the gateways an update, as the arrival of a follower does: the
    /// host gives this command once each time that it happens.
    Emptied,
    /// The duty cycle from the next period on.
    SetDutyCycle(DutyCycle),
    /// A function has ended.
    Returned {
        /// The task.
        task: TaskId,
        /// Its result.
        returned: Returned,
    },
    /// A library is loaded.
    Loaded(Library),
    /// A library cannot be loaded: the function that needs it fails.
    Missing(Library),
}

/// An event for the host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// Another phase has begun.
    PhaseChanged(Phase),
    /// Get the messages in the mailbox at this gateway.
    Fetch(NodeId),
    /// Get a library.
    Load(Library),
    /// A library is not kept any more.
    Unload(Library),
    /// Run a function within a limit of memory; its libraries are loaded.
    Run {
        /// The task.
        task: TaskId,
        /// The function to run.
        function: Function,
        /// See [`Config::memory`](super::Config::memory).
        memory: u32,
    },
    /// Stop the function of a task. Its result does not matter.
    Stop(TaskId),
}

/// A phase of a follower's period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// It can be used.
    Active,
    /// It does work of its own. It still handles messages, and begins no function.
    Busy,
    /// It sleeps. Its only inputs are its timers.
    Asleep,
}

/// Tags of the timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// The phase ends.
    Phase,
    /// The running function has reached its time limit.
    Run,
}

/// The reason why an input is refused. Nothing changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Reject {
    /// A setting is out of its range.
    #[error(transparent)]
    Config(#[from] OutOfRange),
    /// No gateway is named.
    #[error("the list of gateways is empty: name one at least")]
    NoGateway,
    /// It was started before.
    #[error("it is started already: start a follower once in each life")]
    Started,
    /// It was not started.
    #[error("it is not started: start it first")]
    NotStarted,
    /// No function of this task runs.
    #[error("no function of task {} of {} runs here: it was stopped, or has returned", .0.number, .0.client)]
    NotRunning(TaskId),
    /// The follower did not ask for this library.
    #[error("library {:016x} was not asked for, or is loaded already", .0.0)]
    NotAsked(Library),
    /// A peer breaks the rules.
    #[error(transparent)]
    Misbehaviour(#[from] Misbehaviour),
}

/// A breach of the rules by a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Misbehaviour {
    /// It uses this node's id.
    #[error("{0} uses the id of this node: give each node its own")]
    OwnId(Member),
    /// It sends messages of a gateway, and is not on this follower's list.
    #[error("{0} sent a message of a gateway, and is not on the list of gateways")]
    NoGateway(Member),
    /// It gives a task to a unit in which no life of this follower has a place, up to the present one.
    #[error("{0} gives a task to a unit without this follower")]
    NotElected(Member),
    /// It gives a task to more followers than a unit has.
    #[error("{0} gives a task to {1} followers: a unit has at most {max}", max = crate::Limits::UNIT_MOST)]
    TooMany(Member, usize),
    /// Its message is for a gateway or a client.
    #[error("{0} sent a message that is not for followers")]
    Misdirected(Member),
}
