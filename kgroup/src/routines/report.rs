//! What became of a run.

use alloc::vec::Vec;

use selvedge_core::NodeId;
use serde::{Deserialize, Serialize};

/// What was done for a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum StepOutcome {
    /// The device did it.
    Done,
    /// The device did not do it, or is down; or the state that its condition asks about is unknown.
    Failed,
    /// Nobody knows: the leader that gave it failed and it is not to be given twice, or nothing was
    /// heard in time.
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
        /// Which step.
        step: u16,
    },
    /// A trigger came, and the routine's policy is to restart.
    Restarted,
    /// No group looks after this device, or the one that should does not know it: the plans of the
    /// two groups differ.
    NoDevice {
        /// Which device.
        device: NodeId,
    },
}

/// What became of the last run whose steps are over.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Report {
    /// Which run: from 1.
    pub instance: u64,
    /// Why it ended.
    pub end: End,
    /// What was done for each step.
    pub steps: Vec<StepOutcome>,
}
