//! What changes a cluster.

use selvedge_core::{Member, NodeId, Span};
use selvedge_routine::State;
use serde::{Deserialize, Serialize};

use crate::{Claim, Delivery, GroupId, Outcome, Patience};

/// What changes a cluster. Each update is total, and changes nothing a second time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Update {
    /// See [`Request::Lock`](crate::Request::Lock).
    Lock {
        /// The device.
        device: NodeId,
        /// For which claim.
        claim: Claim,
        /// Whether it waits.
        patience: Patience,
    },
    /// See [`Request::Release`](crate::Request::Release).
    Release {
        /// The device.
        device: NodeId,
        /// Up to which claim.
        claim: Claim,
    },
    /// See [`Request::Act`](crate::Request::Act). Refused unless the claim holds the device.
    Act {
        /// The device.
        device: NodeId,
        /// The claim that holds it.
        claim: Claim,
        /// Which command of the routine. A claim's commands are given in order.
        step: u16,
        /// The state to bring it into.
        value: State,
        /// How often.
        delivery: Delivery,
        /// The leader that proposes it.
        by: Member,
    },
    /// What became of a command. The first one of a command counts, and only what the leader says that
    /// sees to it. Where no other leader saw to it before, no host is at it any more.
    Acted {
        /// The device.
        device: NodeId,
        /// Which of its commands: [`Act::number`](super::Act::number).
        number: u64,
        /// What became of it.
        outcome: Outcome,
        /// In which turn: [`Act::turn`](super::Act::turn).
        turn: u32,
    },
    /// A device was pinged, or reported. Refused if the status has another version by now.
    Observed {
        /// The device.
        device: NodeId,
        /// The version of the status before it.
        after: u64,
        /// Whether it answers.
        is_up: bool,
        /// What it reported; nothing where the last value stands.
        value: Option<State>,
    },
    /// See [`Request::Watch`](crate::Request::Watch).
    Watch {
        /// The device.
        device: NodeId,
        /// The routine.
        routine: GroupId,
    },
    /// Another leader sees to a command that is under way. From then on its word counts.
    TakeOver {
        /// The device.
        device: NodeId,
        /// Which of its commands.
        number: u64,
        /// The turn that is over by it.
        after: u32,
        /// The leader that proposes it.
        by: Member,
    },
    /// The leader that sees to a command has held the device for so long that other hosts can be
    /// at it no more: it is settled, and has ended unknown if nothing else is known.
    Settled {
        /// The device.
        device: NodeId,
        /// Which of its commands.
        number: u64,
        /// In which turn.
        turn: u32,
    },
    /// The leader that sees to a command has held the device for this long. The next one goes on from
    /// there.
    Waited {
        /// The device.
        device: NodeId,
        /// Which of its commands.
        number: u64,
        /// In which turn.
        turn: u32,
        /// How long, with the leaders before since it was last to be given.
        waited: Span,
    },
}

impl Update {
    /// Which device it is about.
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
            | Self::Waited { device, .. } => device,
        }
    }
}
