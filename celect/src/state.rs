//! The state of a node, and the parts of it that an application can read.

use selvedge_core::{Member, Untracked};

use crate::announce::Announcement;
use crate::leadership::Leadership;
use crate::lease::Lease;
use crate::measure::Measured;
use crate::peers::Peers;
use crate::published::Rules;
use crate::run::Run;
use crate::{Attribute, Ballot, Config, ConfigError, Counters, Lowest};

/// A node: it answers initiators, is an initiator, follows a leader, or leads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Celect<A = Lowest> {
    pub(crate) me: Member,
    pub(crate) config: Config,
    pub(crate) attribute: A,
    pub(crate) rules: Rules,
    pub(crate) peers: Peers,
    /// The highest known epoch.
    pub(crate) epoch: u64,
    pub(crate) leader: Option<Leadership>,
    /// A later leader with few followers, while this node keeps its own.
    pub(crate) contested: Option<Leadership>,
    /// This node's election.
    pub(crate) run: Option<Run>,
    /// The largest ballot of others that this node gave way to or answered, while its leader is
    /// unknown.
    pub(crate) awaited: Option<Ballot>,
    pub(crate) announcement: Option<Announcement>,
    /// The lease of this node, while it leads with one.
    pub(crate) lease: Option<Lease>,
    /// The measurement of c.
    pub(crate) measured: Measured,
    pub(crate) counters: Untracked<Counters>,
}

impl<A: Attribute> Celect<A> {
    /// Returns a node that knows no other; the host gives it [`Delta`](selvedge_core::Delta)s.
    ///
    /// # Errors
    /// The first setting that cannot work.
    pub fn new(me: Member, config: Config, attribute: A) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self::unchecked(me, config, attribute, Rules::default()))
    }

    /// Returns a node that follows `rules` where they differ from this crate's.
    ///
    /// # Errors
    /// The first setting that cannot work.
    #[cfg(feature = "check")]
    pub fn published(
        me: Member,
        config: Config,
        attribute: A,
        rules: &[crate::Published],
    ) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self::unchecked(
            me,
            config,
            attribute,
            Rules::published(rules),
        ))
    }

    /// Returns a node with settings that are already checked.
    pub(crate) fn unchecked(me: Member, config: Config, attribute: A, rules: Rules) -> Self {
        Self {
            me,
            config,
            attribute,
            rules,
            peers: Peers::new(config.peer_limit as usize, me),
            epoch: 0,
            leader: None,
            contested: None,
            run: None,
            awaited: None,
            announcement: None,
            lease: None,
            measured: Measured::new(&config),
            counters: Untracked::default(),
        }
    }

    /// Follows a node that no initiator appointed: the state that a check begins with.
    #[cfg(feature = "check")]
    pub(crate) fn follow(&mut self, member: Member) {
        let ballot = Ballot {
            epoch: 0,
            initiator: member,
            step: 0,
        };
        self.leader = Some(Leadership {
            member,
            ballot,
            renewal: 0,
            lease: self.config.lease.unwrap_or_default(),
            lost: false,
            few: false,
            asked: 0,
            firm: false,
        });
    }

    /// Makes this node lead as a node that was cut off does, by a later ballot than
    /// [`follow`](Self::follow) gives.
    #[cfg(feature = "check")]
    pub(crate) fn lead_alone(&mut self) {
        self.follow(self.me);
        if let Some(leader) = &mut self.leader {
            leader.ballot.epoch = 1;
            leader.few = true;
        }
        self.epoch = 1;
    }

    /// Returns the remains of a crashed machine: its identity and settings.
    #[cfg(feature = "check")]
    pub(crate) fn remains(&self) -> Self {
        let mut remains = self.clone();
        remains.peers = Peers::new(self.config.peer_limit as usize, self.me);
        remains.epoch = 0;
        remains.leader = None;
        remains.contested = None;
        remains.run = None;
        remains.awaited = None;
        remains.announcement = None;
        remains.lease = None;
        remains.measured = Measured::new(&Config::new(0, 0));
        remains
    }

    /// The key that leaders are ordered by.
    #[cfg(feature = "check")]
    pub(crate) fn key_of(&self, member: Member) -> (selvedge_core::Rank, Member) {
        crate::attribute::key(&self.attribute, member)
    }

    /// This node.
    #[must_use]
    pub const fn me(&self) -> Member {
        self.me
    }

    /// The settings.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the leader, perhaps this node itself, and its ballot; `None` when no node leads, or
    /// when this node believes that the leader failed or left.
    #[must_use]
    pub fn leader(&self) -> Option<(Member, Ballot)> {
        let leader = self.leader.filter(|leader| !leader.lost)?;
        Some((leader.member, leader.ballot))
    }

    /// The ballot by which this node leads, if it does.
    #[must_use]
    pub fn leads(&self) -> Option<Ballot> {
        let (leader, ballot) = self.leader()?;
        (leader == self.me).then_some(ballot)
    }

    /// Returns true if this node runs an election.
    #[must_use]
    pub const fn is_electing(&self) -> bool {
        self.run.is_some()
    }

    /// The nodes on this node's list, by id, without itself.
    pub fn members(&self) -> impl Iterator<Item = Member> + '_ {
        self.peers.iter()
    }

    /// The counters.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters.0
    }
}
