//! Messages between hosts outside the protocol: modules, lists of gateways, and statuses.

use selvedge_core::wire::List;
use selvedge_core::{Member, NodeId};
use selvedge_pcm::{Answer, Bytes, Class, DutyCycle, Libraries, Library, TaskId};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::counters::Counters;

/// A message between hosts outside the protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Notice {
    /// Gateway to all, retained: the list of gateways.
    Gateways(List<Place, 4>),
    /// Gateway to all, each second.
    Status(Box<Status>),
    /// Client to gateway: keep this module. Gateway to gateway: keep it, too.
    Put {
        /// The module.
        module: Bytes,
        /// True if the receiver forwards it to the other gateways.
        spreads: bool,
    },
    /// Gateway to the client or gateway that put a module: it is on the disks of `by` gateways.
    Kept {
        /// The module.
        library: Library,
        /// The number of these gateways.
        by: u16,
    },
    /// Gateway to the client or gateway that put a module: it is not kept.
    NotKept {
        /// The module.
        library: Library,
        /// The reason.
        why: NotKept,
    },
    /// Follower to gateway, gateway to gateway: send this module.
    Get(Library),
    /// The requested module.
    Module(Bytes),
    /// The requested module is not here.
    NoModule(Library),
    /// Gateway to client, ahead of an answer: the last unit of the task.
    Unit {
        /// The client's number of the task.
        number: u64,
        /// The number of units that it was given to, this one included.
        attempt: u16,
        /// The followers of the unit, the orchestrator first.
        electors: List<Member, 5>,
    },
}

/// The reason why a gateway does not keep a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Error)]
pub enum NotKept {
    /// It is longer than the limit.
    #[error("the module has {len} bytes, a gateway keeps up to {limit}: shorten it")]
    TooLong {
        /// Its length in bytes.
        len: u32,
        /// The length of the longest module that is kept.
        limit: u32,
    },
    /// It does not have the sections of a WebAssembly module.
    #[error("it is no WebAssembly module: compile the function to one")]
    NoModule,
    /// Modules of open tasks take all the room.
    #[error(
        "open tasks need all modules that the gateway has room for: put it again when some ended"
    )]
    Full,
}

/// A gateway with the address of its broker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The gateway.
    pub gateway: NodeId,
    /// Host and port of its broker, in UTF-8.
    pub address: Bytes,
}

/// The status of a gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// True if it acts as resource manager.
    pub manages: bool,
    /// True if it reaches a quorum, as far as it knows.
    pub is_available: bool,
    /// The manager that it follows, or is, and the number of that manager's era; `None` while it
    /// knows of no manager.
    pub era: Option<(NodeId, u64)>,
    /// The number of updates in its tables.
    pub version: u64,
    /// The gateways that it knows, each with true if it counts as live.
    pub gateways: List<(Member, bool), 4>,
    /// The number of units.
    pub units: u32,
    /// The number of followers.
    pub followers: u32,
    /// The first [`SHOWN`](Self::SHOWN) followers.
    pub some_followers: List<FollowerStatus, 4>,
    /// The number of open tasks.
    pub open: u32,
    /// The first [`SHOWN`](Self::SHOWN) open tasks.
    pub some_tasks: List<TaskStatus, 4>,
    /// The last [`ANSWERS`](Self::ANSWERS) tasks that ended since its start, the latest first.
    pub answers: List<AnswerStatus, 4>,
    /// Its counters since its start.
    pub counters: Counters,
    /// The number of modules that it keeps.
    pub modules: u32,
}

impl Status {
    /// The largest number of followers, and of tasks, in a status.
    pub const SHOWN: usize = 64;
    /// The largest number of answers in a status.
    pub const ANSWERS: usize = 16;
}

/// A follower, as a gateway knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowerStatus {
    /// The follower.
    pub member: Member,
    /// The gateway that it is at.
    pub gateway: NodeId,
    /// Its duty cycle.
    pub duty: DutyCycle,
    /// Its unit, if it has one.
    pub unit: Option<u32>,
    /// Its class in its unit.
    pub class: Option<Class>,
    /// The time for which its present period has lasted, in milliseconds; `None` if it is at
    /// another gateway, or has sent nothing to this one.
    pub woke_ms: Option<u32>,
    /// The modules that it keeps.
    pub libraries: Libraries,
}

/// A task that is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStatus {
    /// The task.
    pub task: TaskId,
    /// The number of units that it was given to.
    pub attempts: u16,
    /// The followers of its present unit, the orchestrator first; empty while it waits for a unit.
    pub electors: List<Member, 5>,
    /// The followers whose votes for this attempt were seen here, on their way to the orchestrator.
    pub votes: List<NodeId, 4>,
    /// The call, as text in UTF-8 for a reader.
    pub function: Bytes,
    /// The time since this gateway first saw it, in milliseconds.
    pub age_ms: u32,
}

/// A task that ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerStatus {
    /// The task.
    pub task: TaskId,
    /// Its answer.
    pub answer: Answer,
    /// The last attempt; 0 if this gateway saw none.
    pub attempt: u16,
    /// The followers of its last unit, as far as this gateway saw one.
    pub electors: List<Member, 5>,
    /// The followers whose votes made it.
    pub votes: List<NodeId, 4>,
    /// The call, as in [`TaskStatus::function`]; empty if this gateway did not see the task open.
    pub function: Bytes,
    /// The time from when this gateway first saw it to its end, in milliseconds.
    pub took_ms: u32,
    /// The time since its end, in milliseconds.
    pub ago_ms: u32,
}
