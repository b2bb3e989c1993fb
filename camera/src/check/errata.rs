//! Where the thesis' rules break, and ours do not.

use alloc::vec::Vec;

use selvedge_sim::check::Scenario;

/// Each erratum: the published rules break, ours hold.
pub(super) fn pairs() -> Vec<Scenario> {
    Vec::new()
}

/// Our rules with one part taken out.
pub(super) fn parts() -> Vec<Scenario> {
    Vec::new()
}
