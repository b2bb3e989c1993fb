//! Commands to maps, their events and errors, and the effects of clients and leaders.

use alloc::vec::Vec;

use selvedge_core::{Member, Span, Time};
use thiserror::Error;

use crate::GroupId;
use crate::message::encoded_len;
use crate::store::{
    Change, Entry, EntryChange, KEY_MAX, Key, Operation, Page, SessionId, StoreAnswer,
    StoreRequest, Stored, TTL_MAX, TTL_MIN,
};

/// A command of the application to a map.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StoreCommand {
    /// Changes entries or sessions. [`StoreEvent::Changed`] follows, once. Changes of one map by this node are
    /// done in their order. A session that begins is kept alive from then on.
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
    /// Reads entries whose names begin so. [`StoreEvent::Listed`] follows, once, with as many as have room in
    /// a frame.
    List {
        /// The application's name for it.
        ticket: u64,
        /// The beginning of the names; all entries if it is empty.
        prefix: Key,
        /// Reads on from the one after this; `None` begins with the first.
        after: Option<Key>,
    },
    /// Reports the entries whose names begin so that were changed since a version of the map, and all
    /// changes from then on: [`StoreEvent::PrefixChanged`], until [`StoreEvent::Compacted`].
    WatchPrefix {
        /// The application's name for it, which no other watch of a prefix has in this life.
        ticket: u64,
        /// The beginning of the names; all entries if it is empty.
        prefix: Key,
        /// The version; 0 reports all entries first.
        since: u64,
    },
    /// Ends the reports of a prefix.
    UnwatchPrefix {
        /// The application's name for it.
        ticket: u64,
    },
    /// Keeps a session alive that another node, or an earlier life of this one, began.
    /// [`StoreEvent::SessionKept`] follows, or [`StoreEvent::SessionOver`].
    KeepAlive(SessionId),
    /// Keeps a session alive no longer: it ends when its time to live is over.
    StopKeepAlive(SessionId),
}

impl StoreCommand {
    /// The length of its entry in a frame.
    pub(super) fn encoded_len(&self) -> usize {
        match self {
            Self::Change { operation, .. } => encoded_len(operation),
            Self::Get { key, .. } | Self::Watch(key) | Self::Unwatch(key) => encoded_len(key),
            Self::List { prefix, after, .. } => encoded_len(&(prefix, after)),
            Self::WatchPrefix { prefix, .. } => encoded_len(prefix),
            Self::UnwatchPrefix { .. } | Self::KeepAlive(_) | Self::StopKeepAlive(_) => 0,
        }
    }

    /// Checks names and times.
    pub(super) fn check(&self) -> Result<(), StoreReject> {
        if let Self::Change {
            operation: Operation::BeginSession { ttl, .. },
            ..
        } = self
            && !(TTL_MIN..=TTL_MAX).contains(ttl)
        {
            return Err(StoreReject::TimeToLive { ttl: *ttl });
        }
        let len = match self {
            Self::Change { operation, .. } => operation.key_len(),
            Self::Get { key, .. } | Self::Watch(key) | Self::Unwatch(key) => key.len(),
            Self::WatchPrefix { prefix, .. } | Self::List { prefix, .. } => prefix.len(),
            Self::UnwatchPrefix { .. } | Self::KeepAlive(_) | Self::StopKeepAlive(_) => 0,
        };
        match len > KEY_MAX {
            true => Err(StoreReject::Name { len }),
            false => Ok(()),
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
    /// Entries, as they were at one moment after the command.
    Listed {
        /// The application's name for the question.
        ticket: u64,
        /// The entries.
        page: Page,
    },
    /// Changes of a watched prefix, by version and name: of several changes of an entry the last one. Each
    /// change is reported once.
    PrefixChanged {
        /// The application's name for the watch.
        ticket: u64,
        /// The changes.
        changes: Vec<EntryChange>,
        /// All changes up to this version of the map are reported now, if there is one: a watch from here on
        /// continues this one.
        version: Option<u64>,
    },
    /// The map has forgotten entries that were removed since the last report: the watch has ended. List the
    /// entries again, or watch from 0 on.
    Compacted {
        /// The application's name for the watch.
        ticket: u64,
    },
    /// A session is alive.
    SessionKept {
        /// The session.
        session: SessionId,
        /// It does not end before this time of this node, as long as the speeds of clocks differ by less than an
        /// eighth.
        until: Time,
    },
    /// A session has ended, and its entries are removed.
    SessionOver {
        /// The session.
        session: SessionId,
    },
}

/// The reason for which a command to a map was refused. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum StoreReject {
    /// This node's limit of waiting requests is reached.
    #[error(
        "the command would exceed the limit of {limit} waiting requests, watches or sessions: wait for some to end, or raise pending"
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
    /// A name is too long.
    #[error("the name of the entry takes {len} bytes, and the limit is {KEY_MAX}: shorten it")]
    Name {
        /// Its length.
        len: usize,
    },
    /// The time to live of a session is out of its range.
    #[error("the session would live for {ttl:?}, and the range is {TTL_MIN:?} to {TTL_MAX:?}")]
    TimeToLive {
        /// The time to live.
        ttl: Span,
    },
    /// Another watch of a prefix has this ticket.
    #[error("the ticket {ticket} is the name of another watch: give each watch its own")]
    Ticket {
        /// The ticket.
        ticket: u64,
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
