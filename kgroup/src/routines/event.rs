//! The timers of a routine's leader, and its events.

use selvedge_core::NodeId;

use super::Report;

/// Tag of a timer of a routine's leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RoutineTimer {
    /// A request got no answer in time.
    Resend,
    /// The next try at the locks may begin.
    Backoff,
    /// A command got no outcome in time, or a condition no state.
    Command,
    /// A command has held its device for as long as it should.
    Hold,
}

/// An event of a routine's leader for its application. A leader that takes over emits no events for
/// earlier decisions: they are in the [state](super::RoutineState).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RoutineEvent {
    /// A run was triggered, and gets its devices.
    Triggered {
        /// The number of the run.
        instance: u64,
    },
    /// Its steps begin.
    Executes {
        /// The number of the run.
        instance: u64,
    },
    /// Its steps are over.
    Reports(Report),
    /// Occurrences of a trigger of time came too late, or too soon one after the other, and started
    /// nothing.
    LeftOut {
        /// The trigger, by its place in [`Definition::triggers`](super::Definition::triggers).
        trigger: u16,
        /// The number of the last decided occurrence, which may have started the routine.
        occurrence: u64,
        /// The number of occurrences that were left out.
        count: u64,
    },
    /// No group looks after this device of the clause, or the responsible group does not know it.
    NoDevice {
        /// The device.
        device: NodeId,
    },
}
