//! Commands to maps, their events and errors, and the effects of clients and leaders.

use selvedge_core::{Member, Span};
use thiserror::Error;

use crate::GroupId;
use crate::message::encoded_len;
use crate::store::{Change, Entry, Key, Operation, StoreAnswer, StoreRequest, Stored};

/// A command of the application to a map.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StoreCommand {
    /// Changes an entry. [`StoreEvent::Changed`] follows, once. Changes of one map by this node are
    /// done in their order.
    Change {
        /// The application's name for it.
        ticket: u64,
        /// The operation.
        operation: Operation,
    },
    /// Reads an entry. [`StoreEvent::Found`] follows, once.
    Get {
        /// The application's name for it.
        ticket: u64,
        /// The name of the entry.
        key: Key,
    },
    /// Reports an entry, now and after each change: [`StoreEvent::Watched`].
    Watch(Key),
    /// Ends the reports of an entry.
    Unwatch(Key),
}

impl StoreCommand {
    /// The length of its entry in a frame.
    pub(super) fn encoded_len(&self) -> usize {
        match self {
            Self::Change { operation, .. } => encoded_len(operation),
            Self::Get { key, .. } | Self::Watch(key) | Self::Unwatch(key) => encoded_len(key),
        }
    }
}

/// A report to the application about a map.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreEvent {
    /// The outcome of a change.
    Changed {
        /// The application's name for it.
        ticket: u64,
        /// The outcome.
        stored: Stored,
    },
    /// An entry, as it was at one moment after the command.
    Found {
        /// The application's name for the question.
        ticket: u64,
        /// The entry, or `None` if the map does not have it.
        entry: Option<Entry>,
    },
    /// The present content of a watched entry.
    Watched {
        /// The name of the entry.
        key: Key,
        /// The entry, or `None` if the map does not have it.
        entry: Option<Entry>,
    },
}

/// The reason for which a command to a map was refused. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum StoreReject {
    /// This node's limit of waiting requests is reached.
    #[error(
        "the command would exceed the limit of {limit} waiting requests or watched entries: wait for some to end, or raise pending"
    )]
    Full {
        /// The limit.
        limit: u16,
    },
    /// This node's limit of maps is reached. It remembers each map that it has asked in this life, since its
    /// changes of a map are numbered.
    #[error(
        "this node has asked {limit} maps, the limit: use the maps that it has asked before, or raise pending"
    )]
    Maps {
        /// The limit.
        limit: u16,
    },
    /// The entry's name, with its value, does not fit into a frame.
    #[error(
        "the entry takes {len} bytes and a frame has room for {room}: shorten it, or raise the frame budget"
    )]
    TooLong {
        /// Its length.
        len: usize,
        /// The room in a frame.
        room: usize,
    },
}

/// Tag of the timer of a map's leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StoreTimer {
    /// Nodes that watch have not acknowledged.
    Resend,
}

/// An effect of a [`StoreClient`](crate::store::StoreClient).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEffect {
    /// Asks the leader of a map's group, whichever node that is. The request may be lost.
    Ask {
        /// The map's group.
        map: GroupId,
        /// The request.
        request: StoreRequest,
    },
    /// Arms the timer of a map: [`on_tick`](crate::store::StoreClient::on_tick) follows.
    Arm {
        /// The map's group.
        map: GroupId,
        /// The delay.
        after: Span,
    },
    /// Notifies the application.
    Event {
        /// The map's group.
        map: GroupId,
        /// The event.
        event: StoreEvent,
    },
}

/// An effect of a [`StoreLeader`](crate::store::StoreLeader).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaderEffect {
    /// Proposes a change of the map: [`on_applied`](crate::store::StoreLeader::on_applied) follows,
    /// if it is decided.
    Propose(Change),
    /// Reads the map: [`on_readable`](crate::store::StoreLeader::on_readable) follows with this
    /// number, when the state is up to date.
    Read(u64),
    /// Sends an answer to a node. It may be lost.
    Answer {
        /// The node.
        to: Member,
        /// The answer.
        answer: StoreAnswer,
    },
    /// Arms the leader's timer.
    Arm {
        /// The timer.
        timer: StoreTimer,
        /// The delay.
        after: Span,
    },
}
