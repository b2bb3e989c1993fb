//! Operations on gateways, followers and clients, with a watch on the outcomes of tasks.

use selvedge_pcm::check::operations::run;

/// Takes the input for a list of operations (tasks and requests, mailboxes that are emptied or
/// wait, hosts that return late, wrongly or never, crashes, gateways that lose power in the middle
/// of a step, false deltas, nodes that sleep, messages that no node sent, time) and panics when a
/// promise of answers, tables, units, limits or progress is broken.
#[allow(clippy::panic, reason = "a target reports a broken promise by a panic")]
pub fn pcm_operations(data: &[u8]) {
    if let Err(broken) = run(data) {
        panic!("{broken}");
    }
}
