//! Messages.

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
    /// Resource manager to gateways, now and then: it is here.
    Heartbeat {
        /// The gateways that count as failed; and the one that it is for, where that decides no more.
        ended: List<NodeId, 4>,
    },
    /// Gateway to resource manager, or to all where none manages: it is here, too.
    Here,
    /// Follower to its gateway: it is here (PCM, Figure 3, kind 1).
    KeepAlive {
        /// [`Attachment::number`](crate::Attachment::number).
        number: u32,
        /// Its duty cycle.
        duty: DutyCycle,
        /// [`Attachment::libraries`](crate::Attachment::libraries).
        libraries: Libraries,
    },
    /// Gateway to follower: with this attachment it was purged, and needs a later one.
    Purged {
        /// The number of the attachment.
        number: u32,
    },
    /// Gateway to followers of a unit: what to run.
    Run(Box<Run>),
    /// Gateway to followers of a unit: of this task these attempts are over.
    Over {
        /// The task.
        task: TaskId,
        /// This attempt, and those before it.
        attempt: u16,
    },
    /// Follower to its orchestrator; to its gateway where gateways count, and from an orchestrator that
    /// waits for others: is the task over?
    Vote {
        /// The task.
        task: TaskId,
        /// In which attempt (erratum Q7).
        attempt: u16,
        /// Its result.
        returned: Returned,
    },
    /// To follower, from where its vote went: its vote is there, or is not needed any more.
    Counted {
        /// The task.
        task: TaskId,
        /// In which attempt.
        attempt: u16,
    },
    /// Orchestrator to its gateway.
    Verdict {
        /// The task.
        task: TaskId,
        /// In which attempt.
        attempt: u16,
        /// Under which orchestrator of the attempt.
        term: u16,
        /// The result of the vote.
        answer: Answer,
        /// The followers whose votes made it.
        voters: Voters,
    },
    /// Client to a gateway: run this.
    Submit {
        /// The client's number of the task.
        number: u64,
        /// The function to run.
        function: Function,
    },
    /// Client to a gateway: do not.
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
        /// The followers whose votes made it; where it was kept from another task, the voters of that task.
        voters: Voters,
    },
    /// Gateway to client: the task is not run.
    Refused {
        /// The task.
        task: TaskId,
        /// Why.
        why: Refusal,
    },
    /// Gateway to follower or client: it reaches no quorum, or no manager; another gateway may.
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

/// Why a gateway does not take a task.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Error,
)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Refusal {
    /// As many tasks are open as may be, or as many clients wait at this gateway. Where the request was
    /// sent twice, the other one may still find room: then it is run, and no client receives the answer.
    #[error(
        "as many tasks are open, or clients wait here, as may be: ask again later, or raise \
         `Limits::open` or the `clients` of gateways"
    )]
    Full,
    /// It was over long ago; or it never came, and later tasks of its client are forgotten already.
    #[error("the task was over long ago, and its answer is forgotten: raise `Limits::done`")]
    Forgotten,
    /// It does not fit into what gateways send each other.
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
