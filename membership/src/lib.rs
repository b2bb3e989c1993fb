//! Medley-F: who is here.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod config;
mod event;
mod feedback;
mod gossip;
mod join;
mod list;
mod machine;
mod message;
mod probe;
mod suspicion;
mod sync;
mod target;
mod view;

pub use config::{
    ActiveFeedback, Config, ConfigError, PassiveFeedback, Selection, SuspicionLength,
};
pub use event::{Command, Event, Misbehaviour, Reject, Timer};
pub use machine::{Membership, Phase};
pub use message::{
    Body, Broadcast, Broadcasts, Claim, Digest, KIND, Key, Message, Metadata, Record, Records,
};
pub use view::{Counters, MemberView, Status};
