//! What the application may ask and is told, timers, and the errors.

use selvedge_core::NodeId;
use selvedge_groups as groups;
use selvedge_groups::{
    GroupId,
    store::{StoreCommand, StoreEvent, StoreReject},
};
use selvedge_routine::State;
use thiserror::Error;

use crate::devices::{self, Ticket};
use crate::leading::{LeaderEvent, LeaderTimer};
use crate::message::Parcel;
use crate::state::Held;
use crate::{ConfigError, Outcome, SiteError, TriggerId};

/// What the application, or the host, may ask.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// An epoch has begun, by the host's clock: groups change their members (section 3.4).
    Epoch(u64),
    /// A device answered a ping, or spoke unasked. For the leader of its cluster: others refuse it.
    Reported {
        /// The device.
        device: NodeId,
        /// The state that it reports; nothing where it answers without one. Then the last state that the
        /// group knows stands, which may differ from the last report of this host: leaders change.
        value: Option<State>,
    },
    /// What became of a command to a device.
    Acted {
        /// As in [`devices::Event::Act`].
        ticket: Ticket,
        /// What became of it.
        outcome: Outcome,
    },
    /// Have a routine run. It is asked again until [`Event::Triggered`] follows, once.
    Trigger {
        /// The routine's group.
        routine: GroupId,
        /// Its name: one that was used before starts nothing.
        id: TriggerId,
    },
    /// Ask a map.
    Map {
        /// Its group.
        map: GroupId,
        /// What.
        command: StoreCommand,
    },
}

/// What the application, or the host, is told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// This node leads a group now.
    Leads {
        /// Which.
        group: GroupId,
    },
    /// It does not any more.
    Deposed {
        /// Which.
        group: GroupId,
    },
    /// What the leader of a group has to say: pings, commands to devices, what routines do.
    Leader {
        /// Which group.
        group: GroupId,
        /// What.
        event: LeaderEvent,
    },
    /// A routine's group has decided about a trigger of this node.
    Triggered {
        /// The routine's group.
        routine: GroupId,
        /// The trigger.
        id: TriggerId,
    },
    /// What became of a question to a map, or of a watch.
    Map {
        /// The map's group.
        map: GroupId,
        /// What.
        event: StoreEvent,
    },
    /// Of the groups themselves.
    Groups(groups::Event<Held, Parcel>),
}

/// Tags of the timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// Of the groups.
    Groups(groups::Timer),
    /// Of the leader of a group.
    Leader(GroupId, LeaderTimer),
    /// Questions to a map are overdue.
    Map(GroupId),
    /// Questions for runs are overdue.
    Trigger,
}

/// Why an input was refused. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Reject {
    /// Settings cannot work.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The site cannot work.
    #[error(transparent)]
    Site(#[from] SiteError),
    /// The site's nodes cannot work.
    #[error(transparent)]
    Plan(#[from] groups::PlanError),
    /// The groups refuse it.
    #[error(transparent)]
    Groups(#[from] groups::Reject),
    /// What the host reports cannot be.
    #[error(transparent)]
    Devices(#[from] devices::Refused),
    /// This node has asked too much of maps.
    #[error(transparent)]
    Map(#[from] StoreReject),
    /// This node has asked for too many runs.
    #[error("more than {limit} runs would be asked for at once: wait for Triggered")]
    Triggers {
        /// How many it may.
        limit: usize,
    },
    /// It is for the leader of a group, and this node is not.
    #[error("this node does not lead group {0:?}: report to the node that does")]
    NotLeader(GroupId),
    /// The site has no such device.
    #[error("the site has no device {0:?}: add it, with its place")]
    NoDevice(NodeId),
    /// The group holds something else.
    #[error("group {0:?} holds no {1}: look at the site")]
    OtherKind(GroupId, &'static str),
}
