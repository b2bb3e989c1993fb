//! The promises as properties, and the scenarios that check them.
//!
//! This crate's tests, `selvedge check`, and programs that compose replicas with other machines run
//! one list, [`scenarios`]. Each scenario explores every order of messages, ticks, losses, crashes
//! and deltas within its bounds. Where the paper's rule breaks a promise, the scenario comes twice
//! under one name: with the published rule, which must break, and with this crate's, which must
//! hold.
//!
//! Timeouts are longer than any delivery. [Lists of operations](operations) go further at random.

mod errata;
mod invariant;
pub mod operations;
mod property;
mod rivals;
mod setup;
mod sound;
mod watch;

use alloc::vec::Vec;

use selvedge_sim::check::{Model, Scenario, holds};
use serde::{Deserialize, Serialize};

pub use invariant::broken;
pub use setup::{Ask, Before, Memory, Setup, Sight};
pub use watch::Watch;

use crate::{Replica, State};

/// The scenarios: first those with this crate's rules, which must hold, then those that must break.
#[must_use]
pub fn scenarios() -> Vec<Scenario> {
    let mut all = sound::quick();
    all.extend(rivals::quick());
    let deep = sound::deep().into_iter().chain(rivals::deep());
    all.extend(deep.map(Scenario::deep));
    all.extend(errata::pairs());
    all
}

/// Three proposals at two of five members: too many states to search to the end.
#[must_use]
pub fn five_at_work() -> Model<Replica<Journal>, Watch> {
    sound::FIVE_AT_WORK.model()
}

/// A state that keeps each update: each loss, copy or change of order shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Journal(pub Vec<u16>);

impl State for Journal {
    type Update = u16;
    /// The number of updates.
    type Outcome = usize;

    fn apply(&mut self, update: &u16) -> usize {
        self.0.push(*update);
        self.0.len()
    }
}
