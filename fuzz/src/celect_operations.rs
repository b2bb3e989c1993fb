//! Operations on a small mesh, with a watch on who leads.

use selvedge_celect::check::operations::run;

/// Takes the input for a list of operations (elections, losses, crashes, restarts, false deltas,
/// hostile messages, time) and panics when a promise of ballots, of who leads, of limits or of
/// agreement is broken.
#[allow(
    clippy::panic,
    reason = "a target tells of a broken promise by panicking"
)]
pub fn celect_operations(data: &[u8]) {
    if let Err(broken) = run(data) {
        panic!("{broken}");
    }
}
