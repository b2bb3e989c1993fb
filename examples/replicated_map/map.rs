//! The replicated state: keys with values, and the revision that set each.

use core::fmt;
use std::collections::BTreeMap;

use selvedge_replica::State;
use serde::{Deserialize, Serialize};

/// The value of a key. Each change of the map has a revision of its own, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Slot {
    pub(crate) value: String,
    pub(crate) revision: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Map {
    slots: BTreeMap<String, Slot>,
    /// The revision of the last change.
    revision: u64,
    /// The largest size of all slots.
    bytes: usize,
}

/// The required value of a key; if it differs, the update changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Expected {
    Anything,
    Absent,
    Value(String),
    Revision(u64),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Update {
    pub(crate) key: String,
    pub(crate) expected: Expected,
    pub(crate) value: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Outcome {
    Changed { key: String, slot: Slot },
    Differs { found: Option<Slot> },
    Full,
}

impl Map {
    /// The most bytes of all slots: a member that lacks many updates receives the map whole, which
    /// is at most [`Config::state_limit`](selvedge_replica::Config::state_limit).
    pub(crate) const LIMIT: usize = 1 << 18;

    pub(crate) fn get(&self, key: &str) -> Option<&Slot> {
        self.slots.get(key)
    }
}

impl State for Map {
    type Update = Update;
    type Outcome = Outcome;

    fn apply(&mut self, update: &Update) -> Outcome {
        let found = self.slots.get(&update.key);
        let is_expected = match &update.expected {
            Expected::Anything => true,
            Expected::Absent => found.is_none(),
            Expected::Value(value) => found.is_some_and(|it| it.value == *value),
            Expected::Revision(revision) => found.is_some_and(|it| it.revision == *revision),
        };
        if !is_expected {
            let found = found.cloned();
            return Outcome::Differs { found };
        }
        // Two lengths and a revision are encoded with the texts.
        let len = |value: &str| update.key.len() + value.len() + 20;
        let former = found.map_or(0, |it| len(&it.value));
        let bytes = self.bytes - former + len(&update.value);
        if bytes > Self::LIMIT {
            return Outcome::Full;
        }
        self.bytes = bytes;
        self.revision += 1;
        let (key, revision) = (update.key.clone(), self.revision);
        let value = update.value.clone();
        let slot = Slot { value, revision };
        self.slots.insert(key.clone(), slot.clone());
        Outcome::Changed { key, slot }
    }
}

/// The printed form.
pub(crate) fn show(slot: Option<&Slot>) -> String {
    slot.map_or("absent".into(), |it| {
        format!("{} revision {}", it.value, it.revision)
    })
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed { slot, .. } => write!(f, "done, revision {}", slot.revision),
            Self::Differs { found } => write!(f, "refused, found {}", show(found.as_ref())),
            Self::Full => write!(f, "refused, the map is full: {} bytes", Map::LIMIT),
        }
    }
}
