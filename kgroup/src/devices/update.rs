//! Changes of a cluster's state.

use selvedge_core::{Member, NodeId, Span};
use selvedge_groups::GroupId;
use selvedge_routine::State;
use serde::{Deserialize, Serialize};

use crate::{Claim, Delivery, Outcome, Patience};

/// A change of a cluster's state. Each update is total, and changes nothing a second time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Update {
    /// See [`Request::Lock`](crate::Request::Lock).
    Lock {
        /// The device.
        device: NodeId,
        /// The claim that asks.
        claim: Claim,
        /// The behaviour if another claim holds the device.
        patience: Patience,
        /// The generation of the site from which it asks.
        generation: u32,
    },
    /// See [`Request::Release`](crate::Request::Release).
    Release {
        /// The device.
        device: NodeId,
        /// The last claim that is released.
        claim: Claim,
        /// The generation of the site from which it asks.
        generation: u32,
    },
    /// See [`Request::Act`](crate::Request::Act). Refused unless the claim holds the device.
    Act {
        /// The device.
        device: NodeId,
        /// The claim that holds it.
        claim: Claim,
        /// The index of the command in the routine. A claim's commands are given in order.
        step: u16,
        /// The state to bring it into.
        value: State,
        /// The delivery that is required.
        delivery: Delivery,
        /// The leader that proposes it.
        by: Member,
    },
    /// The outcome of a command. The first one counts, and only in the present turn. In turn 0 it settles
    /// the command as well, since no other host had it.
    Acted {
        /// The device.
        device: NodeId,
        /// The number of the command at the device: [`Act::number`](super::Act::number).
        number: u64,
        /// The outcome.
        outcome: Outcome,
        /// The turn: [`Act::turn`](super::Act::turn).
        turn: u32,
    },
    /// A device was pinged, or reported. Refused if the status has another version by now.
    Observed {
        /// The device.
        device: NodeId,
        /// The version of the status before it.
        after: u64,
        /// True if the device answers.
        is_up: bool,
        /// The state that it reported; `None` where the last value stands.
        value: Option<State>,
    },
    /// See [`Request::Watch`](crate::Request::Watch).
    Watch {
        /// The device.
        device: NodeId,
        /// The routine.
        routine: GroupId,
        /// The generation of the site from which it asks.
        generation: u32,
    },
    /// Another leader handles a command that is under way. From then on its reports count.
    TakeOver {
        /// The device.
        device: NodeId,
        /// The number of the command of that device.
        number: u64,
        /// The turn that it ends.
        after: u32,
        /// The leader that proposes it.
        by: Member,
    },
    /// Settles a command after its hold: no host can carry it out any more. Its outcome is unknown if
    /// no other outcome was decided.
    Settled {
        /// The device.
        device: NodeId,
        /// The number of the command of that device.
        number: u64,
        /// The turn.
        turn: u32,
    },
    /// The time for which a device was held for a command.
    Waited {
        /// The device.
        device: NodeId,
        /// The number of the command of that device.
        number: u64,
        /// The turn.
        turn: u32,
        /// The time, including the leaders before, since the last turn in which the command was given.
        waited: Span,
    },
    /// The site has this device in the cluster.
    Enter {
        /// The generation of the site.
        generation: u32,
        /// The device.
        device: NodeId,
    },
    /// The site does not have this device in the cluster.
    Exit {
        /// The generation of the site.
        generation: u32,
        /// The device.
        device: NodeId,
    },
    /// The site does not have this routine: the device is released for good, and not watched.
    Forget {
        /// The generation of the site.
        generation: u32,
        /// The device.
        device: NodeId,
        /// The routine.
        routine: GroupId,
    },
    /// A routine's answer to a cluster that has begun anew.
    Reclaim {
        /// The device.
        device: NodeId,
        /// Distinguishes the times at which the device entered the cluster.
        since: u64,
        /// The latest claim of the routine.
        claim: Claim,
        /// The number of steps that are over, or may not be given again, if the claim holds the device. `None` if the
        /// claim is over.
        given: Option<u16>,
    },
    /// All routines of the site have answered.
    Open {
        /// The generation of the site.
        generation: u32,
        /// The device.
        device: NodeId,
    },
    /// The time for which a device that sleeps has not reported. Refused if another time was decided by now.
    Silent {
        /// The device.
        device: NodeId,
        /// The time that was decided before.
        after: Span,
        /// The time, including the leaders before.
        silent: Span,
    },
}

impl Update {
    /// The device.
    #[must_use]
    pub const fn device(&self) -> NodeId {
        match *self {
            Self::Lock { device, .. }
            | Self::Release { device, .. }
            | Self::Act { device, .. }
            | Self::Acted { device, .. }
            | Self::Observed { device, .. }
            | Self::Watch { device, .. }
            | Self::TakeOver { device, .. }
            | Self::Settled { device, .. }
            | Self::Waited { device, .. }
            | Self::Enter { device, .. }
            | Self::Exit { device, .. }
            | Self::Forget { device, .. }
            | Self::Reclaim { device, .. }
            | Self::Open { device, .. }
            | Self::Silent { device, .. } => device,
        }
    }

    /// The generation of the site that a change of the site follows.
    pub(super) const fn edits(&self) -> Option<u32> {
        match *self {
            Self::Enter { generation, .. }
            | Self::Exit { generation, .. }
            | Self::Forget { generation, .. }
            | Self::Open { generation, .. } => Some(generation),
            Self::Lock { .. }
            | Self::Release { .. }
            | Self::Act { .. }
            | Self::Acted { .. }
            | Self::Observed { .. }
            | Self::Watch { .. }
            | Self::TakeOver { .. }
            | Self::Settled { .. }
            | Self::Waited { .. }
            | Self::Reclaim { .. }
            | Self::Silent { .. } => None,
        }
    }
}
