//! Rules that do not hold up, of all parts. For tests and comparison only.

use crate::{devices, routines};

/// A rule that does not hold up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A rule for the groups of routines.
    Routine(routines::Published),
    /// A rule for the groups of devices.
    Device(devices::Published),
}
