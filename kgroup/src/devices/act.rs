//! Commands to devices.

use selvedge_core::{Member, NodeId, Span};
use selvedge_routine::State;
use serde::{Deserialize, Serialize};

use super::decision::Decision;
use crate::{Claim, Delivery, Outcome};

/// The name of a command to a device: of two tickets the one with the higher number was given
/// later. A command that is given again has the ticket that it had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Ticket {
    /// The device.
    pub device: NodeId,
    /// The number of the command at this device, from 1.
    pub number: u64,
}

/// A command to a device, as the group decided it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Act {
    /// The number of the command at this device, from 1.
    pub number: u64,
    /// The claim that held the device.
    pub claim: Claim,
    /// The index of the command in the routine.
    pub step: u16,
    /// The state to bring the device into.
    pub value: State,
    /// The delivery that is required.
    pub delivery: Delivery,
    /// The leader that handles it: the leader that proposed it, or took it over. The host of each
    /// earlier leader may have the command, too.
    pub by: Member,
    /// The number of times that a leader took the command over.
    pub turn: u32,
    /// The time for which the device has been held since the last turn in which the command was given.
    /// The next leader continues from this value.
    pub waited: Span,
    /// The outcome; `None` while it is under way.
    pub outcome: Option<Outcome>,
    /// Set when no host can carry the command out any more. Until then the device gets no other command
    /// and no other claim.
    pub is_settled: bool,
}

/// The last turn in which a command is given, so that the hold ends however often leaders change.
const LAST_GIVEN: u32 = 2;

impl Act {
    /// Returns true if its outcome is not known yet.
    #[must_use]
    pub const fn is_under_way(&self) -> bool {
        self.outcome.is_none()
    }

    /// Returns true if the leader of this turn gives the command: the proposer, or one of the first
    /// leaders to take over a command that may be given again.
    pub(super) const fn is_given_in_turn(&self) -> bool {
        match self.delivery {
            Delivery::AtLeastOnce => self.turn <= LAST_GIVEN,
            Delivery::AtMostOnce => self.turn == 0,
        }
    }

    /// Returns true if the leader of the next turn gives the command.
    pub(super) const fn is_given_again(&self) -> bool {
        matches!(self.delivery, Delivery::AtLeastOnce) && self.turn < LAST_GIVEN
    }

    /// Starts the turn of another leader. The hold restarts if that leader gives the command again.
    pub(super) const fn take_over(&mut self, by: Member) {
        self.by = by;
        self.turn = self.turn.saturating_add(1);
        if self.is_under_way() && self.is_given_in_turn() {
            self.waited = Span::ZERO;
        }
    }

    /// Ends the command as unknown: its claim was released.
    pub(super) const fn abandon(&mut self) {
        if self.is_under_way() {
            self.outcome = Some(Outcome::Unknown);
        }
    }

    /// The outcome of a command of the same claim that would change nothing.
    pub(super) fn judge(&self, step: u16) -> Option<Decision> {
        match self.outcome {
            _ if step < self.step => Some(Decision::Nothing),
            Some(outcome) if step == self.step => Some(Decision::Acted {
                claim: self.claim,
                step,
                outcome,
            }),
            Some(_) if self.is_settled => None,
            Some(_) | None => Some(Decision::Waits),
        }
    }
}
