//! Operations on a machine outside the crates of Selvedge, the example `own_operations`: the target
//! to copy for a machine of your own.

#[allow(
    dead_code,
    reason = "the example runs by itself as well, over lists that chance chooses"
)]
#[path = "../../sim/examples/own_operations.rs"]
mod example;

use selvedge_sim::operations::list;

/// Takes the input for a list of operations on three nodes with a lock, and panics when two are
/// inside together.
#[allow(clippy::panic, reason = "a target reports a broken promise by a panic")]
pub fn own_operations(data: &[u8]) {
    if let Err(broken) = example::play(&list(data), true) {
        panic!("{broken}");
    }
}
