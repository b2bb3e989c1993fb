//! Reports of runs.

use alloc::vec::Vec;

use selvedge_core::NodeId;
use serde::{Deserialize, Serialize};

/// The outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum StepOutcome {
    /// The device did it.
    Done,
    /// The device did not do it, or is down; or the state that its condition asks about is unknown.
    Failed,
    /// Unknown: the leader that gave it failed and it must not be given twice, or no answer came in
    /// time, or before the device was removed.
    Unknown,
    /// Its condition did not hold.
    Skipped,
    /// The run ended before.
    NotReached,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum End {
    /// All steps had their turn.
    Completed,
    /// This step, counted from 0, had to succeed and did not.
    Failed {
        /// The index of the step.
        step: u16,
    },
    /// A trigger came, and the routine's policy is to restart.
    Restarted,
    /// No group looks after this device, or the responsible group does not know it: the plans of
    /// the two groups differ.
    NoDevice {
        /// The device.
        device: NodeId,
    },
}

/// The report of the last run whose steps are over.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Report {
    /// The number of the run, from 1.
    pub instance: u64,
    /// The reason why it ended.
    pub end: End,
    /// The outcome of each step.
    pub steps: Vec<StepOutcome>,
}
