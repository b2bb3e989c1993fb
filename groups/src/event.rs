//! Commands and events of the layer above, timers, and the errors.

use alloc::boxed::Box;
use alloc::vec::Vec;

use selvedge_core::settings::OutOfRange;
use selvedge_core::{Incarnation, Member, NodeId};
use selvedge_replica as replica;
use selvedge_replica::{Configuration, State};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::propose::SiteError;
use crate::registry::Bytes;
use crate::{GroupId, Unplaceable};

/// The way in which a node starts: for the first time in this generation of the plan, or after
/// former lives. A host that stores facts knows: it starts fresh where nothing is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Start {
    /// No former life of this node took part, or every fact that former lives stored is
    /// [folded](selvedge_core::durable::Durable::fold) before the first input: the node founds
    /// those of its groups of which nothing is stored.
    Fresh,
    /// A former life took part, and its memory is lost: the node knows of no group, and the groups
    /// that it was in name it again.
    Restarted,
}

/// A command to groups.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command<U, P> {
    /// An epoch has begun, by the host's clock: the groups that this node leads change over, each
    /// at a time of its own within [`Config::stagger`](crate::Config::stagger). The first command
    /// of a host.
    SetEpoch(u64),
    /// Proposes an update of a group in which this node is.
    Propose {
        /// The group.
        group: GroupId,
        /// The update.
        update: U,
    },
    /// Reads a group in which this node is: `Readable` follows.
    Read {
        /// The group.
        group: GroupId,
        /// The number that comes back: below `u64::MAX`.
        read: u64,
    },
    /// Asks the leader of a group, whichever node that is: [`Event::Asked`] there, if it arrives.
    Ask {
        /// The group.
        group: GroupId,
        /// The content.
        payload: P,
    },
    /// Answers a node, as the leader of a group: [`Event::Answered`] there, if it arrives.
    Answer {
        /// The node.
        to: Member,
        /// The group.
        group: GroupId,
        /// The content.
        payload: P,
    },
    /// Proposes the site of the next generation: [`Event::Proposed`] follows, and
    /// [`Event::Site`] at each node where it is decided.
    ChangeSite {
        /// Its encoding ([`Begins::encode`](crate::Begins::encode)).
        site: Vec<u8>,
        /// Its generation, above the present one.
        generation: u32,
    },
    /// Has a group begin anew with its first state, where more of its members than may fail have
    /// lost their memory, or are away for good. What it held is lost, also if members come back.
    ///
    /// Its former members must have stopped, or be cut off from all devices: those that can reach a
    /// quorum of each other go on until they learn of it.
    ///
    /// The group begins after the latest beginning that this node knows. A node that knows none asks for the present
    /// one first, until an epoch begins or others send news of it; then give the command again. So does a node
    /// that reports [`Event::BegunAnew`] while the group is lost still. Give it at one node: another one without
    /// news of the beginning that follows has the group begin once more.
    BeginAnew(GroupId),
    /// Asks the other nodes to spare this one, which runs low on power or memory (true), or takes its
    /// share again (false). For this life: a later one begins with its share. From the next epoch on a
    /// spared node is chosen as one of [`Weight`](crate::Weight) 0: it is a member where too few others
    /// are here, and leads where no other member can. By itself the command changes no group before.
    SetSpared(bool),
}

/// An event of groups.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event<S: State, P> {
    /// A fact that the host stores before it carries out any later effect.
    Fact(Fact<S>),
    /// An event of a replica, other than a fact.
    Replica {
        /// The group.
        group: GroupId,
        /// The content.
        event: replica::Event<S>,
    },
    /// A node asks the leader of a group, which this node is as far as it knows.
    Asked {
        /// The group.
        group: GroupId,
        /// The other node.
        from: Member,
        /// The content.
        payload: P,
    },
    /// The leader of a group answers.
    Answered {
        /// The group.
        group: GroupId,
        /// The other node.
        from: Member,
        /// The content.
        payload: P,
    },
    /// The site has another generation now: it was decided, and this node has taken it.
    Site {
        /// Its generation.
        generation: u32,
    },
    /// The outcome of a [`Command::ChangeSite`].
    Proposed {
        /// The number of the proposal ([`Groups::proposed`](crate::Groups::proposed)).
        number: u64,
        /// The generation of the registry's site.
        generation: u32,
        /// True if it is the proposed one. Else another one was decided, before it or since.
        is_decided: bool,
    },
    /// No quorum of a group is here as an epoch begins, as far as this node knows: a member of it,
    /// or a node that remembers its place. A group whose memory is certainly lost begins
    /// [anew by itself](crate#groups-that-begin-anew), if its state allows that; else, if it stays so,
    /// [`Command::BeginAnew`] has it begin again, with its first state.
    QuorumLost(GroupId),
    /// A group has begun anew with its first state, and its former state is lost. Each life reports a beginning
    /// once, when it learns of it: late, where messages were lost.
    BegunAnew(GroupId),
    /// This node has entered a group.
    Entered(GroupId),
    /// This node is no longer in a group, and no longer holds its state.
    Left(GroupId),
    /// The leader, this node, finds no members for a group: it goes on with its present ones.
    Unplaced {
        /// The group.
        group: GroupId,
        /// The reason.
        why: Unplaceable,
    },
}

