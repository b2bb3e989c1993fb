//! The promises as properties, and the scenarios that check them.
//!
//! One list, [`scenarios`], is run by this crate's tests, by `selvedge check`, and by programs that
//! compose a hub with other machines. Each scenario explores every order in which routines come,
//! commands are done, refused or get lost, devices fail and restart, and timers tick. Where the
//! paper's rule breaks a promise, the scenario comes twice under one name: with the published
//! rules, which must break, and with ours, which must hold.

mod algorithm;
mod errata;
mod home;
mod modes;
pub mod operations;
mod order;
mod patience;
mod sound;

use alloc::vec::Vec;

use selvedge_sim::check::{Scenario, holds};

pub use algorithm::{Algorithm1, Search, Slot, algorithm_1};
pub use home::{As, Do, Happening, Home, Promise, Setup, Tick};

/// What is checked: first ours, which must hold, then what must break.
#[must_use]
pub fn scenarios() -> Vec<Scenario> {
    let mut all = sound::quick();
    all.extend(sound::deep().into_iter().map(Scenario::deep));
    all.extend(errata::pairs());
    all.extend(modes::all());
    all
}
