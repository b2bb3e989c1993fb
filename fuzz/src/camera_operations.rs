//! Operations on a small mesh, with a watch on the nodes inside.

use selvedge_camera::check::operations::run;

/// Takes the input for a list of operations (entries, losses, crashes, restarts, false deltas,
/// hostile messages, time) and panics when a promise of mutual exclusion, of tokens, of limits or
/// of service is broken.
#[allow(clippy::panic, reason = "a target reports a broken promise by a panic")]
pub fn camera_operations(data: &[u8]) {
    if let Err(broken) = run(data) {
        panic!("{broken}");
    }
}
