//! The promises as properties, and the scenarios that check them.
//!
//! This crate's tests, `selvedge check`, and programs that compose groups with other machines run
//! one list, [`scenarios`]. It has routines and the clusters of their devices over ideal groups:
//! each is an atomic register that takes proposals of its present leader alone. The promises of
//! `selvedge-replica`, and of [groups](selvedge_groups::check) that move, make a group of replicas
//! as good as that. Each scenario explores every order of messages, losses, copies that come late,
//! changes of leaders with former leaders that go on, and commands that devices do late. Where the
//! paper's rule breaks a promise, the scenario comes twice under one name: with the published rule,
//! which must break, and with the rule of this crate, which must hold.

mod errata;
mod ideal;
mod letter;
pub mod operations;
mod property;
mod setup;
mod show;
mod sound;
mod world;

use alloc::vec::Vec;

use selvedge_sim::check::Scenario;

pub use crate::Rule;
pub use setup::{Network, Plan, Promise, Setup, Who};
pub use world::World;

/// The leaders of groups by themselves, for tests: each has neither the state of its group nor the
/// way to other groups, and returns its effects.
pub mod leaders {
    pub use crate::devices::edits::Listed;
    pub use crate::devices::machine::DeviceLeader;
    pub use crate::effect::{Effect, Effects};
    pub use crate::routines::machine::RoutineLeader;
}

/// All scenarios: routines with their clusters, then [clusters alone](crate::devices::check). The
/// scenarios of groups over real replicas are in [`selvedge_groups::check`].
#[must_use]
pub fn scenarios() -> Vec<Scenario> {
    let mut all = routines();
    all.extend(crate::devices::check::scenarios());
    all
}

/// Routines with their clusters: first the rules of this crate, which must hold, then published
/// rules, which must break.
#[must_use]
pub fn routines() -> Vec<Scenario> {
    let mut all = sound::quick();
    all.extend(sound::deep().into_iter().map(Scenario::deep));
    all.extend(errata::pairs());
    all
}
