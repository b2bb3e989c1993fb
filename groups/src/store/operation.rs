//! Changes of a map, and their outcomes.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use selvedge_core::wire::List;
use selvedge_core::{Member, Span};
use serde::{Deserialize, Serialize};

/// The name of an entry, of [`KEY_MAX`] bytes at most. With its value it has to fit into a frame.
pub type Key = String;

/// The value of an entry: bytes of the application.
pub type Bytes = List<u8, 16>;

/// The most bytes of a name.
pub const KEY_MAX: usize = 255;

/// The shortest time to live of a session.
pub const TTL_MIN: Span = Span::secs(1);

/// The longest time to live of a session: a day.
pub const TTL_MAX: Span = Span::secs(86_400);

/// The number of digits in the name of an [appended](Action::Append) entry.
const APPENDED: usize = 16;

/// An entry of a map.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Entry {
    /// The version of the map that put it where there was none.
    pub created: u64,
    /// The version of the map that changed it last.
    pub version: u64,
    /// The session that owns it: the entry is removed when that ends.
    pub session: Option<SessionId>,
    /// The value.
    pub value: Bytes,
}

/// The name of a session, which no other session of this map has: the change that began it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct SessionId {
    /// The node that began it, in that life.
    pub by: Member,
    /// The number of the change among those of the node.
    pub number: u64,
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Member { id, incarnation } = self.by;
        write!(f, "{}.{}.{}", id.0, incarnation.0, self.number)
    }
}

/// The condition of a change on an entry: compare and set.
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

impl Expected {
    /// Returns true if an entry of this version is as expected; `None` is no entry.
    pub(super) fn accepts(self, version: Option<u64>) -> bool {
        match self {
            Self::Any => true,
            Self::Absent => version.is_none(),
            Self::Version(expected) => version == Some(expected),
        }
    }
}

/// A condition of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Compare {
    /// The entry.
    pub key: Key,
    /// The condition on it.
    pub expected: Expected,
}

/// The owner of an entry that a step puts: the entry is removed when the session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Owner {
    /// The session that [begins](Operation::BeginSession) with the transaction. In another operation there is
    /// none ([`Stored::NoSession`]).
    Begun,
    /// Another session.
    Session(SessionId),
}

impl From<SessionId> for Owner {
    fn from(session: SessionId) -> Self {
        Self::Session(session)
    }
}

/// A step of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Action {
    /// Puts an entry, in place of an existing one.
    Put {
        /// The entry.
        key: Key,
        /// The value.
        value: Bytes,
        /// The session that owns it from now on.
        owner: Option<Owner>,
    },
    /// Puts an entry with a name of its own, which sorts after all that were appended to this prefix before:
    /// see [`appended`].
    Append {
        /// The beginning of the name.
        prefix: Key,
        /// The value.
        value: Bytes,
        /// The session that owns it.
        owner: Option<Owner>,
    },
    /// Removes an entry, if there is one.
    Remove {
        /// The entry.
        key: Key,
    },
}

/// The name of an entry that the change of this version [appended](Action::Append) to a prefix: 16
/// hexadecimal digits follow it, so names sort by age.
#[must_use]
pub fn appended(prefix: &str, version: u64) -> Key {
    alloc::format!("{prefix}{version:016x}")
}

impl Action {
    /// The session that owns the entry.
    pub(super) const fn owner(&self) -> Option<Owner> {
        match self {
            Self::Put { owner, .. } | Self::Append { owner, .. } => *owner,
            Self::Remove { .. } => None,
        }
    }
}

/// Several changes as one: all are done at one version, or none.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Transaction {
    /// The conditions.
    pub compare: List<Compare, 0>,
    /// The steps if all conditions hold.
    pub then: List<Action, 0>,
    /// The steps if not.
    pub otherwise: List<Action, 0>,
}

/// A request to change a map.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Operation {
    /// Changes one entry, which no session owns from then on.
    Set {
        /// The entry.
        key: Key,
        /// The condition on it.
        expected: Expected,
        /// The new value; `None` removes it.
        value: Option<Bytes>,
    },
    /// Changes entries.
    Transact(Transaction),
    /// Begins a session, which the node keeps alive from now on. It ends when the group's leader has
    /// received nothing of it for its time to live.
    BeginSession {
        /// The time to live, from [`TTL_MIN`] to [`TTL_MAX`].
        ttl: Span,
        /// Entries are changed by the same change, and the session owns those that are put for it
        /// ([`Owner::Begun`]). Where it is refused ([`Stored::Mismatch`], [`Stored::Full`],
        /// [`Stored::NoSession`]), no session begins.
        transaction: Transaction,
    },
    /// Ends a session and removes its entries.
    EndSession(SessionId),
}

impl Operation {
    /// Begins a session that owns no entry yet.
    #[must_use]
    pub fn begin(ttl: Span) -> Self {
        Self::BeginSession {
            ttl,
            transaction: Transaction::new(),
        }
    }

