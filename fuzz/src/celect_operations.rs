//! Operations on a small mesh, with a watch on the leaders.

use selvedge_celect::check::operations::run;

/// Takes the input for a list of operations (elections, losses, crashes, restarts, false deltas,
/// hostile messages, time) and panics when a promise of ballots, leaders, limits or agreement
/// is broken.
#[allow(clippy::panic, reason = "a target reports a broken promise by a panic")]
pub fn celect_operations(data: &[u8]) {
    if let Err(broken) = run(data) {
        panic!("{broken}");
    }
}
