//! Operations on a few nodes with devices, routines and a map, with a watch on what becomes of them.

use selvedge_kgroup::check::operations::run;

/// Takes the input for a list of operations (triggers, changes and questions of a map, devices and
/// hosts that do what they are told late or not at all, losses, restarts without memory, false
/// deltas, epochs, hosts that sleep, hostile messages, time) and panics when a promise of locks,
/// commands, reports, changes, reads, limits or answers is broken.
#[allow(
    clippy::panic,
    reason = "a target tells of a broken promise by panicking"
)]
pub fn kgroup_operations(data: &[u8]) {
    if let Err(broken) = run(data) {
        panic!("{broken}");
    }
}
