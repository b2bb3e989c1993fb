//! The commands and events of the application, and the errors.

use alloc::boxed::Box;
use alloc::vec::Vec;

use selvedge_core::{Delta, Full, Member, NodeId};
use thiserror::Error;

use crate::{Config, ConfigError, Metadata};

/// A command of the application.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Join the mesh through these seeds, or begin a mesh if the list is empty.
    ///
    /// A seed's id may be a stand-in that only the host can resolve to an address: the node that
    /// answers is learned under its true id. At most 16 are kept.
    Join {
        /// The seeds to ask.
        seeds: Vec<NodeId>,
    },
    /// Replace the seeds, for instance when a name has other addresses. A joining node asks the new
    /// seeds, or begins a mesh where the list is empty. A node in the mesh asks them from now on
    /// when it looks for lost members.
    SetSeeds {
        /// The seeds to ask, at most 16.
        seeds: Vec<NodeId>,
    },
    /// Say good-bye for [`Config::farewell_periods`], then stop.
    Leave,
    /// Replace the metadata of this node, which all other nodes receive, at most
    /// [`Config::metadata_limit`] bytes. May be given before joining.
    SetMetadata(Metadata),
    /// Set the distance of a member, in the host's unit, from 1. A later life keeps it, and no
    /// measured round trip changes it. It ends when the member is forgotten
    /// ([`Config::tombstone_periods`]) or this node leaves; set it again then.
    SetDistance {
        /// The node, which must be on the list.
        id: NodeId,
        /// Its distance, see [`Config::unit_distance`].
        distance: u32,
    },
    /// Send some bytes to all nodes, at most [`Config::broadcast_len`] of them.
    Broadcast(Box<[u8]>),
    /// Change the settings while running.
    SetConfig(Box<Config>),
    /// Confirm that this life is over, by decision of an operator, even if the list never had it:
    /// another protocol may have met it. Other nodes receive it as news. A node that is cut off
    /// meanwhile, or misses the news, continues to take the member for failed; give the command
    /// there as well.
    Confirm(Member),
    /// Find out whether this life, which another protocol has met and waits for, joined, left or
    /// failed. A delta with the answer follows, unless the list has the life as live or as ended
    /// already. Give the command again for as long as that protocol waits: messages get lost, and
    /// there are at most [`Config::hearsay_limit`] answers in a period.
    Inquire(Member),
}

/// An event for the application.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// The identity of this node from now on. It comes when the node is in, and again if the node
    /// has to take a later incarnation because another node remembers one; hosts with stable
    /// storage keep it.
    Identified(Member),
    /// The list changed, or a life ended that was never on it: other protocols may have met that
    /// life.
    Changed(Delta),
    /// A member's metadata is new or changed; read it with
    /// [`Membership::metadata`](crate::Membership::metadata).
    MetadataChanged(Member),
    /// A broadcast arrived, other than this node's own.
    BroadcastReceived {
        /// The node that sent it.
        origin: Member,
        /// Its bytes.
        payload: Box<[u8]>,
    },
    /// This node has left. The machine is idle until the command to join again.
    Left,
}

/// Tags of the timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// The protocol period is over.
    Period,
    /// The direct acknowledgement is overdue.
    Probe,
    /// A suspect's time is over.
    Suspicion(NodeId),
}

/// The reason why an input was refused. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Reject {
    /// The node takes no part in a mesh.
    #[error("this node is in no mesh: give the command Join first")]
    NotJoined,
    /// The node takes part already.
    #[error("this node joins or has joined already: give the command Leave first")]
    AlreadyJoined,
    /// The metadata is too long.
    #[error(
        "the metadata has {len} bytes, but at most {limit} are allowed: shorten it or raise metadata_limit"
    )]
    MetadataTooLong {
        /// The refused length.
        len: usize,
        /// The longest allowed length.
        limit: usize,
    },
    /// The broadcast is too long.
    #[error(
        "the broadcast has {len} bytes, but at most {limit} are allowed: shorten it or raise broadcast_len"
    )]
    BroadcastTooLong {
        /// The refused length.
        len: usize,
        /// The longest allowed length.
        limit: usize,
    },
    /// Too many broadcasts wait.
    #[error("too many broadcasts wait: {0}")]
    BroadcastsFull(#[from] Full),
    /// That node is not on the list, or not in this life.
    #[error("node {0} is not on the list: wait for its Joined event")]
    UnknownMember(NodeId),
    /// A distance of zero has no weight.
    #[error("the distance of node {0} is 0: give at least 1")]
    ZeroDistance(NodeId),
    /// The settings cannot work.
    #[error("the settings were refused: {0}")]
    Config(#[from] ConfigError),
    /// A node cannot confirm its own end, or inquire about itself.
    #[error("node {0} is this node: to stop it give the command Leave")]
    OwnMember(NodeId),
    /// A peer sent a message that a correct peer never sends; the host counts it.
    #[error("a peer misbehaves: {0}")]
    Misbehaviour(#[from] Misbehaviour),
    /// This machine makes membership deltas and takes none.
    #[error("membership deltas come from this machine: feed them to the other protocols")]
    MembershipInput,
}

/// A violation of the protocol by a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Misbehaviour {
    /// Two nodes have one id, or a frame of this node came back.
    #[error("node {0} uses this node's id: give every node its own id")]
    OwnId(NodeId),
    /// Metadata longer than this node allows.
    #[error("metadata of {len} bytes about node {about}, but at most {limit} bytes are allowed")]
    MetadataTooLong {
        /// The member that it is about.
        about: NodeId,
        /// The refused length.
        len: usize,
        /// The longest allowed length.
        limit: usize,
    },
    /// A broadcast longer than this node allows.
    #[error("a broadcast of {len} bytes from node {origin}, but at most {limit} bytes are allowed")]
    BroadcastTooLong {
        /// The origin that the frame states.
        origin: NodeId,
        /// The refused length.
        len: usize,
        /// The longest allowed length.
        limit: usize,
    },
    /// More is piggybacked on a message than any frame can hold.
    #[error("{len} bytes in a frame, but at most {limit} are allowed")]
    FrameTooLong {
        /// The refused length.
        len: usize,
        /// The longest allowed length.
        limit: usize,
    },
    /// A range that ends before it begins.
    #[error("the range of records is empty: its end is before its start")]
    EmptyRange,
}
