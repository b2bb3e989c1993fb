//! What hosts tell each other beside the protocol: modules, which gateways there are, and how they are.

use selvedge_core::wire::List;
use selvedge_core::{Member, NodeId};
use selvedge_pcm::{Answer, Bytes, Class, DutyCycle, Libraries, Library, TaskId};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::counters::Counters;

/// What hosts tell each other beside the protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Notice {
    /// Gateway to all, retained: which gateways there are.
    Gateways(List<Place, 4>),
    /// Gateway to all, each second.
    Status(Box<Status>),
    /// Client to gateway: keep this module. Gateway to gateway: so do you.
    Put {
        /// The module.
        module: Bytes,
        /// Whether the receiver hands it on to the other gateways.
        spreads: bool,
    },
    /// Gateway to who put a module: it is on the disk of so many gateways.
    Kept {
        /// The module.
        library: Library,
        /// At how many gateways.
        by: u16,
    },
    /// Gateway to who put a module: it is not kept.
    NotKept {
        /// The module.
        library: Library,
        /// Why.
        why: NotKept,
    },
    /// Follower to gateway, gateway to gateway: send this module.
    Get(Library),
    /// What was asked for.
    Module(Bytes),
    /// What was asked for is not here.
    NoModule(Library),
    /// Gateway to client, ahead of an answer: the unit that the task was given to last.
    Unit {
        /// The client's number of the task.
        number: u64,
        /// How often it was given to a unit.
        attempt: u16,
        /// The followers of the unit, the orchestrator first.
        electors: List<Member, 5>,
    },
}

/// Why a gateway does not keep a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Error)]
pub enum NotKept {
    /// It is longer than a gateway keeps.
    #[error("the module has {len} bytes, a gateway keeps up to {limit}: shorten it")]
    TooLong {
        /// Its length in bytes.
        len: u32,
        /// The longest one that is kept.
        limit: u32,
    },
    /// Its sections are not those of WebAssembly.
    #[error("it is no WebAssembly module: compile the function to one")]
    NoModule,
    /// Modules of open tasks take all the room.
    #[error(
        "open tasks need all modules that the gateway has room for: put it again when some ended"
    )]
    Full,
}

/// A gateway and where its broker is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The gateway.
    pub gateway: NodeId,
    /// Host and port of its broker, in UTF-8.
    pub address: Bytes,
}

/// How a gateway is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Whether it acts as resource manager.
    pub manages: bool,
    /// Whether it reaches a quorum, as far as it knows.
    pub is_available: bool,
    /// The manager that it follows, or is, and the number of that one's era; nothing while it knows of
    /// none.
    pub era: Option<(NodeId, u64)>,
    /// How many updates the tables have seen.
    pub version: u64,
    /// The gateways that it knows, and whether each counts as here.
    pub gateways: List<(Member, bool), 4>,
    /// How many units there are.
    pub units: u32,
    /// How many followers there are.
    pub followers: u32,
    /// The first [`SHOWN`](Self::SHOWN) of them.
    pub some_followers: List<FollowerStatus, 4>,
    /// How many tasks are open.
    pub open: u32,
    /// The first [`SHOWN`](Self::SHOWN) of them.
    pub some_tasks: List<TaskStatus, 4>,
    /// The last [`ANSWERS`](Self::ANSWERS) tasks that ended since its start, the latest first.
    pub answers: List<AnswerStatus, 4>,
    /// What it has counted since its start.
    pub counters: Counters,
    /// How many modules it keeps.
    pub modules: u32,
}

impl Status {
    /// How many followers and tasks a status shows at most.
    pub const SHOWN: usize = 64;
    /// How many answers a status shows at most.
    pub const ANSWERS: usize = 16;
}

/// A follower, as a gateway knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowerStatus {
    /// The follower.
    pub member: Member,
    /// The gateway that it is at.
    pub gateway: NodeId,
    /// How it spends its time.
    pub duty: DutyCycle,
    /// Its unit, if it has one.
    pub unit: Option<u32>,
    /// What it is in its unit.
    pub class: Option<Class>,
    /// For how long its present period has lasted, in milliseconds; nothing where it is at another
    /// gateway, or has said nothing here.
    pub woke_ms: Option<u32>,
    /// The modules that it keeps.
    pub libraries: Libraries,
}

/// A task that is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStatus {
    /// Which one.
    pub task: TaskId,
    /// How often it was given to a unit.
    pub attempts: u16,
    /// The followers of the unit that has it, the orchestrator first; none while it waits for a unit.
    pub electors: List<Member, 5>,
    /// The followers whose votes for this attempt were seen here, on their way to the orchestrator.
    pub votes: List<NodeId, 4>,
    /// What is called, as text in UTF-8 for a reader.
    pub function: Bytes,
    /// How long ago this gateway saw it first, in milliseconds.
    pub age_ms: u32,
}

/// A task that ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerStatus {
    /// Which one.
    pub task: TaskId,
    /// What it came to.
    pub answer: Answer,
    /// The attempt that was the last one; 0 where this gateway saw none.
    pub attempt: u16,
    /// The followers of the unit that had it last, as far as this gateway saw one.
    pub electors: List<Member, 5>,
    /// The followers whose votes made it.
    pub votes: List<NodeId, 4>,
    /// As in [`TaskStatus::function`]; empty where this gateway did not see it open.
    pub function: Bytes,
    /// From when this gateway saw it first to its end, in milliseconds.
    pub took_ms: u32,
    /// How long ago it ended, in milliseconds.
    pub ago_ms: u32,
}
