//! Maps of the application: names to bytes, each map held by a group of its own. Entries have
//! versions, so that a change can be made to depend on what was read (compare and set), and any node
//! can watch an entry.
//!
//! | promise | under which assumption |
//! |---|---|
//! | changes of a map are decided in one order, and the answer reports the outcome | |
//! | a change is done once, however often it is sent | no more than [`CLIENTS_MAX`] nodes change the map between |
//! | a read returns the entry's content at one moment after the question | |
//! | a node that watches an entry gets its last content; contents between may be passed over | a leader is present, and messages get through infinitely often |
//! | a map that has no room refuses: [`ENTRIES_MAX`], [`BYTES_MAX`] | |
//!
//! [`Store`] is the state of a map's group. A machine that has maps gives the commands of its application to
//! a [`StoreClient`] and requests to the groups that it leads to a [`StoreLeader`], and carries out the
//! effects of both. `selvedge-kgroup` is such a machine.

mod client;
mod config;
mod event;
mod leader;
mod message;
mod state;

pub use client::StoreClient;
pub use config::StoreConfig;
pub use event::{ClientEffect, LeaderEffect, StoreCommand, StoreEvent, StoreReject, StoreTimer};
pub use leader::StoreLeader;
pub use message::{StoreAnswer, StoreRequest};
pub use state::{
    BYTES_MAX, Bytes, CLIENTS_MAX, Change, Decided, ENTRIES_MAX, Entry, Expected, Key, Operation,
    Store, Stored,
};