/// A change of the memory that must survive a crash, at a host that stores.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(bound = "")]
pub enum Fact<S: State> {
    /// The node begins to store in this life: the first fact of all, but for its site. Each later life that folds all
    /// facts votes under the names that groups gave it from then on.
    Began {
        /// The digest of the plan.
        plan: u32,
        /// The life.
        since: Incarnation,
    },
    /// The site, where the state has a registry: in place of all facts of it before.
    Site {
        /// The digest of the plan of generation 0.
        plan: u32,
        /// Its encoding.
        site: Bytes,
    },
    /// The node's whole memory of a group, in place of all facts of it before: a part begins with
    /// it, and [`Groups::stored`](crate::Groups::stored) has one of each group.
    Base {
        /// The group.
        group: GroupId,
        /// The digest of the plan.
        plan: u32,
        /// The content.
        stored: Box<replica::Stored<S>>,
    },
    /// A fact of a group's replica.
    Replica {
        /// The group.
        group: GroupId,
        /// The content.
        fact: replica::Fact<S>,
    },
    /// The node is no longer in the group: this is the last configuration that it knows. The facts
    /// of the group before have no use any more.
    Left {
        /// The group.
        group: GroupId,
        /// The digest of the plan.
        plan: u32,
        /// The configuration.
        configuration: Box<Configuration>,
    },
    /// The node takes part in no configuration of the group below this number, in place of all facts
    /// of the group before.
    Ended {
        /// The group.
        group: GroupId,
        /// The digest of the plan.
        plan: u32,
        /// The number.
        number: u64,
    },
}

impl<S: State> Fact<S> {
    /// The group, if the fact belongs to one. Facts of different groups are independent.
    #[must_use]
    pub const fn group(&self) -> Option<GroupId> {
        match self {
            Self::Began { .. } => None,
            Self::Site { .. } => Some(GroupId::SITE),
            Self::Base { group, .. }
            | Self::Replica { group, .. }
            | Self::Left { group, .. }
            | Self::Ended { group, .. } => Some(*group),
        }
    }

    /// Returns true if it stands for all earlier facts of its group, or for all that belong to no
    /// group: a host may drop those.
    #[must_use]
    pub const fn is_base(&self) -> bool {
        matches!(
            self,
            Self::Began { .. }
                | Self::Site { .. }
                | Self::Base { .. }
                | Self::Left { .. }
                | Self::Ended { .. }
        )
    }
}

/// The reason for which a stored fact is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Damage {
    /// The replica's reason.
    #[error("group {0:?}: {1}")]
    Replica(GroupId, replica::Reject),
    /// The bytes of the site are damaged.
    #[error("the stored site is damaged: begin without these facts")]
    Site,
    /// Facts that came before it were not folded.
    #[error("facts of group {0:?} before this one are missing: fold all in their order")]
    Missing(GroupId),
    /// It was stored under another plan, or in another generation of it.
    #[error(
        "it was stored under a plan with the digest {found:08x}, and this one has {own:08x}: begin without it"
    )]
    Plan {
        /// The digest under which it was stored.
        found: u32,
        /// This node's digest.
        own: u32,
    },
}

/// Tags of the timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// A timer of a group's replica.
    Replica(GroupId, replica::Timer),
    /// A group in which this node is has no leader.
    Lead(GroupId),
    /// It is time to choose members for a group that this node leads.
    Change(GroupId),
    /// A part of a site, or of a proposed one, is overdue.
    Site,
    /// The registry, which this node leads, has groups to begin.
    Registry,
    /// Answers about groups that may have ended are overdue, at the registry's leader.
    Ending,
}

/// The reason for which an input was refused. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Reject {
    /// A setting cannot work.
    #[error("the settings were refused: {0}")]
    Config(#[from] OutOfRange),
    /// A first configuration cannot work.
    #[error("group {0:?} cannot begin: {1}")]
    Founding(GroupId, replica::Reject),
    /// The node founds more groups than [`Config::groups`](crate::Config::groups) allows.
    #[error(
        "this node founds {needed} groups, and `groups` is {limit}: set it to {needed} or more"
    )]
    Room {
        /// The number that it founds.
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
    /// The site is not proposed.
    #[error(transparent)]
    Site(#[from] SiteError),
    /// A peer sent a message that a correct peer never sends; the host counts it.
    #[error("a peer misbehaves: {0}")]
    Misbehaviour(#[from] Misbehaviour),
}

/// A message that a correct peer never sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Misbehaviour {
    /// The peer has this node's id.
    #[error("it uses the id of this node, {0}: give each node an id of its own")]
    OwnId(Member),
    /// The peer has another plan.
    #[error(
        "its plan has the digest {found:08x}, and this node has {own:08x}: give all nodes one plan"
    )]
    Plan {
        /// The peer's digest.
        found: u32,
        /// This node's digest.
        own: u32,
    },
    /// The message has no items.
    #[error("its message is empty")]
    Empty,
    /// The plan does not name the peer.
    #[error("node {0} is not in the plan: add it, or give it another id")]
    Unplanned(Member),
}
