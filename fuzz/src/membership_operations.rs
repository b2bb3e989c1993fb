//! Operations on a small mesh, beside a model of the notifications of each node.

use selvedge_membership::check::operations::run;

/// Takes the input for a list of operations (joins, losses, crashes, hostile messages, time) and
/// panics when a promise that holds at one node is broken.
#[allow(clippy::panic, reason = "a target reports a broken promise by a panic")]
pub fn membership_operations(data: &[u8]) {
    if let Err(broken) = run(data) {
        panic!("{broken}");
    }
}
