//! What travels.

use alloc::boxed::Box;

use selvedge_core::wire::List;
use selvedge_core::Member;
use serde::{Deserialize, Serialize};

use crate::task::{Answer, Assignment, Function, Returned, TaskId};
use crate::{DutyCycle, Update};

/// The kind of a frame with a [`Message`].
pub const KIND: u8 = 9;

/// What gateways, followers and clients send each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Message {
    /// Gateway to gateway: the tables.
    Tables(Box<selvedge_replica::Message<Update>>),
    /// Follower to its gateway: it is here (PCM, Figure 3, kind 1).
    KeepAlive {
        /// [`Attachment::number`](crate::Attachment::number).
        number: u32,
        /// How it spends its time.
        duty: DutyCycle,
    },
    /// Gateway to follower: with this attachment it was purged, and needs a later one.
    Purged {
        /// Of the attachment.
        number: u32,
    },
    /// Resource manager to the followers of a unit.
    Run(Box<Run>),
    /// Resource manager to the followers of a unit: the task is over.
    Stop(TaskId),
    /// Follower to its orchestrator.
    Vote {
        /// Which task.
        task: TaskId,
        /// In which attempt (erratum Q7).
        attempt: u16,
        /// What it returned.
        returned: Returned,
    },
    /// Orchestrator to follower: its vote is there, or is not needed any more.
    Counted {
        /// Which task.
        task: TaskId,
        /// In which attempt.
        attempt: u16,
    },
    /// Orchestrator to the resource manager.
    Verdict {
        /// Which task.
        task: TaskId,
        /// In which attempt.
        attempt: u16,
        /// What the votes come to.
        answer: Answer,
    },
    /// Resource manager to orchestrator: the task is over, or has another attempt.
    Recorded {
        /// Which task.
        task: TaskId,
        /// In which attempt.
        attempt: u16,
    },
}

/// A function execution request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Run {
    /// Which task.
    pub task: TaskId,
    /// See [`Assignment::attempt`].
    pub attempt: u16,
    /// See [`Assignment::term`].
    pub term: u16,
    /// See [`Assignment::electors`].
    pub electors: List<Member, 5>,
    /// What to run.
    pub function: Function,
}

impl Run {
    /// What the followers of a unit are sent.
    #[must_use]
    pub fn new(task: TaskId, assignment: &Assignment, function: &Function) -> Self {
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
            function: function.clone(),
        }
    }
}
