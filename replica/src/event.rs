//! What the application is told and may ask, timers, and the errors.

use alloc::vec::Vec;

use selvedge_core::roster::OwnEnd;
use selvedge_core::settings::OutOfRange;
use selvedge_core::{Member, NodeId, Span};
use thiserror::Error;

use crate::{Ballot, Configuration, ConfigurationError, Damage, Fact, Proposal, State, Version};

/// What the application may ask.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command<U> {
    /// Propose an update. [`Event::Applied`] follows with this member's next number, once.
    Propose(U),
    /// Propose updates, in this order; they travel together, as many as fit into a frame. As
    /// [`Propose`](Self::Propose) for each of them, and all are refused if one is.
    ProposeAll(Vec<U>),
    /// Propose for a proposer that is no member, and that numbers its proposals itself: from 1 in
    /// each of its lives, one after another. The same proposal may be relayed again, also by another
    /// member; it is applied once.
    Relay(Proposal<U>),
    /// Read. [`Event::Readable`] follows with this number: then [`Replica::state`] holds all that
    /// was applied anywhere before this command.
    ///
    /// [`Replica::state`]: crate::Replica::state
    Read(u64),
    /// Stand for leader, now. A member whose leader is there refuses the others: ask the leader to
    /// [hand over](Self::HandOver).
    Stand,
    /// Asks this leader to have another member lead.
    HandOver(NodeId),
    /// Asks this leader to have the group go over to these members. The configuration's number is
    /// set by the leader.
    Configure(Configuration),
}

/// What the application is told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event<S: State> {
    /// To be stored before any later effect is carried out.
    Fact(Fact<S>),
    /// An update is committed, and is applied to this member's state.
    Applied {
        /// By which version.
        version: Version,
        /// The proposer.
        by: Member,
        /// The proposer's number.
        number: u64,
        /// What it came to.
        outcome: S::Outcome,
    },
    /// A proposal of this member is applied, but what it came to is not known here: this member
    /// received the state whole, or it was applied before it was proposed here.
    Overtaken {
        /// The proposer.
        by: Member,
        /// The proposer's number.
        number: u64,
    },
    /// The group has forgotten the proposer of a proposal of this member: it may have been applied
    /// earlier, or not. It is not applied later.
    Forgotten {
        /// The proposer.
        by: Member,
        /// The proposer's number.
        number: u64,
    },
    /// This node is no member any more, or frames of the present configuration have no room for the
    /// proposal or one before it: what becomes of it is not followed. It may be applied or not.
    Abandoned {
        /// The proposer.
        by: Member,
        /// The proposer's number.
        number: u64,
    },
    /// This node is no member any more: it cannot answer this read.
    Unreadable(u64),
    /// This member received the state whole.
    Installed(Version),
    /// The state holds all that was applied anywhere before the command.
    Readable {
        /// The command's number.
        read: u64,
        /// The state's version is at least this.
        version: Version,
    },
    /// A member leads, perhaps this one itself.
    Leads {
        /// Which node.
        leader: NodeId,
        /// By which ballot.
        ballot: Ballot,
    },
    /// This member led, and does so no longer.
    Deposed(Ballot),
    /// From this version on, another configuration counts.
    Configured {
        /// Its number.
        number: u64,
        /// The version that decided it; a later one, that of the state, where this member received
        /// the state whole.
        version: Version,
    },
    /// What was asked of this member has not been done: for so long no quorum, or no leader, has
    /// answered. It is tried on.
    Unavailable {
        /// How long it has waited.
        waited: Span,
    },
    /// The group answers again.
    Available,
}

/// Tags of the timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// Leader: acknowledgements are overdue.
    Resend,
    /// Leader: what is committed is to be told.
    Commit,
    /// Promises are overdue, or it is this member's turn to stand.
    Stand,
    /// This member's own proposals and reads are overdue.
    Pending,
    /// The leader that this member asked whether it is there is overdue.
    Watch,
    /// A page of the state is overdue.
    Fetch,
    /// Leader: the lease is over.
    Lease,
    /// Follower: the lease that it acknowledged is over.
    Tied,
    /// The members of the next configuration are to be told of it.
    Invite,
}

/// Why an input was refused. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Reject {
    /// A setting cannot work.
    #[error("the settings were refused: {0}")]
    Config(#[from] OutOfRange),
    /// A configuration cannot work.
    #[error("the configuration was refused: {0}")]
    Configuration(#[from] ConfigurationError),
    /// What was stored cannot be used.
    #[error("what was stored cannot be used: {0}")]
    Damaged(#[from] Damage),
    /// This member has a limit of own proposals and reads.
    #[error(
        "more than {limit} proposals and reads would wait: wait for some to end, or raise pending"
    )]
    Full {
        /// The limit.
        limit: u32,
    },
    /// The update, or the configuration, does not fit into a frame.
    #[error("it takes {len} bytes, a frame has room for {room}: propose a smaller one")]
    TooLong {
        /// What it takes.
        len: usize,
        /// What there is.
        room: usize,
    },
    /// Only a leader can do that.
    #[error("this member does not lead: ask {leader:?}")]
    NotLeader {
        /// The node that leads, as far as this member knows.
        leader: Option<NodeId>,
    },
    /// This node is no member that can do that.
    #[error("this node is no member that holds the state: ask a member")]
    NoMember,
    /// That node is no member that can lead.
    #[error("node {0} is no member that can lead: name a voter that is no witness")]
    NoCandidate(NodeId),
    /// One change of configuration at a time.
    #[error("a change of configuration is under way: wait for Configured")]
    Changing,
    /// The membership service reports the end of this node's own life.
    #[error(transparent)]
    OwnEnd(#[from] OwnEnd),
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
    /// The peer stands or leads under another node's ballot.
    #[error("its ballot is that of node {0}")]
    Ballot(NodeId),
    /// The number of a configuration, ballot or version is higher than any group comes to.
    #[error("a number in its message is out of range")]
    Number,
    /// The peer's configuration cannot work, or has another number than its message.
    #[error("its configuration cannot work")]
    Configuration,
    /// The state that the peer sent cannot be decoded, or is longer than it said.
    #[error("its state cannot be decoded")]
    State,
    /// More entries than versions, entries behind the last one of a configuration, or an update
    /// without its content.
    #[error("its entries cannot follow each other")]
    Entries,
}
