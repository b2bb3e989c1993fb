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
//! It stores facts, as [`durable`](selvedge_core::durable) says, and delivers messages. A message for a
//! follower goes into its mailbox, at the gateway that [`Tables::follower`](crate::Tables::follower) names; gateways send only
//! to followers of their own, and followers send votes to each other.

mod clients;
mod config;
mod event;
mod heartbeat;
mod machine;
mod manager;
mod outcomes;
mod subnet;

pub use config::{Config, Voting};
pub use event::{Command, Counters, Event, Misbehaviour, Reject, Timer};
pub use machine::Gateway;
