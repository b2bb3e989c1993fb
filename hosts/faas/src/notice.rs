//! What hosts tell each other beside the protocol: modules, which gateways there are, and how they are.

use selvedge_core::wire::List;
use selvedge_core::{Member, NodeId};
use selvedge_pcm::{Bytes, DutyCycle, Library, TaskId};
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
    /// It does not begin as WebAssembly does.
    #[error("it is no WebAssembly module: compile the function to one")]
    NoModule,
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
    /// What it has counted since its start.
    pub counters: Counters,
    /// How many modules it keeps.
    pub modules: u32,
}

impl Status {
    /// How many followers and tasks a status shows at most.
    pub const SHOWN: usize = 64;
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
}

/// A task that is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStatus {
    /// Which one.
    pub task: TaskId,
    /// How often it was given to a unit.
    pub attempts: u16,
    /// The orchestrator, if a unit has it.
    pub orchestrator: Option<Member>,
}
