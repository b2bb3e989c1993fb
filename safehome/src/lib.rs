//! Atomic, serializable routines at a hub.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod abort;
mod catalogue;
#[cfg(feature = "check")]
pub mod check;
mod config;
mod counters;
mod event;
mod execute;
mod failure;
#[cfg(feature = "json")]
pub mod file;
mod lineage;
mod machine;
mod published;
mod routine;
mod run;
mod schedule;
mod state;
pub mod trigger;

pub use catalogue::{Catalogue, Taken};
pub use config::{Config, ConfigError, Scheduler, Visibility};
pub use counters::Counters;
pub use event::{Command, Event, Outcome, Placed, Reject, Skip, Timer, Undo, Why};
pub use machine::{Hub, Value};
#[cfg(feature = "check")]
pub use published::Published;
pub use routine::{Comparison, Condition, Priority, Routine, RoutineId, Step};
pub use state::{Number, State};
