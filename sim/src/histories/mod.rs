//! Random histories of nodes with hosts: clocks, storage, sleep, and a network with faults.
//!
//! A protocol's test has a struct with its commands, its expectations, and counts. The struct
//! implements [`History`], and has a [`Hosts`] in it, to which it dereferences. The harness has the
//! rest:
//!
//! | part | role |
//! |---|---|
//! | [`Hosts`] | nodes, events in order of time, links that are cut, old messages, counts |
//! | [`History`] | the loop of a host: inputs, timers, effects that wait for facts, crashes, lives |
//! | [`Weather`] | loss, duplicates, delays, slow storage, lost news of members |
//! | [`Choices`] | the source of all draws: a seed, or the list of a history that failed |
//! | [`histories`] and [`random`] | many seeds, the seed that failed, a shorter list of draws |
//!
//! Each part of a history takes its draws from one [`Choices`], so a history that fails can be made
//! short without knowledge of the protocol: draws are left out or made smaller as long as it fails.
//!
//! `SELVEDGE_HISTORIES` is the number of histories or a range of seeds (`5000..9000`, see [`seeds`]);
//! `SELVEDGE_SEED` runs one seed; `TRACE` prints each step (the last ones of a history that failed are
//! printed anyway); `SELVEDGE_SHRINK` is the number of runs to spend on a short version of a history
//! that failed.

mod choices;
mod history;
mod hosts;
mod node;
mod seeds;
mod trace;

pub use choices::Choices;
pub use history::{History, Step};
pub use hosts::{Hosts, Real, Weather, What};
pub use node::{Disk, Host, Item, Life, Node, Waiting, Write};
pub use seeds::{histories, random, seeds};
pub use trace::Trace;
