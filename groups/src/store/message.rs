//! Requests to a map's leader, and its answers.

use alloc::boxed::Box;

use selvedge_core::Span;
use serde::{Deserialize, Serialize};

use crate::store::{Changes, Entry, Key, Operation, Page, Position, SessionId, Stored};

/// A request to the leader of a map's group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum StoreRequest {
    /// Reads an entry. Answered by [`StoreAnswer::Found`].
    Get {
        /// The node's number of it.
        number: u64,
        /// The entry.
        key: Key,
    },
    /// Changes entries, or sessions. Answered by [`StoreAnswer::Changed`].
    Change {
        /// Counts the changes of the node that asks, of this map and in this life: from 1. The next
        /// one is asked when this one is answered.
        number: u64,
        /// The operation.
        operation: Box<Operation>,
    },
    /// The node watches an entry, and knows a version of it. Answered by [`StoreAnswer::Watched`]
    /// as long as the entry has another one, else by [`StoreAnswer::Known`]; sent again at
    /// intervals, for leaders change.
    Watch {
        /// The entry.
        key: Key,
        /// The entry's version that the node knows; 0 for no entry.
        known: u64,
    },
    /// The node watches an entry no longer.
    Unwatch {
        /// The entry.
        key: Key,
    },
    /// Reads entries whose names begin so. Answered by [`StoreAnswer::Listed`].
    List {
        /// The node's number of it.
        number: u64,
        /// The beginning of the names.
        prefix: Key,
        /// The name before the first one; `None` for the first of all.
        after: Option<Key>,
    },
    /// The node watches all entries whose names begin so. Answered by [`StoreAnswer::PrefixChanged`] or
    /// [`StoreAnswer::Compacted`], now and when there is a change; sent again at intervals, for leaders change.
    WatchPrefix {
        /// The node's name of the watch.
        watch: u64,
        /// The number of answers with changes that the node has received.
        number: u64,
        /// The beginning of the names.
        prefix: Key,
        /// The changes that the node has.
        since: Position,
    },
    /// The node watches a prefix no longer.
    UnwatchPrefix {
        /// The node's name of the watch.
        watch: u64,
    },
    /// Keeps a session alive. Answered by [`StoreAnswer::KeptAlive`].
    KeepAlive {
        /// The node's number of it.
        number: u64,
        /// The session.
        session: SessionId,
    },
}

/// An answer of the leader.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum StoreAnswer {
    /// An entry, as it was at one moment after the question.
    Found {
        /// The node's number of the question.
        number: u64,
        /// The entry, or `None` if the map does not have it.
        entry: Option<Entry>,
    },
    /// The outcome of a change.
    Changed {
        /// The node's number of it.
        number: u64,
        /// The outcome.
        stored: Stored,
    },
    /// A watched entry.
    Watched {
        /// The entry.
        key: Key,
        /// The version of the map at the report; a higher one is later.
        version: u64,
        /// The entry, or `None` if the map does not have it.
        entry: Option<Entry>,
    },
    /// The leader has no room for the watch, or the question: ask again later.
    Refused,
    /// The node knows the latest version of the entry.
    Known,
    /// Entries, as they were at one moment after the question.
    Listed {
        /// The node's number of the question.
        number: u64,
        /// The entries.
        page: Page,
    },
    /// Changes of a watched prefix; none if the node has all.
    PrefixChanged {
        /// The node's name of the watch.
        watch: u64,
        /// The number in the node's request.
        number: u64,
        /// The changes.
        found: Changes,
    },
    /// The map has forgotten entries that were removed since the node's position: it has to begin again.
    Compacted {
        /// The node's name of the watch.
        watch: u64,
        /// The number in the node's request.
        number: u64,
    },
    /// The outcome of a request to keep a session alive.
    KeptAlive {
        /// The node's number of the request.
        number: u64,
        /// The session.
        session: SessionId,
        /// Its time to live, which begins again after the request; `None` if it has ended.
        ttl: Option<Span>,
    },
}
