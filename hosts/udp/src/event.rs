//! Events of a node for its application.

use std::net::SocketAddr;
use std::sync::Arc;

#[cfg(feature = "estimate")]
use selvedge_camera::estimate;
use selvedge_celect::Ballot;
use selvedge_core::{Member, NodeId, Span, Time};
use selvedge_kgroup::{ConfigError, Site};
use selvedge_membership::Status;
use thiserror::Error;

use crate::query::Question;
use crate::seeds::SeedNews;
use crate::tags::Tags;

/// An event of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The time of its cause, by the node's [`Clock`](crate::Clock). An event of k-groups may have waited
    /// for the disk since then: do not give a device a command that is older than
    /// [`act_timeout`](selvedge_kgroup::devices::Config::act_timeout).
    pub at: Time,
    /// The node that emitted it.
    pub node: NodeId,
    /// The event.
    pub event: NodeEvent,
}

/// An event of a node. The states of locks are not among them: the lock's guard has those.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeEvent {
    /// An event of membership.
    Membership(selvedge_membership::Event),
    /// An event of the elections.
    Election(selvedge_celect::Event),
    /// An event of the estimator, which counts the nodes. Feature `estimate`.
    #[cfg(feature = "estimate")]
    Estimate(estimate::Event),
    /// An event of the k-groups: pings and commands for devices, reports of routines, changes of
    /// watched entries. Answers to requests of a handle are not among them.
    Groups(selvedge_kgroup::Event),
    /// All sections have a higher bound on the number of nodes from now on. Feature `estimate`.
    #[cfg(feature = "estimate")]
    MaxLivesRaised(u32),
    /// The addresses that this node announces from now on. It listens at all addresses of its host
    /// and has none to advertise, so it announces the addresses from which it answers others. An
    /// empty list: it found no address, and a node that it never sent to cannot reach it. Then give
    /// one by [`Setup::advertise`](crate::Setup::advertise).
    Announced(Vec<SocketAddr>),
    /// A member has other tags than this node knew of it, or of its former life:
    /// [`MemberInfo::tags`] has them from now on. It comes behind the event that the member joined,
    /// where it has any, and after each change by [`Handle::set_tags`](crate::Handle::set_tags), also for
    /// this node itself.
    TagsChanged {
        /// The member.
        member: Member,
        /// Its tags, perhaps none.
        tags: Tags,
    },
    /// A member, perhaps this node, asks all members ([`Handle::query`](crate::Handle::query)). Each question comes
    /// once. [`Handle::answer`](crate::Handle::answer) sends the answer.
    Question(Question),
    /// A new outcome of looking up a seed's name.
    Seed(SeedNews),
    /// All sends of this node have failed for two periods: if it leads, it leads itself alone. At most
    /// one event a minute; [`NodeState::is_mute`] has it with the next step.
    Unsent(Unsent),
    /// A send succeeded after [`Unsent`](Self::Unsent).
    SentAgain,
    /// The disk does not store the node's promises in k-groups ([`Setup::state`](crate::Setup::state)),
    /// for this reason. The node ends.
    Unstored(String),
    /// The site of the k-groups has another generation: this node has the nodes, devices and routines of
    /// it now, and [`NodeState::site`] is it. Changes come by [`Handle::change_site`](crate::Handle::change_site)
    /// of any node, and from a node that was started with a site of a later generation.
    Site {
        /// The generation.
        generation: u32,
    },
    /// This node was started with a site that cannot become the site of the others. One event for each
    /// new life of a member with another site, and one for this node's own site. Requests to k-groups are
    /// refused ([`Reject::OtherSite`](crate::Reject::OtherSite)) while it lasts: for this node's own site
    /// until there is a later one, for other members while too few are left for an answer.
    OtherSite(OtherSite),
    /// Another process has this node's id. At most one event a minute, and in a sealed mesh only:
    /// in the clear such processes take later and later lives, and each is an
    /// [`Identified`](selvedge_membership::Event::Identified).
    Twin(Twin),
}

/// A report that all sends fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsent {
    /// The number of failures in a row.
    pub in_a_row: u64,
    /// The error of the last one.
    pub error: String,
}

/// Two [sites](selvedge_kgroup::Site) that cannot become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OtherSite {
    /// A member began with another first site than this node, so their k-groups never mix.
    #[error(
        "{member} has a first site with the digest {found:08x}, and this node has {own:08x}: start all nodes with \
         one first site, that of generation 0"
    )]
    Member {
        /// The member.
        member: Member,
        /// The digest of its first site.
        found: u32,
        /// The digest of this node's first site.
        own: u32,
    },
    /// The site with which this node was started cannot follow on the present one, or the present one does
    /// not have this node.
    #[error(
        "this node was started with a site of generation {own}, and the present one has generation {present}: {why}"
    )]
    Own {
        /// The generation of the present site.
        present: u32,
        /// The generation of the site with which this node was started.
        own: u32,
        /// The part that differs, and the remedy.
        why: ConfigError,
    },
}

/// A second process with this node's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Twin {
    /// Its address, if that is known.
    pub address: Option<SocketAddr>,
    /// True if it started later than this process, so that other nodes refuse this process. It may
    /// also be a former life of this node with a clock that was ahead.
    pub is_later: bool,
}

/// An entry of a node's member list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemberInfo {
    /// The member.
    pub member: Member,
    /// Its status, as far as this node knows.
    pub status: Status,
    /// The address to which this node sends to reach it.
    pub address: Option<SocketAddr>,
    /// The smoothed round trip of this node's probes of it, if it measures any
    /// ([`Config::round_trip_unit`](selvedge_membership::Config::round_trip_unit)): as of the last
    /// change of the list, or of any member's weight by a measurement.
    pub round_trip: Option<Span>,
    /// The tags of this life, as far as this node knows: of a dead member the last ones.
    pub tags: Tags,
}

/// The state that a node publishes after each change: read it with
/// [`Handle::state`](crate::Handle::state).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeState {
    /// The present life of the node. Another node that remembers a later one makes it change.
    pub me: Member,
    /// True if it is in the mesh: it has joined, and has not left.
    pub is_in: bool,
    /// The member list, this node included.
    pub members: Arc<[MemberInfo]>,
    /// The leader, perhaps this node, and its ballot.
    pub leader: Option<(Member, Ballot)>,
    /// The end of the time for which this node leads, by its clock.
    pub leads_until: Option<Time>,
    /// The present site of the k-groups, with its generation; `None` where the node takes no part in them,
    /// has not joined, or does not know the site of the others yet.
    pub site: Option<Arc<Site>>,
    /// True while all its sends fail, also less than a minute after a [`NodeEvent::Unsent`]: a
    /// leader leads itself alone then.
    pub is_mute: bool,
}

impl NodeState {
    /// A node that has not joined.
    pub(crate) fn new(me: Member) -> Self {
        Self {
            me,
            is_in: false,
            members: [].into(),
            leader: None,
            leads_until: None,
            site: None,
            is_mute: false,
        }
    }
}
