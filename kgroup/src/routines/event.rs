//! The timers of a routine's leader, and its events.

use selvedge_core::NodeId;

use super::Report;

/// Tag of a timer of a routine's leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RoutineTimer {
    /// Something was not answered.
    Resend,
    /// The next try at the locks may begin.
    Backoff,
    /// Nothing was heard of a command, or of the state that its condition asks for.
    Command,
    /// A command has held its device for as long as it should.
    Hold,
}

/// An event of a routine's leader for its application. A leader that takes over tells nothing of what
/// was decided before: the [state](super::RoutineState) says it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RoutineEvent {
    /// A run was triggered, and gets its devices.
    Triggered {
        /// Which run.
        instance: u64,
    },
    /// Its steps begin.
    Executes {
        /// Which run.
        instance: u64,
    },
    /// Its steps are over.
    Reports(Report),
    /// No group looks after this device of the clause, or the one that should does not know it.
    NoDevice {
        /// Which device.
        device: NodeId,
    },
}
