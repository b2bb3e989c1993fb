//! A small state that a handful of nodes hold together: Paxos on a versioned state.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod acceptor;
mod candidacy;
mod catch_up;
mod change;
#[cfg(feature = "check")]
pub mod check;
mod config;
mod configuration;
mod counters;
mod durable;
mod election;
mod encoding;
mod entry;
mod event;
mod follower;
mod lead;
mod leader;
mod lease;
mod machine;
mod message;
mod peers;
mod propose;
mod published;
mod read;
mod replica;
mod sessions;
mod state;
mod work;

use selvedge_core::{NodeId, Stamp};

pub use acceptor::{Fact, Snapshot, Stored};
pub use config::Config;
pub use configuration::{Configuration, ConfigurationError, Lease, QuorumRule, Voter};
pub use counters::Counters;
pub use entry::{Entries, Entry, Proposal};
pub use event::{Command, Event, Misbehaviour, Reject, Timer};
pub use message::{Body, KIND, Message};
#[cfg(feature = "check")]
pub use published::Published;
pub use replica::Replica;
pub use state::State;

/// How many updates and configurations were decided up to a state.
pub type Version = u64;

/// What orders leaders: a number, and the node that took it. Each configuration begins anew at 0.
pub type Ballot = Stamp<NodeId>;
