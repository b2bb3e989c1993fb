//! The promises as properties, and the scenarios that check them.
//!
//! One list, [`scenarios`], is run by this crate's tests, by `selvedge check`, and by whoever
//! composes membership with other machines. Each scenario explores every order of messages, ticks,
//! losses, crashes and restarts within its bounds, and every draw of a target or relay.
//!
//! The settings are the tightest that keep the number of states finite: no jitter, one relay, a
//! suspicion of two periods, news that go out a few times. Ages and health are off, for they count
//! and decide nothing here; feedback only changes how likely a choice is, and here every choice is
//! made.

mod promises;
mod settings;
mod witness;

use alloc::vec;
use alloc::vec::Vec;

use selvedge_sim::check::{Bounds, Expected, Model, Scenario};

use crate::{Membership, Published};
pub use promises::promised;
pub use settings::{Start, mesh, tight};
pub use witness::Witness;

/// What is checked, quick ones first.
#[must_use]
pub fn scenarios() -> Vec<Scenario> {
    vec![]
}
