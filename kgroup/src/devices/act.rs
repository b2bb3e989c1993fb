//! What a device is told to do.

use selvedge_core::{Member, NodeId};
use selvedge_routine::State;
use serde::{Deserialize, Serialize};

use super::decision::Decision;
use crate::{Claim, Delivery, Outcome};

/// Names a command to a device: of two the one with the higher number was given later. A command that
/// is given again has the ticket that it had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Ticket {
    /// The device.
    pub device: NodeId,
    /// Counts the commands to it: from 1.
    pub number: u64,
}

/// A command to a device, as the group decided it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Act {
    /// Counts the commands to the device: from 1.
    pub number: u64,
    /// The claim that held the device.
    pub claim: Claim,
    /// Which command of the routine.
    pub step: u16,
    /// The state to bring the device into.
    pub value: State,
    /// How often.
    pub delivery: Delivery,
    /// The leader that sees to it: the one that proposed it, or took it over. The host of each one before
    /// may have it, too.
    pub by: Member,
    /// What became of it; nothing while it is under way.
    pub outcome: Option<Outcome>,
}

impl Act {
    /// Whether it is not known yet what became of it.
    #[must_use]
    pub const fn is_under_way(&self) -> bool {
        self.outcome.is_none()
    }

    /// What a command of the same claim comes to, where that changes nothing.
    pub(super) fn judge(&self, step: u16) -> Option<Decision> {
        match self.outcome {
            _ if step < self.step => Some(Decision::Nothing),
            Some(outcome) if step == self.step => Some(Decision::Acted {
                claim: self.claim,
                step,
                outcome,
            }),
            Some(_) => None,
            None => Some(Decision::Waits),
        }
    }
}
