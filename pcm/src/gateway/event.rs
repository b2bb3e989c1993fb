//! Commands, events, timers and errors.

use selvedge_core::settings::OutOfRange;
use selvedge_core::{Member, NodeId};
use selvedge_replica::Configuration;
use thiserror::Error;

use crate::{Tables, TaskId};

/// A command of the host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Starts the gateway, which watches its followers from now on.
    Start,
    /// The distance to another gateway, in links. The default is one. It may be lost: the host repeats it.
    ///
    /// It is dropped if the present configuration does not name both gateways, because the next review of the
    /// resource manager would forget it. [`no_room`](super::Counters::no_room) counts the distances beyond
    /// [`Limits::gateways`](crate::Limits::gateways).
    SetHops {
        /// The other gateway.
        to: NodeId,
        /// The number of links.
        hops: u8,
    },
    /// Asks this resource manager to change the configuration of the gateways. Its `frame_budget` must have
    /// room for [`Limits::result`](crate::Limits::result).
    ///
    /// With [`Voting::Dynamic`](super::Voting::Dynamic) the named voters do not stay: at its next review at the
    /// latest the manager removes gateways that have failed from the list, and adds gateways that are
    /// connected. The rest of the configuration stays, such as `frame_budget`, `lease` and `proposers`.
    Configure(Configuration),
}

/// An event for the host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// A fact that the host must store before it carries out any later effect.
    Fact(selvedge_replica::Fact<Tables>),
    /// This gateway is the resource manager from now on.
    Leading,
    /// This gateway is the resource manager no longer.
    Deposed,
    /// A follower of this gateway is in the tables.
    Attached(Member),
    /// A follower is not in the tables any more.
    Purged(NodeId),
    /// Units were formed again; their number.
    Clustered(usize),
    /// A task has ended.
    Ended(TaskId),
    /// This gateway sends followers and clients on to other gateways: it reaches no quorum, or no manager, or
    /// it holds no tables. Before this event it serves them.
    Unavailable,
    /// This gateway serves followers and clients again.
    Available,
    /// Another gateway counts as failed: it sent nothing for [`Config::timeout`](super::Config::timeout),
    /// or membership reports it.
    Failed(Member),
    /// A gateway that counted as failed is up.
    Returned(Member),
}

/// Tags of the timers. The timers of followers come first: a driver that arms or disarms a timer moves all
/// timers behind it, and the timers of followers are many and stay armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// A follower has sent nothing for too long.
    Purge(NodeId),
    /// A timer of the replica.
    Tables(selvedge_replica::Timer),
    /// A unit has not answered in time.
    Offload(TaskId),
    /// The units must be formed again.
    Cluster,
    /// The resource manager must send its heartbeat.
    Heartbeat,
    /// The resource manager has sent nothing for too long.
    Manager,
    /// Another gateway has sent nothing for too long; the resource manager watches it.
    Timeout(NodeId),
    /// The periodic review is due.
    Review,
}

/// The reason why an input is refused. Nothing changed then.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Reject {
    /// A setting is out of its range.
    #[error(transparent)]
    Config(#[from] OutOfRange),
    /// A result may be longer than the room in a frame between gateways, and then its task would never end.
    #[error(
        "a result may have {result} bytes, and a frame of {budget} has room for {room}: lower \
         `Limits::result`, or raise `frame_budget`"
    )]
    NoRoomForResult {
        /// [`Limits::result`](crate::Limits::result).
        result: u16,
        /// `frame_budget` of the configuration.
        budget: u16,
        /// The number of bytes that a frame has for a result.
        room: usize,
    },
    /// The first configuration does not name this gateway in this life. The gateway would have no vote, and
    /// could not get one without a quorum of other gateways.
    #[error(
        "{me} is not a gateway of the first configuration, which names {named:?}: restore it from the \
         storage of its former life, or begin as a newcomer if that is lost"
    )]
    NotNamed {
        /// The gateway, in the life that was asked for.
        me: Member,
        /// The life in which the configuration names it, if it does.
        named: Option<Member>,
    },
    /// It was started before.
    #[error("it is started already: start a gateway once in each life")]
    Started,
    /// The replica refuses it.
    #[error(transparent)]
    Replica(#[from] selvedge_replica::Reject),
    /// A node that this gateway does not know sends a message that only gateways send. It may be a gateway: no
    /// configuration names it yet, or this gateway has not received the configuration that does.
    #[error(
        "{0} sends a gateway's message, and is not known here as a gateway: name it by `Configure`, unless \
         this gateway is behind"
    )]
    UnknownGateway(Member),
    /// A peer breaks the rules.
    #[error(transparent)]
    Misbehaviour(#[from] Misbehaviour),
}

/// A breach of the rules by a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Misbehaviour {
    /// It uses this node's id.
    #[error("{0} uses the id of this node: give each node its own")]
    OwnId(Member),
    /// It reports an impossible duty cycle.
    #[error("{0} reports an impossible duty cycle: {1}")]
    Duty(Member, OutOfRange),
    /// Its message is for a follower or a client.
    #[error("{0} sent a message that is not for gateways")]
    Misdirected(Member),
}
