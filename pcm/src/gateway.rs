//! A node that is always on: it keeps the mailboxes of its followers, and holds the tables together
//! with the other gateways (PCM, sections 4.1 to 4.3).
//!
//! Any gateway proposes the reports of its own followers and clients. One of them, the resource manager,
//! leads the replica. It has units formed, gives a task to another unit when one does not answer in
//! time, and takes out the followers of gateways that failed.
//!
//! Gateways detect failures by heartbeats ([`Config::heartbeat`]). Where a membership service does it,
//! its deltas are handed over, and `heartbeat` is zero.
//!
//! # What the host does
//!
//! It stores facts, as [`durable`](selvedge_core::durable) describes, and delivers messages. A message
//! from this gateway to a follower goes into the follower's mailbox here: the follower sent it a
//! message, or is in the tables as its own. A message from one follower to another goes into the other
//! one's mailbox, at the gateway that [`Tables::follower`](crate::Tables::follower) names; where it names
//! none, the message is dropped, and sent again.
//!
//! Gateways, followers and clients have each an id of their own, also where they share a process.
//!
//! The distance to another gateway is proposed once: the host gives [`Command::Hops`] again
//! where it was refused, and from time to time, for a proposal may be lost.

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
