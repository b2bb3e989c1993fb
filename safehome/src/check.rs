//! The promises as properties, and the scenarios that check them.
//!
//! One list, [`scenarios`], is run by this crate's tests, by `selvedge check`, and by whoever
//! composes a hub with other machines. Each scenario explores every order in which routines come,
//! commands are done, refused or get lost, devices fail and restart, and timers tick.

mod home;

use alloc::vec::Vec;

use selvedge_sim::check::{Expected, Scenario};

pub use home::{Do, Happening, Home, Promise, Setup, Tick};

use crate::Published;

use Happening::{Cancel, Fails, Restarts, Submit};

/// What is checked: first ours, which must hold, then what must break.
#[must_use]
pub fn scenarios() -> Vec<Scenario> {
    Vec::new()
}
