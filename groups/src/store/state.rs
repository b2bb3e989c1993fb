//! A map, as a group's state.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use selvedge_core::Member;
use selvedge_core::wire::List;
use serde::{Deserialize, Serialize};

/// The name of an entry. With its value it has to fit into a frame.
pub type Key = String;

/// The value of an entry: bytes of the application.
pub type Bytes = List<u8, 16>;

/// The most entries of a map.
pub const ENTRIES_MAX: usize = 4_096;

/// The most bytes of all names and values of a map: 256 KiB.
pub const BYTES_MAX: usize = 256 << 10;

/// The number of nodes of which the last change is remembered. Where more change the map, the one
/// that was idle for longest is forgotten: a change of it that is still in flight may be done
/// twice.
pub const CLIENTS_MAX: usize = 64;

/// An entry of a map.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Entry {
    /// The version of the map that changed it last.
    pub version: u64,
    /// The value.
    pub value: Bytes,
}

/// The condition of a change on the entry: compare and set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Expected {
    /// Anything.
    Any,
    /// The map does not have the entry.
    Absent,
    /// The entry has this version.
    Version(u64),
}

/// A change of an entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Operation {
    /// The entry.
    pub key: Key,
    /// The condition on it.
    pub expected: Expected,
    /// The new value; `None` removes it.
    pub value: Option<Bytes>,
}

/// A change as the group decides it: with the node that asked for it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Change {
    /// The node, in one of its lives.
    pub by: Member,
    /// Counts its changes in this life.
    pub number: u64,
    /// The operation.
    pub operation: Operation,
}

/// The outcome of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Stored {
    /// It was done, by this version of the map. A removal of an absent entry changes nothing, and
    /// this is the present version.
    Done {
        /// The version.
        version: u64,
    },
    /// The entry is not as expected: nothing changed.
    Mismatch {
        /// The entry's version, or `None` if the map does not have it.
        found: Option<u64>,
    },
    /// The map has no room: nothing changed.
    Full,
    /// A later change of this node, or of a later life of it, was decided: the outcome of this one
    /// is no longer known.
    Over,
}

/// A decided change, and its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decided {
    /// The node that asked for it.
    pub by: Member,
    /// Its number of it.
    pub number: u64,
    /// The entry.
    pub key: Key,
    /// The outcome.
    pub stored: Stored,
}

/// The last change of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Client {
    by: Member,
    number: u64,
    stored: Stored,
    /// The change of the map, done or not, that it was.
    used: u64,
}

/// A map from names to bytes, with a version for each entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Store {
    version: u64,
    /// The number of changes that were decided, done or not.
    decided: u64,
    entries: BTreeMap<Key, Entry>,
    /// The bytes of all names and values.
    bytes: u64,
    clients: Vec<Client>,
}

impl Store {
    /// The number of changes that were done.
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// An entry. O(log n).
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// All entries, by name.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries
            .iter()
            .map(|(key, entry)| (key.as_str(), entry))
    }

    fn client(&self, by: Member) -> Option<&Client> {
        self.clients.iter().find(|it| it.by.id == by.id)
    }

    /// The outcome of a change that was decided before. O(number of clients).
    pub(super) fn former(&self, by: Member, number: u64) -> Option<Stored> {
        let client = self.client(by)?;
        let is_former_life = client.by.supersedes(by);
        let is_over = is_former_life || client.by == by && number < client.number;
        match client.by == by && number == client.number {
            true => Some(client.stored),
            false => is_over.then_some(Stored::Over),
        }
    }

    fn change(&mut self, operation: &Operation) -> Stored {
        let Operation {
            key,
            expected,
            value,
        } = operation;
        let found = self.entries.get(key);
        let found = found.map(|it| (it.version, key.len() + it.value.len()));
        let version = found.map(|it| it.0);
        let is_expected = match *expected {
            Expected::Any => true,
            Expected::Absent => version.is_none(),
            Expected::Version(expected) => version == Some(expected),
        };
        if !is_expected {
            return Stored::Mismatch { found: version };
        }
        let former = found.map_or(0, |it| it.1 as u64);
        let left = self.bytes.saturating_sub(former);
        let Some(value) = value else {
            if self.entries.remove(key).is_some() {
                self.version += 1;
                self.bytes = left;
            }
            return Stored::Done {
                version: self.version,
            };
        };
        let bytes = left + (key.len() + value.len()) as u64;
        let is_full = found.is_none() && self.entries.len() >= ENTRIES_MAX;
        if is_full || bytes > BYTES_MAX as u64 {
            return Stored::Full;
        }
        self.version += 1;
        self.bytes = bytes;
        let version = self.version;
        let value = value.clone();
        self.entries.insert(key.clone(), Entry { version, value });
        Stored::Done { version }
    }

    fn remember(&mut self, client: Client) {
        let known = self.clients.iter().position(|it| it.by.id == client.by.id);
        let longest_idle = || {
            let clients = self.clients.iter().enumerate();
            let idle = clients.min_by_key(|(_, it)| it.used);
            idle.map(|it| it.0)
        };
        let is_full = self.clients.len() >= CLIENTS_MAX;
        let at = known.or_else(|| is_full.then(longest_idle).flatten());
        match at.and_then(|at| self.clients.get_mut(at)) {
            Some(place) => *place = client,
            None => self.clients.push(client),
        }
    }
}

impl selvedge_replica::State for Store {
    type Update = Change;
    type Outcome = Decided;

    fn apply(&mut self, change: &Change) -> Decided {
        let Change {
            by,
            number,
            ref operation,
        } = *change;
        let decided = |stored| Decided {
            by,
            number,
            key: operation.key.clone(),
            stored,
        };
        if let Some(stored) = self.former(by, number) {
            return decided(stored);
        }
        self.decided += 1;
        let stored = self.change(operation);
        self.remember(Client {
            by,
            number,
            stored,
            used: self.decided,
        });
        decided(stored)
    }
}
