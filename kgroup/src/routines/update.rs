//! Changes of a routine's state, and their outcomes.

use alloc::vec::Vec;

use selvedge_core::{NodeId, Span};
use serde::{Deserialize, Serialize};

use super::StepOutcome;
use crate::{Due, Status, TriggerId};

/// A change of a routine's state. All but triggers and observations name the run and the part of it
/// that they change, so a late or repeated update changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Update {
    /// The status of a device of the clause.
    Observed {
        /// The device.
        device: NodeId,
        /// Its status: nothing changes unless its version is higher than the last one.
        status: Status,
    },
    /// By hand.
    Trigger(TriggerId),
    /// This try holds all devices.
    Locked {
        /// The number of the run.
        instance: u64,
        /// The number of the try.
        attempt: u32,
    },
    /// This try gives up: another one follows.
    Retry {
        /// The number of the run.
        instance: u64,
        /// The number of the try.
        attempt: u32,
    },
    /// A device cannot be had: the run ends before it begins.
    NoDevice {
        /// The number of the run.
        instance: u64,
        /// The number of the try.
        attempt: u32,
        /// The device.
        device: NodeId,
    },
    /// The condition of this step holds, so it will be done.
    Cleared {
        /// The number of the run.
        instance: u64,
        /// The index of the step, from 0.
        step: u16,
    },
    /// This step is over.
    StepDone {
        /// The number of the run.
        instance: u64,
        /// The index of the step, from 0.
        step: u16,
        /// True if the step was cleared: a cleared step is not passed over any more.
        is_cleared: bool,
        /// The outcome.
        outcome: StepOutcome,
    },
    /// All devices are given back.
    Released {
        /// The number of the run.
        instance: u64,
    },
    /// The time for which the command of this step has held its device. The next leader continues from
    /// this value.
    Held {
        /// The number of the run.
        instance: u64,
        /// The index of the step, from 0.
        step: u16,
        /// The time, including the leaders before.
        held: Span,
    },
    /// An occurrence of a trigger of time has come: nothing changes unless it is later than the last
    /// one.
    Due(Due),
    /// The site has another definition. A present run ends under the one before.
    Define {
        /// The generation of the site: nothing changes unless it is higher than the last one.
        generation: u32,
        /// The definition in bytes: nothing changes if a group cannot run it.
        definition: Vec<u8>,
    },
}

/// The effect of a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Taken {
    /// This run: it begins, or has not got its devices yet.
    Runs {
        /// The number of the run.
        instance: u64,
    },
    /// A run that follows the present one.
    Queued,
    /// No run: the routine runs already, and its policy is to ignore the trigger.
    Ignored,
}

/// The outcome of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Decided {
    /// Nothing changed: the update was late, repeated, or irrelevant.
    Nothing,
    /// A device was observed.
    Observed {
        /// The device.
        device: NodeId,
        /// The effect, if the clause became true.
        taken: Option<Taken>,
    },
    /// A trigger was taken.
    Triggered {
        /// The trigger.
        id: TriggerId,
        /// The effect; `None` if the trigger was known.
        taken: Option<Taken>,
    },
    /// An occurrence of a trigger of time was decided.
    Due {
        /// The occurrence.
        due: Due,
        /// The effect; `None` if the occurrence was known, came too late, or was the first of all.
        taken: Option<Taken>,
        /// The number of left-out occurrences since the last decided one, this one included.
        left_out: u64,
    },
    /// Another try begins.
    Retries,
    /// The steps begin.
    Executes,
    /// The condition of the present step holds.
    Cleared,
    /// The time for which a command has held its device is longer.
    Held,
    /// A step is over, and the next one begins.
    Steps,
    /// The steps are over.
    Releases,
    /// A run is over.
    Ends {
        /// The number of the run.
        instance: u64,
    },
    /// It has another definition, or gets one after the present run.
    Defined,
}
