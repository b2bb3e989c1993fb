//! The promises as properties, and the scenarios that check them.
//!
//! This crate's tests, `selvedge check`, and programs that compose elections with other machines
//! run one list, [`scenarios`]. Each scenario explores every order of messages, ticks, losses,
//! crashes and deltas within its bounds, and every choice of the nodes that are asked. Where the
//! thesis' rule breaks a promise, the scenario comes twice under one name: with the published
//! rules, which must break, and with ours, which must hold.
//!
//! Timeouts are longer than any delivery, unless a scenario says otherwise. Where `retries` is 0
//! the host's multicast is reliable, as the thesis assumes. The lowest id leads.

mod errata;
pub mod operations;
mod setup;
mod sound;

use alloc::vec::Vec;

use selvedge_sim::check::{Scenario, breaks, holds};

pub use setup::{ById, Leads, Lists, Promise, Setup, Watch};

/// What is checked: first ours, which must hold, then what must break.
#[must_use]
pub fn scenarios() -> Vec<Scenario> {
    let mut all = sound::quick();
    all.extend(sound::deep().into_iter().map(Scenario::deep));
    all.extend(errata::pairs());
    all
}
