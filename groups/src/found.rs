//! The beginning of groups at a node.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::marker::PhantomData;

use selvedge_core::{Context, Delta, Input, Member, NodeId, Untracked};
use selvedge_replica::{Configuration, Replica};

use crate::GroupId;
use crate::adopt::Adoption;
use crate::leader_hints::LeaderHints;
use crate::part::Part;
use crate::published::Rules;
use crate::registrar::Registrar;
use crate::spared::Spared;
use crate::state::{Carried, Scratch};
use crate::{Begins, Config, Counters, Event, Groups, Item, Plan, Reject, Start};

impl<S: Begins, P: Carried> Groups<S, P> {
    /// A node's part in the groups of a site. With [`Start::Fresh`] it founds those groups of which it
    /// is a founder. Its first input should be [`Command::SetEpoch`](crate::Command::SetEpoch).
    ///
    /// O(n + g log n) hashes and comparisons, with n nodes and g groups.
    ///
    /// # Errors
    /// Settings that cannot work, among them too low a limit of groups for those that the node founds,
    /// or a node that the plan does not name.
    pub fn new(
        me: Member,
        config: Config,
        plan: Arc<Plan>,
        site: Arc<S::Site>,
        start: Start,
    ) -> Result<Self, Reject> {
        config.check()?;
        if !plan.names(me.id) {
            return Err(Reject::Unplanned(me.id));
        }
        let peers = plan.known().map(|_| None).collect();
        let adoption = Adoption::new(&plan, S::HAS_REGISTRY);
        let mut groups = Self {
            me,
            since: me.incarnation,
            config,
            plan,
            site,
            start,
            parts: BTreeMap::new(),
            marks: BTreeMap::new(),
            ended: BTreeMap::new(),
            leader_hints: LeaderHints::new(config.leader_hints.into()),
            peers,
            spared: Spared::default(),
            epoch: 0,
            has_begun: false,
            inquiries: 0,
            adoption,
            registrar: Registrar::default(),
            counters: Untracked(Counters::default()),
            posted: Untracked(Vec::new()),
            has_fact: Untracked(false),
            outbox: Untracked(Scratch::default()),
            asks: PhantomData,
            rules: Rules::default(),
        };
        groups.hint_at_all();
        groups.found_all()?;
        let (needed, limit) = (groups.parts.len(), config.groups);
        match needed > limit.into() {
            true => Err(Reject::Room { needed, limit }),
            false => Ok(groups),
        }
    }

    /// Founds the groups that begin with the site and have this node as a founder.
    pub(crate) fn found_all(&mut self) -> Result<(), Reject> {
        if !self.may_found() {
            return Ok(());
        }
        let known = S::groups(&self.site);
        let all = self.plan.founders_of::<S>(&self.site, known);
        for (group, founders) in all {
            let is_new = !self.parts.contains_key(&group) && !self.was_in(group);
            if is_new && founders.contains(&self.me.id) {
                let replica = self.found(group, &founders)?;
                let part = replica.map(Part::new);
                self.parts.extend(part.map(|it| (group, it)));
            }
        }
        Ok(())
    }

    /// Returns true if the founders of groups follow from this node's site, and it may be one of
    /// them. A site of a later generation may be unknown to the others: it asks them first.
    pub(crate) fn may_found(&self) -> bool {
        let is_first = !S::HAS_REGISTRY || self.has_site() && self.generation() == 0;
        self.start == Start::Fresh && is_first
    }

    /// The nodes that found a group.
    #[must_use]
    pub fn founders(&self, group: GroupId) -> Vec<NodeId> {
        self.plan.founders::<S>(&self.site, group)
    }

    fn found(&self, group: GroupId, founders: &[NodeId]) -> Result<Option<Replica<S>>, Reject> {
        let Some(state) = S::begin(&self.site, group) else {
            return Ok(None);
        };
        let members = founders.iter().map(|it| Member::new(it.0, 0));
        let mut first = Configuration::of(members);
        first.frame_budget = self.plan.replica_budget();
        let replica = Replica::founder(self.me, self.config.replica, first, state);
        let replica = replica.map_err(|it| Reject::Founding(group, it))?;
        Ok(Some(replica))
    }

    /// Gives this node a part in a group that it learns of: as a founder of a group that begins
    /// with the first question, or as a newcomer. Returns true if it has one now.
    pub(crate) fn enter(&mut self, group: GroupId, cx: &mut Context<'_, Self>) -> bool {
        if self.parts.contains_key(&group) {
            return true;
        }
        if self.parts.len() >= self.config.groups.into() {
            self.counters.0.no_room += 1;
            return false;
        }
        let replica = match self.was_in(group) {
            true => self.newcomer(self.mark(group)),
            false => self.begin_part(group),
        };
        let Ok(replica) = replica else {
            debug_assert!(false, "the settings were checked");
            return false;
        };
        self.parts.insert(group, Part::new(replica));
        self.introduce(group, cx);
        // Without reports of other nodes, no input would have started this.
        self.look_for_leader(group, cx);
        true
    }

