//! Events of a leader for its host, its timers, and the reasons why it refuses.

use selvedge_core::NodeId;
use selvedge_groups::GroupId;
use selvedge_routine::State;
use thiserror::Error;

use super::act::Ticket;
use crate::Status;

/// An event for the host of a cluster's leader.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// Ping a device. The host reports the answer, and each state that the device sends unasked. Never for a
    /// device that [sleeps](super#devices-that-sleep).
    Ping {
        /// The device.
        device: NodeId,
    },
    /// Bring a device into a state, and report the outcome. The host carries no command out after
    /// [`Config::act_timeout`](super::Config::act_timeout). For a device that
    /// [sleeps](super#devices-that-sleep), as soon as it is decided behind a report.
    Act {
        /// The name of the command.
        ticket: Ticket,
        /// The state.
        value: State,
    },
    /// The status of a device in the group's state has changed.
    Status {
        /// The device.
        device: NodeId,
        /// The known status.
        status: Status,
    },
    /// A routine finds no room: too many routines ask for the device, wait for it, or watch it. See
    /// [`Limits`](super::Limits).
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
    /// Ping the devices.
    Ping,
    /// Answers to pings are overdue.
    Unanswered,
    /// Repeat messages and proposals that had no effect.
    Resend,
    /// A device has not reported the outcome of a command.
    Act(NodeId),
    /// A device that sleeps has not reported.
    Wake(NodeId),
}

/// The reason why a report was refused. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Reject {
    /// The cluster has no such device.
    #[error(
        "device {0:?} is not in this cluster: report to the leader of the device's own cluster"
    )]
    NoDevice(NodeId),
    /// A reported state is longer than [`Limits::word`](super::Limits::word).
    #[error("a state of {found} bytes is reported: shorten it to {limit}, or raise Limits::word")]
    LongWord {
        /// The length, in bytes.
        found: usize,
        /// The limit, in bytes.
        limit: u16,
    },
}
