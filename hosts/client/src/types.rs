//! The values of answers.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// The member that an agent is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Info {
    /// Its number in the mesh.
    pub id: u64,
    /// The number of its life.
    pub incarnation: u64,
    /// Its address in the mesh, once it is known.
    pub address: Option<String>,
    /// The version of the agent.
    pub version: String,
    /// True if it is in the mesh.
    pub is_in: bool,
    /// True if it leads the mesh.
    pub is_leader: bool,
    /// The generation of the site of its groups, if it takes part in them.
    pub generation: Option<u64>,
    /// The nodes that hold maps.
    #[serde(default)]
    pub nodes: Vec<u64>,
}

/// A member of the mesh.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its number in the mesh.
    pub id: u64,
    /// The number of its life.
    pub incarnation: u64,
    /// Its state, as the agent sees it.
    pub status: Status,
    /// Its address, if it is known.
    pub address: Option<String>,
    /// The round trip of the agent's probes of it in microseconds, smoothed, if it measured any.
    #[serde(default)]
    pub round_trip_us: Option<u64>,
    /// Its tags.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}

/// The outcome of [`Agent::reload`](crate::Agent::reload).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloaded {
    /// The parts of the settings that can change while an agent runs.
    pub parts: Vec<Part>,
    /// The names of the settings that differ from those in force, and that the next start reads.
    #[serde(default)]
    pub at_next_start: Vec<String>,
}

/// A part of the settings of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Its name: `settings`, `keys`, `tags`, `log` or `audit`; later versions may have others.
    pub part: String,
    /// The outcome for it.
    pub outcome: PartOutcome,
    /// The outcome for people.
    pub detail: String,
}

/// The outcome for a part of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PartOutcome {
    /// It was read, and is in force.
    Applied,
    /// There is nothing to change.
    Unchanged,
    /// It stays as it was.
    Failed,
    /// An outcome that a later version of the API has.
    #[serde(other)]
    Other,
}

/// The state of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// It answers.
    Alive,
    /// It may have failed.
    Suspected,
    /// It does not answer. This may be wrong.
    Failed,
    /// It has left.
    Left,
    /// A state that a later version of the API has.
    #[serde(other)]
    Other,
}

/// The outcome of [`Agent::query`](crate::Agent::query).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answers {
    /// The numbers of the members that were asked.
    pub asked: Vec<u64>,
    /// Their answers, in the order of arrival.
    pub answers: Vec<MemberAnswer>,
}

/// The answer of a member to a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberAnswer {
    /// The number of the member.
    pub from: u64,
    /// Its content.
    #[serde(flatten)]
    pub value: Value,
}

/// The leader of the mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leader {
    /// Its number in the mesh.
    pub id: u64,
    /// The number of its life.
    pub incarnation: u64,
}

/// A report of [`Agent::monitor`](crate::Agent::monitor).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", content = "data", rename_all = "snake_case")]
#[non_exhaustive]
pub enum MeshEvent {
    /// A member is new or has changed; at first, each present member.
    Member(Member),
    /// The mesh has another leader, or has none.
    Leader(Option<Leader>),
    /// A message to all members.
    Message {
        /// Its name.
        name: String,
        /// The number of its sender.
        from: u64,
        /// Its content.
        #[serde(flatten)]
        value: Value,
    },
    /// A question to all members.
    Question(Question),
    /// This many reports are missing here, because they were read too slowly.
    Missed(u64),
}

/// A question to all members. [`Agent::answer`](crate::Agent::answer) answers it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// Its id, which an answer gives.
    pub question: String,
    /// Its name.
    pub name: String,
    /// The number of the member that asks.
    pub from: u64,
    /// The milliseconds until answers are late.
    pub left_ms: u64,
    /// Its content.
    #[serde(flatten)]
    pub value: Value,
}

/// An entry of a map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its key.
    pub key: String,
    /// Its value.
    #[serde(flatten)]
    pub value: Value,
    /// The version of the map that set the value.
    pub version: u64,
    /// The version of the map that made the entry.
    pub created: u64,
    /// The session with which it ends.
    pub session: Option<String>,
}

/// A change of one key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The key.
    pub key: String,
    /// The version of the map that changed it.
    pub version: u64,
    /// The entry; `None` when it was removed.
    pub entry: Option<Entry>,
}

/// A number that grows from one holder to the next; tokens of different maps have no order.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Token {
    /// The map, in hexadecimal digits.
    pub map: String,
    /// The version of the map that made the hold.
    pub version: u64,
}

/// A hold of a program at an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldInfo {
    /// Its own name at the agent.
    pub hold: String,
    /// Its kind, such as `lock`.
    pub kind: String,
    /// The name of the lock, the election or the like.
    pub name: String,
    /// The number that a resource checks.
    pub token: Option<Token>,
    /// Its session in the mesh.
    pub session: Option<String>,
    /// Its time to live, in milliseconds.
    pub ttl_ms: u64,
    /// True if it is held, as far as the agent has received.
    pub is_held: bool,
    /// The time for which it certainly is held from the moment when the agent answered, in milliseconds: at most
    /// seven eighths of its time to live, and 0 if it may have ended.
    #[serde(default)]
    pub alive_for_ms: u64,
}

/// The leader of an election.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elected {
    /// The value with which it campaigned.
    #[serde(flatten)]
    pub value: Value,
    /// The token of its hold.
    pub token: Token,
}

/// A candidate that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// The value with which it campaigns.
    #[serde(flatten)]
    pub value: Value,
    /// Its priority: smaller ones lead first.
    pub priority: u32,
    /// Its session, by which a leader hands over to it.
    pub session: Option<String>,
}

/// A holder of a lock, or one that waits for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockPlace {
    /// The number of the member through which it asked.
    pub member: u64,
    /// Its session in the mesh.
    pub session: String,
    /// The token of its hold.
    pub token: Token,
    /// True if it shares the lock with others that share it.
    pub is_shared: bool,
    /// True if it has this name. One that asks for several names may wait for another one.
    pub has_it: bool,
}

/// An instance of a service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Instance {
    /// Its number.
    pub instance: u64,
    /// Its address.
    pub address: String,
}

/// Any bytes. In JSON, text is `"value"` and other bytes are `"value_base64"`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Value(pub Vec<u8>);

#[derive(Serialize, Deserialize)]
struct Written {
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value_base64: Option<String>,
}

impl Value {
    /// The text, if it is UTF-8.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        core::str::from_utf8(&self.0).ok()
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl From<Value> for Written {
    fn from(value: Value) -> Self {
        match String::from_utf8(value.0) {
            Ok(text) => Self {
                value: Some(text),
                value_base64: None,
            },
            Err(bytes) => Self {
                value: None,
                value_base64: Some(STANDARD.encode(bytes.as_bytes())),
            },
        }
    }
}

impl TryFrom<Written> for Value {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        match (written.value, written.value_base64) {
            (Some(text), None) => Ok(Self(text.into_bytes())),
            (None, Some(text)) => {
                let bytes = STANDARD.decode(text);
                bytes.map(Self).map_err(|_| "value_base64 is not base64")
            }
            _ => Err("not one of value and value_base64"),
        }
    }
}

impl Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Alive => "alive",
            Self::Suspected => "suspected",
            Self::Failed => "failed",
            Self::Left => "left",
            Self::Other => "other",
        })
    }
}

impl Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.map, self.version)
    }
}
