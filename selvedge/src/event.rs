//! Commands, events, timers, errors.

#[cfg(feature = "estimate")]
use selvedge_camera::estimate;
use selvedge_camera::sections::{self, Name};
use selvedge_celect as celect;
use selvedge_core::Member;
use selvedge_membership as membership;
use thiserror::Error;

/// A command of the application.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// A command to membership.
    Membership(membership::Command),
    /// A command to the sections.
    Sections(sections::Command),
    /// Estimate the number of nodes, and raise the bound if it is too low. Feature `estimate`.
    #[cfg(feature = "estimate")]
    Estimate,
    /// A command to the elections. A `c` in a command holds in later lives, too; if fewer other
    /// nodes are known, their number is used for it.
    Election(celect::Command),
    /// A command to the k-groups. Feature `kgroup`. The latest epoch holds in later lives, too, and
    /// may be given before the node has joined.
    #[cfg(feature = "kgroup")]
    Groups(selvedge_kgroup::Command),
}

/// An event for the application.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// An event of membership.
    Membership(membership::Event),
    /// An event of a section.
    Sections(sections::Event),
    /// An event of the estimator. Feature `estimate`.
    #[cfg(feature = "estimate")]
    Estimate(estimate::Event),
    /// An event of the elections.
    Election(celect::Event),
    /// An event of the k-groups. Feature `kgroup`.
    #[cfg(feature = "kgroup")]
    Groups(selvedge_kgroup::Event),
    /// A new life begins: sections with none open, elections with no known leader, and the node's
    /// part in k-groups with no requests to maps. Sections that a former life held are lost: that
    /// life is over for all others.
    Present(Member),
    /// All sections have a higher bound from now on. Feature `estimate`.
    #[cfg(feature = "estimate")]
    MaxLivesRaised(u32),
}

/// Tags of the timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// A timer of membership.
    Membership(membership::Timer),
    /// A timer of a section.
    Sections(sections::Timer),
    /// The time to give back the permissions that this section kept.
    GiveBack(Name),
    /// A timer of the estimator. Feature `estimate`.
    #[cfg(feature = "estimate")]
    Estimate(estimate::Timer),
    /// It is time for the next estimate. Feature `estimate`.
    #[cfg(feature = "estimate")]
    Count,
    /// A timer of the elections.
    Election(celect::Timer),
    /// No leader was known for the time of [`Election::patience`](crate::Election::patience).
    Leaderless,
    /// A timer of the k-groups. Feature `kgroup`.
    #[cfg(feature = "kgroup")]
    Groups(selvedge_kgroup::Timer),
}

/// The reason why an input was refused. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Reject {
    /// A refusal by membership.
    #[error(transparent)]
    Membership(#[from] membership::Reject),
    /// A refusal by the sections.
    #[error(transparent)]
    Sections(#[from] sections::Reject),
    /// A refusal by the estimator.
    #[cfg(feature = "estimate")]
    #[error(transparent)]
    Estimate(#[from] estimate::Reject),
    /// A refusal by the elections.
    #[error(transparent)]
    Election(#[from] celect::Reject),
    /// A refusal by the k-groups.
    #[cfg(feature = "kgroup")]
    #[error(transparent)]
    Groups(#[from] selvedge_kgroup::Reject),
    /// The node is in no mesh that could have sections, a leader or k-groups.
    #[error("this node is in no mesh yet: wait until it has joined")]
    NotPresent,
    /// The node was made without sections.
    #[error("this node takes no part in sections: give an Exclusion when it starts")]
    NoExclusion,
    /// The node was made without elections.
    #[error("this node takes no part in elections: give an Election when it starts")]
    NoElection,
    /// The node was made without k-groups.
    #[cfg(feature = "kgroup")]
    #[error("this node takes no part in k-groups: give a Coordination when it starts")]
    NoCoordination,
    /// Others would take a good-bye for the end of the sections that this node holds.
    #[error("this node waits for the section {0:?} or is inside: give Exit or Cancel first")]
    InUse(Name),
    /// Other nodes consider this life over and let another node in.
    #[error("this node is leaving: wait until it has left, and join again to enter {0:?}")]
    Leaving(Name),
}

impl Reject {
    /// Returns true if a message came before the node was in, or after it left: no misbehaviour of
    /// a peer.
    #[must_use]
    pub const fn is_untimely(&self) -> bool {
        matches!(
            self,
            Self::NotPresent | Self::Membership(membership::Reject::NotJoined)
        )
    }
}
