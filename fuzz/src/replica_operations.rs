//! Operations on a small group, with a watch on updates and reads.

use selvedge_replica::check::operations::run;

/// Takes the input for a list of operations (proposals, reads, losses, crashes, restarts with and
/// without storage, false deltas, changes of configuration, hostile messages, time) and panics when
/// a promise of order, reads, limits or answers is broken.
#[allow(clippy::panic, reason = "a target reports a broken promise by a panic")]
pub fn replica_operations(data: &[u8]) {
    if let Err(broken) = run(data) {
        panic!("{broken}");
    }
}
