//! Maps of the application: names to bytes, each map held by a group of its own. Entries have
//! versions, so that a change can be made to depend on what was read (compare and set, or a
//! [`Transaction`] over several entries). Any node can list entries and watch one of them or all of a
//! prefix. An entry may be owned by a session: it is removed when that ends.
//!
//! | promise | under which assumption |
//! |---|---|
//! | changes of a map are decided in one order, and the answer reports the outcome; a transaction is done as a whole or not at all | |
//! | a change is done once, however often it is sent | no more than [`CLIENTS_MAX`] nodes change the map between |
//! | a read returns the entry's content at one moment after the question | |
//! | a node that watches an entry gets its last content; contents between may be passed over | a leader is present, and messages get through infinitely often |
//! | a node that watches a prefix gets each entry that was changed or removed, with its last content, or [`StoreEvent::Compacted`] | the same; a map forgets all but the last [`REMOVED_MAX`] entries that were removed |
//! | a session ends by a decided change, and its entries are removed by the same change: no change of it is done later | as in the second row |
//! | a node knows that its session may have ended before it ends ([`StoreEvent::SessionKept`]) | no node ends it by a command; the speeds of clocks differ by less than an eighth, and a machine that is suspended counts that time; the map does not begin anew |
//! | a session that no node keeps alive ends, after its time to live, and up to 30 s more for each change of the leader; that of a node that leaves, at once, if it began under the present leader and no other node keeps it alive | a quorum is here, and messages get through infinitely often; a leader leads for half the time to live (5 s at least and 30 s at most), and [`resend`](StoreConfig::resend) is shorter |
//! | a map that has no room refuses: [`ENTRIES_MAX`], [`BYTES_MAX`], [`SESSIONS_MAX`] | |
//!
//! [`Store`] is the state of a map's group. A machine that has maps gives the commands of its application to
//! a [`StoreClient`] and requests to the groups that it leads to a [`StoreLeader`], and carries out the
//! effects of both. `selvedge-kgroup` is such a machine.

mod client;
mod config;
mod event;
mod leader;
mod message;
mod operation;
mod page;
mod state;
mod transaction;

pub use client::StoreClient;
pub use config::StoreConfig;
pub use event::{ClientEffect, LeaderEffect, StoreCommand, StoreEvent, StoreReject, StoreTimer};
pub use leader::StoreLeader;
pub use message::{StoreAnswer, StoreRequest};
pub use operation::{
    Action, Bytes, Change, Compare, Decided, Entry, Expected, KEY_MAX, Key, Operation, Outcome,
    Owner, SessionId, Stored, TTL_MAX, TTL_MIN, Transaction, Wait, appended,
};
pub use page::{Changes, EntryChange, Page, Position};
pub use state::{BYTES_MAX, CLIENTS_MAX, ENTRIES_MAX, REMOVED_MAX, SESSIONS_MAX, Session, Store};

/// The most bytes around a change in a frame, while a group decides it: header, sender and site (29
/// bytes), group and replica (80), proposal (42). An answer with an entry has fewer.
const AROUND: usize = 151;
