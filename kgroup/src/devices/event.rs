//! What a leader tells its host, what it is armed for, and why it refuses.

use selvedge_core::NodeId;
use selvedge_groups::GroupId;
use selvedge_routine::State;
use thiserror::Error;

use super::act::Ticket;
use crate::Status;

/// What the host of a cluster's leader is told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// Ping a device. What it answers is reported, as is what it says unasked.
    Ping {
        /// The device.
        device: NodeId,
    },
    /// Bring a device into a state, and say what became of it. The host carries no command out after
    /// [`Config::act_timeout`](super::Config::act_timeout).
    Act {
        /// Names the command.
        ticket: Ticket,
        /// The state.
        value: State,
    },
    /// The group knows this of a device now: it changed.
    Status {
        /// The device.
        device: NodeId,
        /// What is known of it.
        status: Status,
    },
    /// A routine finds no room: it is one of too many that ask for the device, wait for it, or watch
    /// it. See [`Limits`](super::Limits).
    Full {
        /// The device.
        device: NodeId,
        /// The routine.
        routine: GroupId,
    },
}

/// Tags of a leader's timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// Devices are pinged.
    Ping,
    /// Answers to pings are overdue.
    Unanswered,
    /// What was sent, or proposed, and led to nothing is sent again.
    Resend,
    /// A device does not say what became of a command.
    Act(NodeId),
}

/// Why a report was refused. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Refused {
    /// The cluster has no such device.
    #[error("device {0:?} is not in this cluster: report to the leader of its own")]
    NoDevice(NodeId),
    /// A word is longer than [`Limits::word`](super::Limits::word).
    #[error("a word of {found} bytes is reported: shorten it to {limit}, or raise Limits::word")]
    LongWord {
        /// How long it is, in bytes.
        found: usize,
        /// How long it may be, in bytes.
        limit: u16,
    },
}
