//! Commands of the application, events, timers, and the errors.

use alloc::boxed::Box;

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
use crate::message::Payload;
use crate::routines::WallClock;
use crate::state::GroupState;
use crate::{ConfigError, Outcome, Site, TriggerId};

/// The commands of the application or the host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// An epoch has begun, by the host's clock: groups change their members (section 3.4).
    SetEpoch(u64),
    /// The clock of the host shows this, now: for triggers of time. At the start, each time that the
    /// clock or its zone is set (before timers that are due expire), and soon after each local
    /// midnight, for the sun; the node counts on from it. Any node may become a member of a routine's
    /// group, so all need one.
    SetClock(WallClock),
    /// A device answered a ping, or spoke unasked. For the leader of its cluster: others refuse it.
    Reported {
        /// The device.
        device: NodeId,
        /// The state that it reports; `None` where it answers without one. Then the last state that
        /// the group knows stands, which may differ from the last report of this host: leaders
        /// change.
        value: Option<State>,
    },
    /// The outcome of a command to a device.
    Acted {
        /// The name of the command, as in [`devices::Event::Act`].
        ticket: Ticket,
        /// The outcome.
        outcome: Outcome,
    },
    /// Have a routine run. The node repeats the request until [`Event::Triggered`] follows, once.
    Trigger {
        /// The routine's group.
        routine: GroupId,
        /// Its name: a name that was used before starts nothing.
        id: TriggerId,
    },
    /// Have the building take the nodes, devices, places and routines of this site while it runs, in
    /// its next generation: [`Event::Site`] follows at each node when it is decided. At this node
    /// [`groups::Event::Proposed`] reports the outcome: another change may have been decided before.
    /// What it has in common with the present site stays as it is ([`Site::changed_to`]). A site of an
    /// earlier generation than the present one is refused: make the change from the present site.
    ChangeSite(Box<Site>),
    /// Have a group begin anew that lost its memory for good: see [`groups::Command::BeginAnew`]. A map does
    /// so by this command alone, a cluster or a routine also by itself.
    BeginAnew(GroupId),
    /// Ask a map.
    Map {
        /// The map's group.
        map: GroupId,
        /// The request to the map.
        command: StoreCommand,
    },
    /// Have the other nodes spare this one, or take its share again: see
    /// [`groups::Command::SetSpared`].
    SetSpared(bool),
}

/// Events for the application or the host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// This node leads a group now.
    Leading {
        /// The group.
        group: GroupId,
    },
    /// This node does not lead a group any more.
    Deposed {
        /// The group.
        group: GroupId,
    },
    /// An event of a group's leader: pings, commands to devices, the progress of routines.
    Leader {
        /// The group.
        group: GroupId,
        /// The event.
        event: LeaderEvent,
    },
    /// The site has another generation: this node has the devices and routines of it now.
    Site {
        /// The generation.
        generation: u32,
    },
    /// The site with which this node began differs from that of the others, and cannot become
    /// theirs, or theirs does not have this node: this node goes on with theirs.
    OtherSite {
        /// The generation of their site.
        present: u32,
        /// The generation of this node's.
        own: u32,
        /// The reason why it cannot follow on theirs.
        why: Box<ConfigError>,
    },
    /// A routine's group has decided about a trigger of this node.
    Triggered {
        /// The routine's group.
        routine: GroupId,
        /// The trigger.
        id: TriggerId,
    },
    /// The site does not have the routine any more, and its group may not have decided about a trigger
    /// of this node, which does not ask again.
    Untriggered {
        /// The routine's group.
        routine: GroupId,
        /// The trigger.
        id: TriggerId,
    },
    /// The outcome of a question to a map, or of a watch.
    Map {
        /// The map's group.
        map: GroupId,
        /// The outcome.
        event: StoreEvent,
    },
    /// An event of the groups themselves.
    Groups(groups::Event<GroupState, Payload>),
}

/// Tags of the timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// A timer of the groups.
    Groups(groups::Timer),
    /// A timer of a group's leader.
    Leader(GroupId, LeaderTimer),
    /// Questions to a map are overdue.
    Map(GroupId),
    /// Questions for runs are overdue.
    Trigger,
    /// The host's clock shows another occurrence of a trigger of time, or reports are overdue.
    Clock,
}

/// The reason why an input was refused. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Reject {
    /// Settings cannot work.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The site's nodes cannot work.
    #[error(transparent)]
    Plan(#[from] groups::ConfigError),
    /// The groups refuse it.
    #[error(transparent)]
    Groups(#[from] groups::Reject),
    /// The host's report cannot be true.
    #[error(transparent)]
    Devices(#[from] devices::Reject),
    /// This node has asked too much of maps.
    #[error(transparent)]
    Map(#[from] StoreReject),
    /// This node has asked for too many runs.
    #[error("more than {limit} runs would be asked for at once: wait for Triggered")]
    Triggers {
        /// The limit.
        limit: usize,
    },
    /// The input is for the leader of a group, and this node does not lead it.
    #[error("this node does not lead group {0:?}: report to the node that does")]
    NotLeader(GroupId),
    /// The site has no such device.
    #[error("the site has no device {0:?}: add it, with its place")]
    NoDevice(NodeId),
    /// The routine was removed.
    #[error("routine {0:?} was removed from the site: add it, which gives it another group")]
    NoRoutine(GroupId),
    /// The group holds a state of another kind.
    #[error("group {0:?} holds no {1}: look at the site")]
    OtherKind(GroupId, &'static str),
}
