//! Operations on gateways, followers and clients, with a watch on what becomes of tasks.

use selvedge_pcm::check::operations::run;

/// Takes the input for a list of operations (tasks and wishes, mailboxes that are emptied or wait,
/// hosts that return late, wrongly or never, crashes, gateways that lose power in the middle of a step,
/// false deltas, nodes that sleep, messages that no node sent, time) and panics when a promise of
/// answers, tables, units, limits or progress is broken.
#[allow(
    clippy::panic,
    reason = "a target tells of a broken promise by panicking"
)]
pub fn pcm_operations(data: &[u8]) {
    if let Err(broken) = run(data) {
        panic!("{broken}");
    }
}
