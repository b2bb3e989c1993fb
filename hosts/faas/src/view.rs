//! What is known of all nodes, from what gateways say of themselves: the one source of `top` and of the page.

mod seen;
#[cfg(test)]
mod tests;

use selvedge_core::NodeId;
use selvedge_pcm::{Class, DutyCycle};
use serde::{Serialize, Serializer};

pub use self::seen::{SILENT, Seen};
use crate::counters::Counters;

/// All that is known, at a moment. Ids are texts, for they have 64 bits, and a number of JavaScript 53.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct View {
    /// The gateway that leads the others, if one says that it does.
    #[serde(serialize_with = "one_id")]
    pub manager: Option<NodeId>,
    /// The number of its era; the highest one that a gateway knows, where none leads.
    pub era: Option<u64>,
    /// How many updates the tables have seen.
    pub version: u64,
    /// How many units there are.
    pub units: u32,
    /// How many followers there are; `some_followers` has up to [`Status::SHOWN`](crate::notice::Status::SHOWN) of them.
    pub followers: u32,
    /// How many tasks are open; `some_tasks` has up to [`Status::SHOWN`](crate::notice::Status::SHOWN) of them.
    pub open: u32,
    /// How many modules the gateway keeps that the tables are from.
    pub modules: u32,
    /// The gateways.
    pub gateways: Vec<GatewayView>,
    /// Followers, by unit, the orchestrator of each first; those without a unit last.
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
    /// Its life; nothing while it has said nothing.
    pub life: Option<u32>,
    /// What it does.
    pub role: Role,
    /// Whether the manager counts it as failed.
    pub is_gone: bool,
    /// How long ago it said something, in milliseconds.
    pub said_ms: Option<u64>,
    /// The number of the era that it follows, or leads.
    pub era: Option<u64>,
    /// How many updates its tables have seen.
    pub version: u64,
    /// How many modules it keeps.
    pub modules: u32,
    /// What it has counted since its start.
    pub counters: Counters,
}

/// What a gateway does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It leads the others.
    Manager,
    /// It follows.
    Member,
    /// It reaches too few of the others.
    NoQuorum,
    /// It said nothing for [`SILENT`].
    Silent,
    /// It has said nothing yet.
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
    /// What it is in its unit.
    #[serde(serialize_with = "one_class")]
    pub class: Option<Class>,
    /// How it spends its time.
    pub duty: DutyCycle,
    /// What it does now, by its duty cycle and the moment at which it was heard.
    pub phase: Phase,
    /// For how long its present period has lasted, in milliseconds.
    pub woke_ms: Option<u64>,
    /// The modules that it keeps, each as 16 hexadecimal digits.
    pub libraries: Vec<String>,
}

/// What a follower does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It can be used.
    Active,
    /// It does work of its own.
    Busy,
    /// It sleeps.
    Asleep,
    /// It should have woken, and was not heard.
    Late,
    /// Its gateway has not heard it yet.
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
    /// What is called, for a reader.
    pub function: String,
    /// How often it was given to a unit.
    pub attempt: u16,
    /// The followers of the unit that has it, the orchestrator first; none while it waits for a unit.
    #[serde(serialize_with = "ids")]
    pub electors: Vec<NodeId>,
    /// The followers whose votes were seen on their way to the orchestrator.
    #[serde(serialize_with = "ids")]
    pub votes: Vec<NodeId>,
    /// How long ago it was seen first, in milliseconds.
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
    /// What was called, for a reader; empty where no gateway saw it open.
    pub function: String,
    /// What it came to: `value`, `failed`, `no_majority`, `unanswered` or `cancelled`.
    pub outcome: &'static str,
    /// The value, for a reader.
    pub value: Option<String>,
    /// Why it failed, for a reader.
    pub why: Option<String>,
    /// The attempt that was the last one; 0 where no gateway saw one.
    pub attempt: u16,
    /// The followers of the unit that had it last, the orchestrator first.
    #[serde(serialize_with = "ids")]
    pub electors: Vec<NodeId>,
    /// The followers whose votes made it.
    #[serde(serialize_with = "ids")]
    pub votes: Vec<NodeId>,
    /// From when it was seen first to its end, in milliseconds.
    pub took_ms: u64,
    /// How long ago it ended, in milliseconds.
    pub ago_ms: u64,
}

impl Phase {
    /// What a follower with this cycle does so long after it woke.
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

/// How much later than its cycle says a follower may be heard, in milliseconds.
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