    /// Returns true if it was in a group, or has promised to take no part in it.
    pub(crate) fn was_in(&self, group: GroupId) -> bool {
        self.marks.contains_key(&group) || self.ended.contains_key(&group)
    }

    fn begin_part(&self, group: GroupId) -> Result<Replica<S>, Reject> {
        let is_founded = !self.begins_at_once(group) && !self.is_by_registry(group);
        if self.may_found() && is_founded {
            let founders = self.founders(group);
            if founders.contains(&self.me.id)
                && let Some(replica) = self.found(group, &founders)?
            {
                return Ok(replica);
            }
        }
        self.newcomer(0)
    }

    /// Returns true if it is one of the nodes that found the registry: they follow from generation 0
    /// of the site.
    pub(crate) fn is_founder_of_registry(&self) -> bool {
        let group = GroupId::REGISTRY;
        let is_new = S::HAS_REGISTRY && self.may_found() && !self.was_in(group);
        is_new && self.founders(group).contains(&self.me.id)
    }

    /// A part in a group of which nothing is stored but the mark. It votes also where the group
    /// named a life that answered an inquiry, and then lost power.
    fn newcomer(&self, mark: u64) -> Result<Replica<S>, Reject> {
        let newcomer = Replica::newcomer_since(self.me, self.config.replica, self.since, mark);
        newcomer.map_err(Reject::from)
    }

    /// Returns true if a group begins with the site. A founder of such a group had a part from the
    /// beginning.
    fn begins_at_once(&self, group: GroupId) -> bool {
        S::groups(&self.site).contains(&group)
    }

    /// Gives a new replica this node's knowledge of other nodes.
    pub(crate) fn introduce(&mut self, group: GroupId, cx: &mut Context<'_, Self>) {
        let known = self.plan.known().zip(&self.peers);
        let deltas: Vec<Delta> = known
            .filter_map(|(id, peer)| {
                let peer = (*peer)?;
                let member = Member {
                    id,
                    incarnation: peer.incarnation,
                };
                Some(match peer.has_ended {
                    true => Delta::Failed(member),
                    false => Delta::Joined(member),
                })
            })
            .collect();
        for delta in deltas {
            if delta.member().id != self.me.id {
                let _refused = self.step(group, Input::Membership(delta), cx).is_err();
            }
        }
    }

    /// Leaves a group: the node keeps the last configuration that it knows.
    pub(crate) fn leave(&mut self, group: GroupId, cx: &mut Context<'_, Self>) {
        let Some(part) = self.parts.remove(&group) else {
            return;
        };
        self.disarm(group, &part, cx);
        if group == GroupId::REGISTRY {
            self.registrar.stop_leading();
        }
        let configuration = Box::new(part.replica.configuration().clone());
        let configuration = match configuration.voters.is_empty() {
            // It never knew one. A mark from before counts on.
            true => self.marks.get(&group).cloned().unwrap_or(configuration),
            false => configuration,
        };
        let is_known = configuration.number > 0;
        let fact = crate::Fact::Left {
            group,
            plan: self.adoption.origin.unwrap_or_default(),
            configuration: configuration.clone(),
        };
        if is_known || part.is_stored {
            cx.event(Event::Fact(fact));
        }
        if is_known && !self.rules.no_mark() {
            self.marks.insert(group, configuration);
            self.ended.remove(&group);
        }
        if part.is_entered {
            cx.event(Event::Left(group));
        }
    }

    /// Asks these nodes to found the registry, at a founder that has lost its memory. If all restarted one after
    /// another, none would be left that may found it.
    pub(crate) fn wake_registry(&mut self, nodes: &[NodeId]) {
        let group = GroupId::REGISTRY;
        let is_first = S::HAS_REGISTRY && self.has_site() && self.generation() == 0;
        let hint = self.leader_hints.get(group);
        let is_there = self.parts.contains_key(&group)
            || self.was_in(group)
            || hint.is_some_and(|it| it.number() > 0);
        if !is_first || self.start == Start::Fresh || is_there {
            return;
        }
        let founders = self.founders(group);
        if !founders.contains(&self.me.id) {
            return;
        }
        let others = founders.into_iter().filter(|it| *it != self.me.id);
        for to in others.filter(|it| nodes.contains(it)) {
            let find = Item::Find { group, lost: 0 };
            self.posted.0.push((self.latest(to), find));
        }
    }

    /// Founds the registry with its first question, at a founder.
    pub(crate) fn enter_registry(&mut self, cx: &mut Context<'_, Self>) {
        let registry = GroupId::REGISTRY;
        if !self.parts.contains_key(&registry) && self.is_founder_of_new(registry) {
            self.enter(registry, cx);
        }
    }
}
