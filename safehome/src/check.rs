//! The promises as properties, and the scenarios that check them.
//!
//! One list, [`scenarios`], is run by this crate's tests, by `selvedge check`, and by programs that
//! compose a hub with other machines. Each scenario explores every order in which routines are
//! submitted, commands are done, refused or lost, devices fail and restart, and timers tick. If the
//! paper's rule breaks a promise, the scenario exists twice under one name: with the published
//! rules, which must break, and with this crate's, which must hold.

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

/// All scenarios: first the rules of this crate, which must hold, then the published ones, which
/// must break.
#[must_use]
pub fn scenarios() -> Vec<Scenario> {
    let mut all = sound::quick();
    all.extend(sound::deep().into_iter().map(Scenario::deep));
    all.extend(errata::pairs());
    all.extend(modes::all());
    all
}
