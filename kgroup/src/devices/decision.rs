//! Outcomes of updates.

use selvedge_core::NodeId;
use selvedge_groups::GroupId;

use crate::{Answer, Claim, Outcome};

/// The outcome of an update of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Verdict {
    /// The device.
    pub device: NodeId,
    /// The decision.
    pub decision: Decision,
    /// The claim that waited, to which the lock passed on by this update.
    pub granted: Option<Claim>,
    /// The version of the status, where this update changed it.
    pub version: Option<u64>,
}

/// A decision about an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Decision {
    /// The cluster has no such device.
    NoDevice,
    /// The claim holds the device.
    Granted(Claim),
    /// The claim waits.
    Queued(Claim),
    /// The device is not free, and the claim does not wait.
    Busy(Claim),
    /// The claim would wait, and the queue is full; or its routine is one too many.
    Full(Claim),
    /// The claim does not hold the device: it was released, or is earlier than another one of its
    /// routine; or it asks for a command without holding the device.
    Over(Claim),
    /// The claim, and all earlier ones of its routine, are over.
    Released(Claim),
    /// The device gets a command: see [`Devices::act`](super::Devices::act).
    Gives {
        /// The number of the command at the device.
        number: u64,
    },
    /// The leader that asked handles the command that is under way.
    TakenOver {
        /// The number of the command at the device.
        number: u64,
    },
    /// The device is still at this command, or at one before it.
    Waits,
    /// The command is settled; its outcome was decided before.
    Settled {
        /// The number of the command at the device.
        number: u64,
    },
    /// The time of the hold of a command is longer.
    Waited {
        /// The number of the command at the device.
        number: u64,
    },
    /// The outcome of a command.
    Acted {
        /// The claim.
        claim: Claim,
        /// The index of the command in the routine.
        step: u16,
        /// The outcome.
        outcome: Outcome,
    },
    /// The device was observed, and its status has changed.
    Observed,
    /// The routine watches the device.
    Watched(GroupId),
    /// The routine would watch the device, but too many routines do.
    Unwatched(GroupId),
    /// The device is new in the cluster.
    Entered,
    /// The device left the cluster.
    Exited,
    /// The routine holds, awaits and watches the device no more.
    Forgotten(GroupId),
    /// The cluster has the routine's answer about its claim.
    Reclaimed(GroupId),
    /// Claims can get the device.
    Opened,
    /// Nothing changed: the update follows an older generation of the site than the state does.
    Outdated,
    /// Nothing changed: the update is late, or repeats the known state.
    Nothing,
    /// The time without a report of a device that sleeps is another one.
    Silent,
}

impl Decision {
    /// Returns true if the group follows a later site.
    pub(crate) const fn is_edit(self) -> bool {
        matches!(self, Self::Entered | Self::Exited | Self::Forgotten(_))
    }
}

impl Verdict {
    pub(super) const fn new(device: NodeId, decision: Decision) -> Self {
        Self {
            device,
            decision,
            granted: None,
            version: None,
        }
    }

    /// The answer to the routine that asked for it, if it asked. A status is answered from the
    /// state.
    #[must_use]
    pub const fn answer(&self) -> Option<(GroupId, Answer)> {
        let device = self.device;
        let (claim, answer) = match self.decision {
            Decision::Granted(claim) => (claim, Answer::Granted { device, claim }),
            Decision::Queued(claim) => (claim, Answer::Queued { device, claim }),
            Decision::Busy(claim) | Decision::Full(claim) => {
                (claim, Answer::Busy { device, claim })
            }
            Decision::Over(claim) => (claim, Answer::Over { device, claim }),
            Decision::Released(claim) => (claim, Answer::Released { device, claim }),
            Decision::Acted {
                claim,
                step,
                outcome,
            } => (
                claim,
                Answer::Acted {
                    device,
                    claim,
                    step,
                    outcome,
                },
            ),
            Decision::NoDevice
            | Decision::Gives { .. }
            | Decision::TakenOver { .. }
            | Decision::Waits
            | Decision::Settled { .. }
            | Decision::Waited { .. }
            | Decision::Observed
            | Decision::Watched(_)
            | Decision::Unwatched(_)
            | Decision::Entered
            | Decision::Exited
            | Decision::Forgotten(_)
            | Decision::Reclaimed(_)
            | Decision::Opened
            | Decision::Outdated
            | Decision::Nothing
            | Decision::Silent => return None,
        };
        Some((claim.routine, answer))
    }
}
