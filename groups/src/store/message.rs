//! Requests to a map's leader, and its answers.

use alloc::boxed::Box;

use serde::{Deserialize, Serialize};

use crate::store::{Entry, Key, Operation, Stored};

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
    /// Changes an entry. Answered by [`StoreAnswer::Changed`].
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
}
