//! The promises as properties, and the scenarios that check them.
//!
//! This crate's tests, `selvedge check`, and programs that compose elections with other machines
//! run one list, [`scenarios`]. Each scenario explores every order of messages, ticks, losses,
//! crashes and deltas within its bounds, and every choice of the nodes that are asked. Where the
//! thesis' rule breaks a promise, two scenarios share one name: with the published rules, which
//! must break, and with this crate's, which must hold.
//!
//! Timeouts are longer than any delivery, unless a scenario's description differs. Where `retries` is 0
//! the host's multicast is reliable, as the thesis assumes. The lowest id leads.

mod errata;
pub mod operations;
mod setup;
mod sound;

use alloc::vec::Vec;

use selvedge_sim::check::{Scenario, breaks, holds};

pub use setup::{ById, Leads, Lists, Promise, Setup, Watch};

/// All scenarios: first this crate's rules, which must hold, then the published rules, which must
/// break.
#[must_use]
pub fn scenarios() -> Vec<Scenario> {
    let mut all = sound::quick();
    all.extend(sound::deep().into_iter().map(Scenario::deep));
    all.extend(errata::pairs());
    all
}
