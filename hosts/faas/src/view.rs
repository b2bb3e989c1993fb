//! A view of all nodes, from the statuses of gateways: the one source of `top` and of the page.

mod seen;
#[cfg(test)]
mod tests;

use selvedge_core::NodeId;
use selvedge_pcm::{Class, DutyCycle};
use serde::{Serialize, Serializer};

pub use self::seen::{SILENT, Seen};
use crate::counters::Counters;

/// A view of all nodes at one moment. Ids are texts, because they have 64 bits, and a number of
/// JavaScript 53.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct View {
    /// The gateway that leads the others, if one reports that it does.
    #[serde(serialize_with = "one_id")]
    pub manager: Option<NodeId>,
    /// The number of its era; without a leader, the highest that a gateway knows.
    pub era: Option<u64>,
    /// The number of updates in the tables.
    pub version: u64,
    /// The number of units.
    pub units: u32,
    /// The number of followers; `some_followers` has up to
    /// [`Status::SHOWN`](crate::notice::Status::SHOWN) of them.
    pub followers: u32,
    /// The number of open tasks; `some_tasks` has up to
    /// [`Status::SHOWN`](crate::notice::Status::SHOWN) of them.
    pub open: u32,
    /// The number of modules at the gateway that provided the tables.
    pub modules: u32,
    /// The gateways.
    pub gateways: Vec<GatewayView>,
    /// Followers, by unit, each unit's orchestrator first; followers without a unit last.
    pub some_followers: Vec<FollowerView>,
    /// Open tasks, by client and number.
    pub some_tasks: Vec<TaskView>,
    /// The last answers, the latest first: up to [`Status::ANSWERS`](crate::notice::Status::ANSWERS).
    pub answers: Vec<AnswerView>,
}

/// A gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GatewayView {
    /// Its id.
    #[serde(serialize_with = "id")]
    pub id: NodeId,
    /// Its life; `None` before its first status.
    pub life: Option<u32>,
    /// Its role.
    pub role: Role,
    /// True if the manager counts it as failed.
    pub is_gone: bool,
    /// The time since its last status, in milliseconds.
    pub said_ms: Option<u64>,
    /// The number of the era that it follows, or leads.
    pub era: Option<u64>,
    /// The number of updates in its tables.
    pub version: u64,
    /// The number of modules that it keeps.
    pub modules: u32,
    /// Its counters since its start.
    pub counters: Counters,
}

/// The role of a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It leads the others.
    Manager,
    /// It follows.
    Member,
    /// It reaches too few of the others.
    NoQuorum,
    /// It sent no status for [`SILENT`].
    Silent,
    /// It has sent no status yet.
    Unknown,
}

/// A follower.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FollowerView {
    /// Its id.
    #[serde(serialize_with = "id")]
    pub id: NodeId,
    /// Its life.
    pub life: u32,
    /// The gateway that it is at.
    #[serde(serialize_with = "id")]
    pub gateway: NodeId,
    /// Its unit, if it has one.
    pub unit: Option<u32>,
    /// Its class in its unit.
    #[serde(serialize_with = "one_class")]
    pub class: Option<Class>,
    /// Its duty cycle.
    pub duty: DutyCycle,
    /// Its present phase, by its duty cycle and the moment of its last message.
    pub phase: Phase,
    /// The time for which its present period has lasted, in milliseconds.
    pub woke_ms: Option<u64>,
    /// The modules that it keeps, each as 16 hexadecimal digits.
    pub libraries: Vec<String>,
}

/// The phase of a follower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It can be used.
    Active,
    /// It does other work.
    Busy,
    /// It sleeps.
    Asleep,
    /// It should have woken, and sent nothing.
    Late,
    /// It has sent nothing to its gateway yet.
    Unknown,
}

/// A task that is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskView {
    /// The client.
    #[serde(serialize_with = "id")]
    pub client: NodeId,
    /// The client's life.
    pub life: u32,
    /// The client's number of the task.
    pub number: u64,
    /// The call, for a reader.
    pub function: String,
    /// The number of units that it was given to.
    pub attempt: u16,
    /// The followers of its present unit, the orchestrator first; empty while it waits for a unit.
    #[serde(serialize_with = "ids")]
    pub electors: Vec<NodeId>,
    /// The followers whose votes were seen on their way to the orchestrator.
    #[serde(serialize_with = "ids")]
    pub votes: Vec<NodeId>,
    /// The time since a gateway first saw it, in milliseconds.
    pub age_ms: u64,
}

/// A task that ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AnswerView {
    /// The client.
    #[serde(serialize_with = "id")]
    pub client: NodeId,
    /// The client's life.
    pub life: u32,
    /// The client's number of the task.
    pub number: u64,
    /// The call, for a reader; empty if no gateway saw the task open.
    pub function: String,
    /// Its outcome: `value`, `failed`, `no_majority`, `unanswered` or `cancelled`.
    pub outcome: &'static str,
    /// The value, for a reader.
    pub value: Option<String>,
    /// The reason of a failure, for a reader.
    pub why: Option<String>,
    /// The last attempt; 0 if no gateway saw one.
    pub attempt: u16,
    /// The followers of its last unit, the orchestrator first.
    #[serde(serialize_with = "ids")]
    pub electors: Vec<NodeId>,
    /// The followers whose votes made it.
    #[serde(serialize_with = "ids")]
    pub votes: Vec<NodeId>,
    /// The time from when a gateway first saw it to its end, in milliseconds.
    pub took_ms: u64,
    /// The time since its end, in milliseconds.
    pub ago_ms: u64,
}

impl Phase {
    /// The phase of a follower with this cycle, this long after it woke.
    #[must_use]
    pub fn of(duty: DutyCycle, woke_ms: Option<u64>) -> Self {
        let Some(at) = woke_ms else {
            return Self::Unknown;
        };
        let [active, busy, asleep] = [duty.active_ms, duty.busy_ms, duty.asleep_ms].map(u64::from);
        match at {
            _ if at >= active + busy + asleep + LATE => Self::Late,
            _ if asleep > 0 && at >= active + busy => Self::Asleep,
            _ if busy > 0 && at >= active => Self::Busy,
            _ => Self::Active,
        }
    }
}

/// The delay after which a follower that should be awake by its cycle counts as late, in milliseconds.
const LATE: u64 = 1_000;

fn id<S: Serializer>(id: &NodeId, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&id.0)
}

fn one_id<S: Serializer>(id: &Option<NodeId>, to: S) -> Result<S::Ok, S::Error> {
    id.map(|it| it.0.to_string()).serialize(to)
}

fn ids<S: Serializer>(ids: &[NodeId], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(ids.iter().map(|it| it.0.to_string()))
}

fn one_class<S: Serializer>(class: &Option<Class>, to: S) -> Result<S::Ok, S::Error> {
    let text = class.map(|it| match it {
        Class::Low => "low",
        Class::Performant => "performant",
        Class::Orchestrator => "orchestrator",
    });
    text.serialize(to)
}
