//! What the layer above may ask and is told, timers, and the errors.

use alloc::boxed::Box;

use selvedge_core::settings::OutOfRange;
use selvedge_core::{Incarnation, Member, NodeId};
use selvedge_replica as replica;
use selvedge_replica::{Configuration, State};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{GroupId, Unplaceable};

/// Whether a node takes part for the first time in this generation of the plan. The host knows: it
/// stores a mark when it says [`First`](Self::First), or stores all facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Begin {
    /// No former life of this node took part, or all that former lives stored is
    /// [folded](selvedge_core::durable::Durable::fold) before the first input: it founds those of its
    /// groups of which nothing is stored.
    First,
    /// A former life took part, and its memory is lost: the node knows of no group, and is named anew
    /// by those that it was in.
    Again,
}

/// What may be asked of groups.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command<U, P> {
    /// An epoch has begun, by the host's clock: the groups that this node leads change over, each at a
    /// time of its own within [`Config::stagger`](crate::Config::stagger). The first thing that a host
    /// says.
    Epoch(u64),
    /// Propose an update of a group in which this node is.
    Propose {
        /// The group.
        group: GroupId,
        /// The update.
        update: U,
    },
    /// Read a group in which this node is: `Readable` follows.
    Read {
        /// The group.
        group: GroupId,
        /// The number that comes back: below `u64::MAX`.
        read: u64,
    },
    /// Ask the leader of a group, whichever node that is: [`Event::Asked`] there, if it arrives.
    Ask {
        /// The group.
        group: GroupId,
        /// What.
        parcel: P,
    },
    /// Answer a node, as the leader of a group: [`Event::Told`] there, if it arrives.
    Tell {
        /// The node.
        to: Member,
        /// The group.
        group: GroupId,
        /// What.
        parcel: P,
    },
}

/// What groups tell.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event<S: State, P> {
    /// To be stored before any later effect is carried out.
    Fact(Fact<S>),
    /// What a replica tells, but its facts.
    Replica {
        /// The group.
        group: GroupId,
        /// What.
        event: replica::Event<S>,
    },
    /// A node asks the leader of a group, which this node is as far as it knows.
    Asked {
        /// The group.
        group: GroupId,
        /// Which node.
        from: Member,
        /// What.
        parcel: P,
    },
    /// The leader of a group answers.
    Told {
        /// The group.
        group: GroupId,
        /// Which node.
        from: Member,
        /// What.
        parcel: P,
    },
    /// This node is in a group that it was not in.
    Entered(GroupId),
    /// This node is in a group no more, and holds its state no more.
    Left(GroupId),
    /// The leader, this node, finds no members for a group: it goes on with those that it has.
    Unplaceable {
        /// The group.
        group: GroupId,
        /// Why.
        why: Unplaceable,
    },
}

/// What must survive a crash, at a host that stores.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(bound = "")]
pub enum Fact<S: State> {
    /// The node begins to store in this life: the first fact of all. Each later life that folds all
    /// facts answers to the names that groups gave it from then on.
    Began {
        /// The digest of the plan.
        plan: u32,
        /// The life.
        since: Incarnation,
    },
    /// All that the node must not forget of a group, in place of what was stored of it before: a part
    /// begins with it, and [`Groups::stored`](crate::Groups::stored) has one of each group.
    Base {
        /// The group.
        group: GroupId,
        /// The digest of the plan.
        plan: u32,
        /// What.
        stored: Box<replica::Stored<S>>,
    },
    /// A group's replica.
    Replica {
        /// The group.
        group: GroupId,
        /// What.
        fact: replica::Fact<S>,
    },
    /// The node is in the group no more: this is the last configuration that it knows. What was stored
    /// of the group before is over.
    Left {
        /// The group.
        group: GroupId,
        /// The digest of the plan.
        plan: u32,
        /// The configuration.
        configuration: Box<Configuration>,
    },
}

impl<S: State> Fact<S> {
    /// The group, if it is of one. What is stored of one has nothing to do with the others.
    #[must_use]
    pub const fn group(&self) -> Option<GroupId> {
        match self {
            Self::Began { .. } => None,
            Self::Base { group, .. } | Self::Replica { group, .. } | Self::Left { group, .. } => {
                Some(*group)
            }
        }
    }

    /// Whether it stands for all facts of its group that came before it, or for all that are of none: a
    /// host may drop those.
    #[must_use]
    pub const fn is_base(&self) -> bool {
        matches!(
            self,
            Self::Began { .. } | Self::Base { .. } | Self::Left { .. }
        )
    }
}

/// Why what was stored is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Damage {
    /// What a replica says.
    #[error("group {0:?}: {1}")]
    Replica(GroupId, replica::Reject),
    /// Facts that came before it were not folded.
    #[error("facts of group {0:?} before this one are missing: fold all in their order")]
    Missing(GroupId),
    /// It was stored under another plan, or in another generation of it.
    #[error(
        "it was stored under a plan with the digest {found:08x}, and this one has {own:08x}: begin without it"
    )]
    Plan {
        /// When it was stored.
        found: u32,
        /// This node's.
        own: u32,
    },
}

/// Tags of the timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// Of a group's replica.
    Replica(GroupId, replica::Timer),
    /// A group in which this node is has no leader.
    Lead(GroupId),
    /// It is time to choose members for a group that this node leads.
    Change(GroupId),
}

/// Why an input was refused. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Reject {
    /// A setting cannot work.
    #[error("the settings were refused: {0}")]
    Config(#[from] OutOfRange),
    /// A first configuration cannot work.
    #[error("group {0:?} cannot begin: {1}")]
    Founding(GroupId, replica::Reject),
    /// The node founds more groups than [`Config::groups`](crate::Config::groups) lets it be in.
    #[error(
        "this node founds {needed} groups, and `groups` is {limit}: set it to {needed} or more"
    )]
    Room {
        /// How many it founds.
        needed: usize,
        /// The setting.
        limit: u16,
    },
    /// The plan does not name this node.
    #[error("node {0} is not in the plan: add it, or give it another id")]
    Unplanned(NodeId),
    /// This node is not in the group.
    #[error("this node is not in group {0:?}: ask its leader")]
    NoMember(GroupId),
    /// The replica refuses it.
    #[error(transparent)]
    Replica(#[from] replica::Reject),
    /// A peer sent what a correct peer never sends; the host counts it.
    #[error("a peer misbehaves: {0}")]
    Misbehaviour(#[from] Misbehaviour),
}

/// What a correct peer never sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Misbehaviour {
    /// The peer has this node's id.
    #[error("it uses the id of this node, {0}: give each node an id of its own")]
    OwnId(Member),
    /// The peer has another plan.
    #[error("its plan has the digest {found:08x}, ours {own:08x}: give all nodes one plan")]
    Plan {
        /// The peer's.
        found: u32,
        /// This node's.
        own: u32,
    },
    /// The message says nothing.
    #[error("its message is empty")]
    Empty,
    /// The plan does not name the peer.
    #[error("node {0} is not in the plan: add it, or give it another id")]
    Unplanned(Member),
}
