//! Operations on a small mesh, with a watch on which nodes lead.

use selvedge_celect::check::operations::run;

/// Takes the input for a list of operations (elections, losses, crashes, restarts, false deltas,
/// hostile messages, time) and panics when a promise of ballots, leaders, limits or agreement
/// is broken.
#[allow(
    clippy::panic,
    reason = "a target tells of a broken promise by panicking"
)]
pub fn celect_operations(data: &[u8]) {
    if let Err(broken) = run(data) {
        panic!("{broken}");
    }
}
