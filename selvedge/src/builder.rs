//! The construction of a node.

#[cfg(feature = "kgroup")]
use alloc::vec::Vec;

use selvedge_core::{Member, Nested, Untracked};
use selvedge_membership::{self as membership, Membership};

#[cfg(feature = "kgroup")]
use crate::coordination::{Coordinating, Coordination, Fact};
use crate::present::Present;
use crate::{ConfigError, Election, Exclusion, Node};

/// The settings of a node. Without locks, elections and k-groups it is a member, and nothing else.
///
/// ```
/// use selvedge::core::{Member, Span};
/// use selvedge::{Election, Node, membership};
///
/// let node = Node::builder(Member::new(1, 0))
///     .membership(membership::Config::default())
///     .election(Election::paced(Span::secs(1), 1, 0))
///     .build()?;
/// assert!(node.leader().is_none());
/// # Ok::<(), selvedge::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Builder {
    me: Member,
    membership: membership::Config,
    exclusion: Option<Exclusion>,
    election: Option<Election>,
    #[cfg(feature = "kgroup")]
    coordination: Option<(Coordination, Option<Vec<Fact>>)>,
}

impl Node {
    /// Begins to describe a node with this identity. It has a member list with default settings.
    #[must_use]
    pub fn builder(me: Member) -> Builder {
        Builder {
            me,
            membership: membership::Config::default(),
            exclusion: None,
            election: None,
            #[cfg(feature = "kgroup")]
            coordination: None,
        }
    }
}

impl Builder {
    /// Sets the settings of the member list.
    #[must_use]
    pub fn membership(mut self, config: membership::Config) -> Self {
        self.membership = config;
        self
    }

    /// Adds locks. Default: none.
    #[must_use]
    pub fn locks(mut self, exclusion: impl Into<Option<Exclusion>>) -> Self {
        self.exclusion = exclusion.into();
        self
    }

    /// Adds elections. Default: none.
    #[must_use]
    pub fn election(mut self, election: impl Into<Option<Election>>) -> Self {
        self.election = election.into();
        self
    }

    /// Adds a part in k-groups. Give the node a
    /// [`kgroup::Command::SetEpoch`](selvedge_kgroup::Command::SetEpoch) before it joins, and again in each
    /// epoch; [`SetClock`](selvedge_kgroup::Command::SetClock), too, if the site has triggers of time.
    /// [`SetSpared`](selvedge_kgroup::Command::SetSpared) is for each later life, too.
    /// Its facts ([`groups::Event::Fact`](selvedge_groups::Event::Fact)) are for hosts that
    /// store, see [`restored_groups`](Self::restored_groups); other hosts ignore them and let each
    /// later life be [`Restarted`](selvedge_groups::Start::Restarted).
    #[cfg(feature = "kgroup")]
    #[must_use]
    pub fn groups(mut self, coordination: Coordination) -> Self {
        self.coordination = Some((coordination, None));
        self
    }

    /// Does as [`groups`](Self::groups), for a host that stores each [`Fact`] before it carries out
    /// the effects of k-groups behind it. `facts` are the facts of all lives until now, in order, or
    /// the [`stored`](selvedge_groups::Groups::stored) ones that replace them; then `coordination`
    /// has the start with which the host began to store.
    #[cfg(feature = "kgroup")]
    #[must_use]
    pub fn restored_groups(mut self, coordination: Coordination, facts: Vec<Fact>) -> Self {
        self.coordination = Some((coordination, Some(facts)));
        self
    }

    /// Creates the node, which has not joined yet.
    ///
    /// # Errors
    /// The first setting that cannot work; a site without this node; facts that do not follow from
    /// one another or belong to another site.
    pub fn build(self) -> Result<Node, ConfigError> {
        // Checked here, because in a later life there is no caller to return an error to.
        Present::new(self.me, self.exclusion.as_ref(), self.election.as_ref())?;
        let membership = Membership::new(self.me, self.membership)?;
        #[cfg(feature = "kgroup")]
        let coordination = match self.coordination {
            Some((next, facts)) => Some(Coordinating::new(self.me, next, facts)?),
            None => None,
        };
        Ok(Node {
            membership: Nested::new(membership),
            exclusion: self.exclusion,
            election: self.election,
            #[cfg(feature = "kgroup")]
            coordination,
            present: None,
            events: Untracked(alloc::vec::Vec::new()),
        })
    }
}
