//! A node that is always on: it keeps the mailboxes of its followers, and holds the tables together
//! with the other gateways (PCM, sections 4.1 to 4.3).
//!
//! Any gateway proposes what its own followers, and clients, say. One of them leads the others' replica:
//! the resource manager. It has units formed, gives a task to another unit when one does not answer in
//! time, and takes out the followers of gateways that failed.
//!
//! Gateways hear of each other ([`Config::heartbeat`]). Where a membership service tells which of them
//! are here, its deltas are handed over, and `heartbeat` is zero.
//!
//! # What the host does
//!
//! It stores facts, as [`durable`](selvedge_core::durable) says, and delivers messages. What this gateway
//! says to a follower goes into the follower's mailbox here: the follower spoke to it, or is in the tables
//! as its own. What one follower says to another goes into the other one's mailbox, at the gateway that
//! [`Tables::follower`](crate::Tables::follower) names; where it names none, it is dropped, and said again.
//!
//! Gateways, followers and clients have each an id of their own, also where they share a process.
//!
//! How far other gateways are is proposed once: the host says [`Command::Hops`] again where it was refused,
//! and now and then, for what is proposed may be lost.

mod clients;
mod config;
mod counters;
mod event;
mod heartbeat;
mod machine;
mod manager;
mod outcomes;
mod state;
mod subnet;

pub use config::{Config, Voting};
pub use counters::Counters;
pub use event::{Command, Event, Misbehaviour, Reject, Timer};
pub use state::Gateway;
