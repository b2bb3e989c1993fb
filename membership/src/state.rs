//! The state of one node, and its public readers.

use alloc::boxed::Box;

use selvedge_core::{Member, NodeId, Untracked};

use crate::agreement::Agreement;
use crate::allowances::Allowances;
use crate::bootstrap::Bootstrap;
use crate::config::ceil_ln;
use crate::gossip::{Broadcasting, Updates};
use crate::list::MemberList;
use crate::own_life::OwnLife;
use crate::presence::{Phase, Presence};
use crate::probing::Probing;
use crate::published::Rules;
use crate::round_robin::RoundRobin;
use crate::self_monitor::{Reports, SelfMonitor};
use crate::target::weight;
use crate::{Config, ConfigError, Counters, MemberView, Metadata};

/// A node of Medley-F. Its promises are in the [crate's documentation](crate).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Membership {
    pub(crate) config: Box<Config>,
    pub(crate) rules: Rules,
    pub(crate) own: OwnLife,
    pub(crate) presence: Presence,
    pub(crate) bootstrap: Bootstrap,
    pub(crate) list: MemberList,
    pub(crate) updates: Updates,
    pub(crate) broadcasting: Broadcasting,
    pub(crate) probing: Probing,
    pub(crate) round_robin: RoundRobin,
    pub(crate) monitor: SelfMonitor,
    pub(crate) reports: Reports,
    pub(crate) allowances: Allowances,
    pub(crate) agreement: Agreement,
    /// The period in which a tombstone was last dropped for want of room; empty once that tombstone
    /// would have expired. Until then reports of other nodes may be about a dead member.
    pub(crate) forgot: Option<u16>,
    /// Counts periods, for ages only; stands still where no age matters.
    pub(crate) period: u16,
    pub(crate) counters: Untracked<Counters>,
}

impl Membership {
    /// Creates a node that is in no mesh yet; give it [`Command::Join`](crate::Command::Join).
    ///
    /// The incarnation of `me` should be one that this node never had: the one that it stored last
    /// plus one, else [`Incarnation::from_clock`](selvedge_core::Incarnation::from_clock), else a
    /// random number. If another node remembers a later one, this node takes one later still and
    /// emits [`Event::Identified`](crate::Event::Identified).
    ///
    /// # Errors
    /// When the settings cannot work.
    pub fn new(me: Member, config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        let mut machine = Self {
            rules: Rules::default(),
            own: OwnLife::new(me),
            presence: Presence::new(),
            bootstrap: Bootstrap::default(),
            list: MemberList::new(config.member_limit as usize),
            updates: Updates::new(config.gossip_limit.into()),
            broadcasting: Broadcasting::new(config.broadcast_limit.into()),
            probing: Probing::default(),
            round_robin: RoundRobin::default(),
            monitor: SelfMonitor::default(),
            reports: Reports::default(),
            allowances: Allowances::default(),
            agreement: Agreement::default(),
            forgot: None,
            period: 0,
            counters: Untracked::default(),
            config: Box::new(config),
        };
        machine.enlist_self(Metadata::default());
        Ok(machine)
    }

    /// Creates a node that follows rules which do not hold, for tests and comparison.
    ///
    /// # Errors
    /// When the settings cannot work.
    #[cfg(feature = "check")]
    pub fn published(
        me: Member,
        config: Config,
        rules: &[crate::Published],
    ) -> Result<Self, ConfigError> {
        let mut machine = Self::new(me, config)?;
        machine.rules = Rules::published(rules);
        Ok(machine)
    }

    /// This node's identity. It changes with [`Event::Identified`](crate::Event::Identified).
    #[must_use]
    pub const fn me(&self) -> Member {
        self.own.member()
    }

    /// The phase of this node's own membership.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        self.presence.phase()
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The number of members that are not declared failed or left, this node included. O(1).
    #[must_use]
    pub const fn live(&self) -> usize {
        self.list.live()
    }

    /// All known members, this node and the remembered dead included, in an order that is the same
    /// on every node. O(1) a member.
    pub fn members(&self) -> impl Iterator<Item = MemberView<'_>> {
        self.list.all().filter_map(|slot| self.view(slot))
    }

    /// The list's entry of a node. O(log N).
    #[must_use]
    pub fn member(&self, id: NodeId) -> Option<MemberView<'_>> {
        self.view(self.list.find(id)?)
    }

    /// A node's metadata. O(log N).
    #[must_use]
    pub fn metadata(&self, id: NodeId) -> Option<&[u8]> {
        Some(&self.list.metadata(self.list.find(id)?)?.0)
    }

    /// The counters.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters.0
    }

    fn view(&self, slot: usize) -> Option<MemberView<'_>> {
        let metadata = self.list.metadata(slot)?;
        let entry = self.list.entry(slot)?;
        Some(MemberView::new(
            entry,
            &metadata.0,
            self.list.round_trip(slot).smoothed(),
            self.list.weights(),
            slot,
        ))
    }

    /// Puts this node on its own, empty list.
    pub(crate) fn enlist_self(&mut self, metadata: Metadata) {
        let me = self.own.member();
        let listed = self.list.insert(me, 0, metadata, 0, self.period);
        debug_assert!(
            listed.is_ok(),
            "a list of two or more has room for its first"
        );
    }

    pub(crate) fn own_slot(&self) -> Option<usize> {
        self.list.find(self.own.id())
    }

    pub(crate) fn own_metadata(&self) -> Option<&Metadata> {
        self.list.metadata(self.own_slot()?)
    }

    pub(crate) fn default_weight(&self) -> u64 {
        weight(
            self.config.default_distance,
            self.config.unit_distance,
            self.config.exponent,
        )
    }

    /// The count of periods, where the dead have an age: where they are forgotten at all.
    pub(crate) fn tombstone_clock(&self) -> Option<u16> {
        (self.config.tombstone_periods > 0).then_some(self.period)
    }

    /// The number of times that an update is passed on: it grows with ceil(ln(N + 1)), as the
    /// length of suspicions does.
    pub(crate) fn copies(&self) -> u16 {
        u16::from(self.config.retransmit_factor) * ceil_ln(self.list.live() + 1)
    }

    /// The length of a suspicion, in periods.
    pub(crate) fn suspicion_periods(&self) -> u16 {
        self.config.suspicion.periods(self.list.live())
    }

    /// Announces this node's claim about a member, or itself. It replaces an earlier update.
    pub(crate) fn announce(&mut self, id: NodeId) {
        self.counters.updates_dropped += u64::from(self.updates.add(id));
    }
}