    /// Changes one entry if it is as expected; without a value, removes it.
    #[must_use]
    pub fn set(key: impl Into<Key>, expected: Expected, value: Option<Bytes>) -> Self {
        Self::Set {
            key: key.into(),
            expected,
            value,
        }
    }

    /// The longest name in it.
    pub(super) fn key_len(&self) -> usize {
        match self {
            Self::Set { key, .. } => key.len(),
            Self::Transact(transaction) | Self::BeginSession { transaction, .. } => {
                transaction.key_len()
            }
            Self::EndSession(_) => 0,
        }
    }
}

impl Transaction {
    /// A change of one entry.
    pub(super) fn set(key: &Key, expected: Expected, value: Option<&Bytes>) -> Self {
        let compare = Compare {
            key: key.clone(),
            expected,
        };
        let key = key.clone();
        let step = match value.cloned() {
            Some(value) => Action::Put {
                key,
                value,
                owner: None,
            },
            None => Action::Remove { key },
        };
        Self {
            compare: List::from_iter([compare]),
            then: List::from_iter([step]),
            otherwise: List::new(),
        }
    }

    /// The longest name in it.
    pub(super) fn key_len(&self) -> usize {
        let compared = self.compare.iter().map(|it| it.key.len());
        let actions = self.then.iter().chain(self.otherwise.iter());
        let changed = actions.map(|it| match it {
            Action::Put { key, .. } | Action::Remove { key } => key.len(),
            Action::Append { prefix, .. } => prefix.len() + APPENDED,
        });
        compared.chain(changed).max().unwrap_or_default()
    }
}

/// A change as the group decides it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Change {
    /// A node asked for it.
    Asked {
        /// The node, in one of its lives.
        by: Member,
        /// Counts its changes in this life.
        number: u64,
        /// The operation.
        operation: Operation,
    },
    /// The leader watches over the sessions from now on: another leader ends none any more.
    TakeOver {
        /// The leader.
        by: Member,
    },
    /// The leader received nothing of a session for its time to live.
    Expire {
        /// The session.
        session: SessionId,
        /// The number of leaders that took the sessions over until then; a change with another number
        /// does nothing.
        term: u64,
    },
    /// The leader received nothing of some sessions for a while: the next leader counts what is left.
    Wait {
        /// The sessions.
        waits: List<Wait, 0>,
        /// As in [`Expire`](Self::Expire).
        term: u64,
    },
    /// A session is kept alive after a [`Wait`](Self::Wait).
    Renew {
        /// The session.
        session: SessionId,
        /// As in [`Expire`](Self::Expire).
        term: u64,
    },
}

/// The time that is left of a session of which a leader received nothing for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Wait {
    /// The session.
    pub session: SessionId,
    /// The number of its decided renewals; with another number it does nothing.
    pub renewals: u32,
    /// The time that is left.
    pub left: Span,
}

/// The outcome of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Stored {
    /// It was done, by this version of the map. A change without an effect, as the removal of an absent
    /// entry, changes nothing, and this is the present version.
    Done {
        /// The version.
        version: u64,
    },
    /// An entry is not as expected, and there are no [other steps](Transaction::otherwise): nothing changed.
    Mismatch {
        /// The version of the first such entry, or `None` if the map does not have it.
        found: Option<u64>,
    },
    /// The map has no room, or a name is longer than [`KEY_MAX`]: nothing changed.
    Full,
    /// A later change of this node, or of a later life of it, was decided: the outcome of this one
    /// is no longer known.
    Over,
    /// An entry is not as expected, and the [other steps](Transaction::otherwise) were done, by this version of
    /// the map.
    Otherwise {
        /// The version.
        version: u64,
    },
    /// The session began.
    Begun {
        /// Its name.
        session: SessionId,
        /// The version of the map after the steps that were done with it.
        version: u64,
        /// True if an entry was not as expected, and the [other steps](Transaction::otherwise) were done.
        is_otherwise: bool,
    },
    /// There is no session that was to own an entry, or no room for one more: nothing changed.
    NoSession,
}

/// A decided change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decided {
    /// The kind of the change, with its outcome.
    pub outcome: Outcome,
    /// The entries that it changed or removed.
    pub changed: Vec<Key>,
    /// The version of the map after it. The state may be later when it is reported: several changes are decided at
    /// once.
    pub version: u64,
}

/// The outcome of a decided change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The answer to a node.
    Asked {
        /// The node that asked for it.
        by: Member,
        /// Its number of it.
        number: u64,
        /// The outcome.
        stored: Stored,
    },
    /// A leader watches over the sessions.
    TakenOver {
        /// The leader.
        by: Member,
        /// The number of leaders that did so until now.
        term: u64,
    },
    /// A session ended, or the time that is left of sessions was noted, or the change came from a former leader.
    Counted,
}
