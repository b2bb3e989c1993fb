//! The state of a gateway, and its queries.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use selvedge_core::settings::{self, Setting};
use selvedge_core::{Member, Nested, NodeId, Untracked};
use selvedge_replica::{Configuration, Replica, Stored};

use super::{Config, Counters, Reject, Voting};
use crate::{Attachment, Limits, Tables, TaskId};

/// A gateway. See the [module](super).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Gateway {
    pub(super) config: Config,
    pub(super) me: Member,
    pub(super) replica: Nested<Replica<Tables>>,
    /// Events of the replica in this step that were not handled yet.
    pub(super) notified: Untracked<VecDeque<selvedge_replica::Event<Tables>>>,
    /// All known gateways, each in its latest known life.
    pub(super) gateways: BTreeMap<NodeId, Member>,
    /// The gateways that failed or left.
    pub(super) ended: BTreeSet<NodeId>,
    /// The last reports of the followers of this gateway.
    pub(super) own: BTreeMap<NodeId, Attachment>,
    /// The tasks that clients wait for here.
    pub(super) asked: BTreeSet<TaskId>,
    pub(super) is_started: bool,
    /// True if this gateway acts as resource manager.
    pub(super) manages: bool,
    /// True if the replica has waited for a quorum's answer for too long.
    pub(super) is_stalled: bool,
    /// The number of the manager's heartbeats in a row that named this gateway as failed, or did not arrive.
    pub(super) missed: u8,
    /// True if followers and clients are served here, as the host was notified; it assumes so at first.
    pub(super) is_available: bool,
    /// True if followers arrived or left since units were formed.
    pub(super) has_changed: bool,
    /// True if units are about to be formed again.
    pub(super) is_cluster_due: bool,
    pub(super) counters: Untracked<Counters>,
}

impl Gateway {
    /// A gateway in its first life, in which `first` names it. All gateways begin with equal `first` and
    /// `limits`. A later life is [restored](Self::restore), or is a [newcomer](Self::newcomer): made by this
    /// function it would have no vote after it folds the facts of a former life.
    ///
    /// # Errors
    /// [`Reject::NotNamed`] in any other life. [`Reject::Config`], [`Reject::Replica`] and
    /// [`Reject::NoRoomForResult`], if these settings cannot work: `replica.state_limit` has to admit the
    /// largest tables that `limits` allow.
    pub fn new(
        me: Member,
        config: Config,
        first: Configuration,
        limits: Limits,
    ) -> Result<Self, Reject> {
        limits.check()?;
        let least = limits.largest_state(first.frame_budget.into());
        let size = u64::from(config.replica.state_limit);
        settings::check(&[
            Setting::number("replica.state_limit", size, least, u32::MAX.into()).counts("bytes"),
        ])?;
        let named = first.voter(me.id).map(|it| it.member);
        if named != Some(me) {
            return Err(Reject::NotNamed { me, named });
        }
        let gateways: Vec<Member> = first.members().map(|it| it.member).collect();
        let replica = Replica::new(me, config.replica, first, Tables::new(limits))?;
        check_result(&limits, replica.configuration())?;
        Self::make(me, config, replica, gateways)
    }

    /// A gateway as [`new`](Self::new) makes it, with these tables.
    #[cfg(feature = "check")]
    pub(crate) fn with_tables(
        me: Member,
        config: Config,
        first: Configuration,
        tables: Tables,
    ) -> Result<Self, Reject> {
        let gateways: Vec<Member> = first.members().map(|it| it.member).collect();
        let replica = Replica::new(me, config.replica, first, tables)?;
        Self::make(me, config, replica, gateways)
    }

    /// A gateway that lost its memory, or never had one. It takes part when the others name it. Each of
    /// `others` counts as failed until a message of it arrives.
    ///
    /// # Errors
    /// [`Reject::Config`].
    pub fn newcomer(
        me: Member,
        config: Config,
        others: impl IntoIterator<Item = NodeId>,
    ) -> Result<Self, Reject> {
        let replica = Replica::newcomer(me, config.replica)?;
        let others: Vec<NodeId> = others.into_iter().filter(|it| *it != me.id).collect();
        let unanswered = others.iter().map(|id| Member::new(id.0, 0));
        let mut gateway = Self::make(me, config, replica, unanswered.collect())?;
        gateway.ended.extend(others);
        Ok(gateway)
    }

