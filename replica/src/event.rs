//! The application's commands and events, timers, and the errors.

use alloc::vec::Vec;

use selvedge_core::roster::OwnEnd;
use selvedge_core::settings::OutOfRange;
use selvedge_core::{Member, NodeId, Span};
use thiserror::Error;

use crate::{Ballot, ConfigError, Configuration, Damage, Fact, Proposal, State, Version};

/// A request of the application.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command<U> {
    /// Proposes an update. [`Event::Applied`] follows with this member's next number, once.
    Propose(U),
    /// Proposes updates, in this order; they travel together, as many as fit into a frame. As
    /// [`Propose`](Self::Propose) for each of them, and all are refused if one is.
    ProposeAll(Vec<U>),
    /// Proposes for a proposer that is not a member, and that numbers its proposals itself: from 1
    /// in each of its lives, without a gap. The same proposal may be relayed again, also by another
    /// member; it is applied once.
    Relay(Proposal<U>),
    /// Reads. [`Event::Readable`] follows with this number: then [`Replica::state`] holds every
    /// update that was applied anywhere before this command.
    ///
    /// [`Replica::state`]: crate::Replica::state
    Read(u64),
    /// Stands for leader, now. A member whose leader is present refuses the others: ask the leader
    /// to [transfer its leadership](Self::TransferLeadership).
    Campaign,
    /// Asks this leader to have another member lead.
    TransferLeadership(NodeId),
    /// Asks this leader to change the group's members to these. The leader sets the configuration's
    /// number.
    Configure(Configuration),
}

/// An event for the application.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event<S: State> {
    /// A fact that the host stores before it carries out any later effect.
    Fact(Fact<S>),
    /// An update is committed, and is applied to this member's state.
    Applied {
        /// The version that decided it.
        version: Version,
        /// The proposer.
        by: Member,
        /// The proposer's number.
        number: u64,
        /// The result of applying it.
        outcome: S::Outcome,
    },
    /// A proposal of this member is applied, but this member does not know its outcome: it received
    /// the state whole, or the proposal had been applied before it was proposed here.
    Overtaken {
        /// The proposer.
        by: Member,
        /// The proposer's number.
        number: u64,
    },
    /// The group has forgotten the proposer of a proposal of this member. The proposal may have
    /// been applied earlier. It is not applied later.
    Forgotten {
        /// The proposer.
        by: Member,
        /// The proposer's number.
        number: u64,
    },
    /// This node is no longer a member, or frames of the present configuration have no room for the
    /// proposal or one before it. The proposal is not followed any more. It may be applied or not.
    Abandoned {
        /// The proposer.
        by: Member,
        /// The proposer's number.
        number: u64,
    },
    /// This node is no longer a member: it cannot answer this read.
    Unreadable(u64),
    /// This member received the state whole.
    Installed(Version),
    /// The state holds every update that was applied anywhere before the command.
    Readable {
        /// The command's number.
        read: u64,
        /// The state's version is at least this.
        version: Version,
    },
    /// A member leads, perhaps this one itself.
    Elected {
        /// The leader.
        leader: NodeId,
        /// The ballot under which it leads.
        ballot: Ballot,
    },
    /// This member led, and does so no longer.
    Deposed(Ballot),
    /// The group has a new configuration from this version on.
    Configured {
        /// Its number.
        number: u64,
        /// The version that decided it; a later one, the state's, where this member received
        /// the state whole.
        version: Version,
    },
    /// A proposal or read of this member waits, and no leader or no quorum has answered for this
    /// time. The member goes on trying.
    Unavailable {
        /// The time since it began to wait.
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
    /// Leader: the others have not been notified of the latest commit.
    Commit,
    /// Promises are overdue, or it is this member's turn to stand.
    Campaign,
    /// This member's own proposals and reads are overdue.
    Pending,
    /// The answer of the leader, which this member asked if it is present, is overdue.
    Watch,
    /// A page of the state is overdue.
    Fetch,
    /// Leader: the lease has ended.
    Lease,
    /// Follower: the lease that it acknowledged has ended.
    Tied,
    /// The next invitation to the members of the configuration is due.
    Invite,
}

/// The reason for which an input was refused. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Reject {
    /// A setting cannot work.
    #[error("the settings were refused: {0}")]
    Config(#[from] OutOfRange),
    /// A configuration cannot work.
    #[error("the configuration was refused: {0}")]
    Configuration(#[from] ConfigError),
    /// The stored memory cannot be used.
    #[error("the stored memory cannot be used: {0}")]
    Damaged(#[from] Damage),
    /// This member has a limit of own proposals and reads.
    #[error(
        "more than {limit} proposals or reads would wait: wait for some to end, or raise pending"
    )]
    Full {
        /// The limit.
        limit: u32,
    },
    /// The update, or the configuration, does not fit into a frame.
    #[error("the entry takes {len} bytes and a frame has room for {room}: propose a smaller one")]
    TooLong {
        /// The bytes that it takes.
        len: usize,
        /// The bytes that a frame has room for.
        room: usize,
    },
    /// Only a leader can do that.
    #[error("this member does not lead: ask {leader:?}")]
    NotLeader {
        /// The node that leads, as far as this member knows.
        leader: Option<NodeId>,
    },
    /// This node is not a member that can do that.
    #[error("this node is not a member that holds the state: ask such a member")]
    NoMember,
    /// That node is not a member that can lead.
    #[error("node {0} cannot lead: name a voter that is not a witness")]
    NoCandidate(NodeId),
    /// Another change of configuration is under way.
    #[error("a change of configuration is under way: wait for Configured")]
    Changing,
    /// The membership service reports the end of this node's own life.
    #[error(transparent)]
    OwnEnd(#[from] OwnEnd),
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
    /// The peer stands or leads under another node's ballot.
    #[error("its ballot belongs to node {0}")]
    Ballot(NodeId),
    /// The number of a configuration, ballot or version is higher than any group reaches.
    #[error("a number in its message is out of range")]
    Number,
    /// The peer's configuration cannot work, or has another number than its message.
    #[error("its configuration cannot work")]
    Configuration,
    /// The state that the peer sent cannot be decoded, or is longer than the peer announced.
    #[error("its state cannot be decoded")]
    State,
    /// More entries than versions, entries behind the last one of a configuration, or an update
    /// without its content.
    #[error("its entries cannot follow each other")]
    Entries,
}
