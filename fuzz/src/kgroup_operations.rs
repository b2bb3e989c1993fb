//! Operations on a few nodes with devices, routines and a map, with a watch on the results.

use selvedge_kgroup::check::operations::run;

/// Takes the input for a list of operations (triggers, changes and questions of a map, devices and
/// hosts that carry out commands late or not at all, losses, restarts without memory, false deltas,
/// epochs, hosts that sleep, hostile messages, time) and panics when a promise of locks, commands,
/// reports, changes, reads, limits or answers is broken.
#[allow(clippy::panic, reason = "a target reports a broken promise by a panic")]
pub fn kgroup_operations(data: &[u8]) {
    if let Err(broken) = run(data) {
        panic!("{broken}");
    }
}
