//! Medley-F: who is here.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod config;
mod event;
mod message;

pub use config::{
    ActiveFeedback, Config, ConfigError, PassiveFeedback, Selection, SuspicionLength,
};
pub use event::{Command, Event, Misbehaviour, Reject, Timer};
pub use message::{
    Body, Broadcast, Broadcasts, Claim, Digest, KIND, Key, Message, Metadata, Record, Records,
};
