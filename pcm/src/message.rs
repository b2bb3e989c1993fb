//! Messages between gateways, followers and clients.

use alloc::boxed::Box;

use selvedge_core::wire::{self, List};
use selvedge_core::{Member, NodeId};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::task::{Answer, Assignment, Function, Libraries, Returned, TaskId, Voters};
use crate::{DutyCycle, Update};

/// The kind of a frame with a [`Message`].
pub const KIND: u8 = 9;

/// A message between gateways, followers and clients.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    /// Gateway to gateway: the tables.
    Tables(Box<selvedge_replica::Message<Update>>),
    /// Resource manager to gateways, periodically: it is up.
    Heartbeat {
        /// The gateways that count as failed, and the receiver if it is no voter any more.
        ended: List<NodeId, 4>,
    },
    /// Gateway to resource manager, or to all gateways if none manages: it is up.
    Here,
    /// Follower to its gateway: it is up (PCM, Figure 3, kind 1).
    KeepAlive {
        /// [`Attachment::number`](crate::Attachment::number).
        number: u32,
        /// Its duty cycle.
        duty: DutyCycle,
        /// [`Attachment::libraries`](crate::Attachment::libraries).
        libraries: Libraries,
    },
    /// Gateway to follower: this attachment was purged, so the follower needs a later one.
    Purged {
        /// The number of the attachment.
        number: u32,
    },
    /// Gateway to followers of a unit: a function to run.
    Run(Box<Run>),
    /// Gateway to followers of a unit: these attempts of the task have ended.
    Over {
        /// The task.
        task: TaskId,
        /// This attempt, and all before it.
        attempt: u16,
    },
    /// Follower to its orchestrator, or to its gateway where gateways count votes: its result. Also from an
    /// orchestrator that waits for votes to its gateway, which answers if the task has ended.
    Vote {
        /// The task.
        task: TaskId,
        /// The attempt (erratum Q7).
        attempt: u16,
        /// Its result.
        returned: Returned,
    },
    /// Orchestrator or gateway to follower: its vote has arrived, or is not needed any more.
    Counted {
        /// The task.
        task: TaskId,
        /// The attempt.
        attempt: u16,
    },
    /// Orchestrator to its gateway: the answer of the unit.
    Verdict {
        /// The task.
        task: TaskId,
        /// The attempt.
        attempt: u16,
        /// The number of the orchestrator in the attempt.
        term: u16,
        /// The result of the vote.
        answer: Answer,
        /// The followers that voted for it.
        voters: Voters,
    },
    /// Client to a gateway: a function to run.
    Submit {
        /// The client's number of the task.
        number: u64,
        /// The function to run.
        function: Function,
    },
    /// Client to a gateway: a task to cancel.
    Cancel {
        /// The client's number of the task.
        number: u64,
    },
    /// Gateway to client: the task is open.
    Taken {
        /// The task: in another life the client has other tasks with the same number.
        task: TaskId,
    },
    /// Gateway to client: the answer to the task.
    Answer {
        /// The task.
        task: TaskId,
        /// The answer.
        answer: Answer,
        /// The followers that voted for it. If the answer was kept from another task, the voters of that task.
        voters: Voters,
    },
    /// Gateway to client: the task is not run.
    Refused {
        /// The task.
        task: TaskId,
        /// The reason.
        why: Refusal,
    },
    /// Gateway to follower or client: it reaches no quorum, or no manager, and another gateway may.
    Elsewhere,
}

impl wire::Message for Message {
    const KIND: u8 = KIND;

    fn encoded_len(&self) -> usize {
        // A message that cannot be encoded is longer than any frame.
        let len = postcard::serialize_with_flavor(self, postcard::ser_flavors::Size::default());
        len.unwrap_or(usize::MAX / 2)
    }
}

/// The reason why a gateway does not take a task.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Error,
)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Refusal {
    /// The limit of open tasks, or of clients that wait at this gateway, is reached. If the request was sent
    /// twice, the other copy may still find room: then it is run, and no client receives the answer.
    #[error(
        "the limit of open tasks, or of clients that wait here, is reached: ask again later, or raise \
         `Limits::open` or the `clients` of gateways"
    )]
    Full,
    /// It ended long ago; or it never arrived, and later tasks of its client are forgotten already.
    #[error("the task ended long ago, and its answer is forgotten: raise `Limits::done`")]
    Forgotten,
    /// It does not fit into a frame.
    #[error("the function is too long for a frame: shorten it, or put parts of it into libraries")]
    TooLong,
}

/// A function execution request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Run {
    /// The task.
    pub task: TaskId,
    /// See [`Assignment::attempt`].
    pub attempt: u16,
    /// See [`Assignment::term`].
    pub term: u16,
    /// See [`Assignment::electors`].
    pub electors: List<Member, 5>,
    /// True if votes go to the gateway, and not to the orchestrator.
    pub to_gateway: bool,
    /// The function to run.
    pub function: Function,
}

impl Run {
    /// The request to the followers of a unit.
    #[must_use]
    pub fn new(
        task: TaskId,
        assignment: &Assignment,
        function: &Function,
        to_gateway: bool,
    ) -> Self {
        let Assignment {
            attempt,
            term,
            ref electors,
        } = *assignment;
        Self {
            task,
            attempt,
            term,
            electors: electors.clone(),
            to_gateway,
            function: function.clone(),
        }
    }
}
