//! A node that is always on: it keeps the mailboxes of its followers, and holds the tables together
//! with the other gateways (PCM, sections 4.1 to 4.3).
//!
//! Any gateway proposes the reports of its own followers and clients. One of them, the resource manager,
//! leads the replica. It proposes to form units, gives a task to another unit when a unit does not answer
//! in time, and purges the followers of gateways that failed.
//!
//! Gateways detect failures by heartbeats ([`Config::heartbeat`]). If a membership service detects them,
//! the host hands over its deltas, and `heartbeat` is zero.
//!
//! # The host's duties
//!
//! It stores facts, as [`durable`](selvedge_core::durable) describes, and delivers messages. A message
//! from this gateway to a follower goes into the follower's mailbox at this gateway: the follower sent it
//! a message, or is in the tables as its own. A message from one follower to another goes into the
//! receiver's mailbox, at the gateway that [`Tables::follower`](crate::Tables::follower) names. If it names
//! none, the host drops the message, and its sender repeats it.
//!
//! Gateways, followers and clients have each an id of their own, even if they share a process.
//!
//! The distance to another gateway is proposed once. The host repeats [`Command::SetHops`] if it was refused,
//! and from time to time, because a proposal may be lost.

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