    /// A gateway in a later life `me`, with the state that its former life stored. Facts that came after
    /// `stored` are [folded](selvedge_core::durable::Durable::fold) before its first input. A host that has
    /// only facts, from the first life on, makes the base: `Gateway::new(first_life, ..)?.replica().stored()`.
    /// `others` are all other gateways that may exist. A gateway that is no voter any more counts as failed
    /// until a message of it arrives.
    ///
    /// # Errors
    /// [`Reject::Config`], and [`Reject::Replica`] if `stored` was damaged.
    pub fn restore(
        me: Member,
        config: Config,
        stored: Stored<Tables>,
        others: impl IntoIterator<Item = NodeId>,
    ) -> Result<Self, Reject> {
        let replica = Replica::restore(me, config.replica, stored)?;
        let named: Vec<Member> = replica
            .configuration()
            .members()
            .map(|it| it.member)
            .collect();
        let is_unnamed = |id: &NodeId| named.iter().all(|it| it.id != *id) && *id != me.id;
        let others: Vec<NodeId> = others.into_iter().filter(is_unnamed).collect();
        let unnamed = others.iter().map(|id| Member::new(id.0, 0));
        let gateways = named.iter().copied().chain(unnamed).collect();
        let mut gateway = Self::make(me, config, replica, gateways)?;
        gateway.ended.extend(others);
        Ok(gateway)
    }

    fn make(
        me: Member,
        config: Config,
        replica: Replica<Tables>,
        gateways: Vec<Member>,
    ) -> Result<Self, Reject> {
        config.check()?;
        let mut gateways: BTreeMap<NodeId, Member> =
            gateways.into_iter().map(|it| (it.id, it)).collect();
        gateways.insert(me.id, me);
        Ok(Self {
            config,
            me,
            replica: Nested::new(replica),
            notified: Untracked::default(),
            gateways,
            ended: BTreeSet::new(),
            own: BTreeMap::new(),
            asked: BTreeSet::new(),
            is_started: false,
            manages: false,
            is_stalled: false,
            missed: 0,
            is_available: true,
            has_changed: false,
            is_cluster_due: false,
            counters: Untracked(Counters::default()),
        })
    }

    /// This node in its present life.
    #[must_use]
    pub const fn me(&self) -> Member {
        self.me
    }

    /// All gateways that this one knows, each in its latest life, and true unless it counts as failed.
    pub fn gateways(&self) -> impl Iterator<Item = (Member, bool)> + '_ {
        let all = self.gateways.values();
        all.map(|it| (*it, !self.ended.contains(&it.id)))
    }

    /// The tables, as far as this gateway knows them; `None` if it holds none.
    #[must_use]
    pub fn tables(&self) -> Option<&Tables> {
        self.replica.machine().state()
    }

    /// The replica of the tables, to read from.
    #[must_use]
    pub const fn replica(&self) -> &Replica<Tables> {
        self.replica.machine()
    }

    /// Returns true if this gateway acts as resource manager.
    #[must_use]
    pub const fn manages(&self) -> bool {
        self.manages
    }

    /// The counters.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters.0
    }

    /// The numbers of followers and of waiting clients that this gateway keeps besides the tables.
    #[cfg(feature = "check")]
    pub(crate) fn kept(&self) -> (usize, usize) {
        (self.own.len(), self.asked.len())
    }

    /// The settings of this gateway.
    #[cfg(feature = "check")]
    pub(crate) const fn config(&self) -> &Config {
        &self.config
    }

    /// Returns true if the voters follow the connected gateways.
    pub(super) fn is_dynamic(&self) -> bool {
        self.config.voting == Voting::Dynamic
    }
}

/// Checks that the longest result fits into the frames between gateways of this configuration.
pub(super) fn check_result(limits: &Limits, configuration: &Configuration) -> Result<(), Reject> {
    let room = configuration.update_room();
    let room = room.saturating_sub(limits.around_result());
    if usize::from(limits.result) > room {
        return Err(Reject::NoRoomForResult {
            result: limits.result,
            budget: configuration.frame_budget,
            room,
        });
    }
    Ok(())
}
