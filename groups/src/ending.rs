//! The end of a group's beginning, so that the group begins anew by itself.
//!
//! A node that is away cannot be told from one that goes on elsewhere. So a group begins anew by
//! itself only when its present beginning can decide nothing more: when all nodes of the site, but
//! for as many as may fail, have promised to take no further part in it. Each configuration has
//! twice that number of voters and one more, so the others are no quorum of any, whichever
//! configurations were decided.
//!
//! The registry's leader asks twice. The first question binds nobody: the group goes on if its latest
//! known members may still be a quorum. The second one has each node leave the group and store the
//! promise; from then on there is no way back. A node that loses its memory keeps the promise too:
//! its former life is no member any more, and a later one is named by a quorum alone.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use selvedge_core::wire::List;
use selvedge_core::{Context, Member, NodeId};
use selvedge_replica::Configuration;

use crate::leader_hints::OLD;
use crate::registry::{Registry, first_number, instance};
use crate::state::Carried;
use crate::{Begins, Event, Fact, GroupId, Groups, Item, Timer};

/// The most groups of which the registry's leader asks at once.
const AT_ONCE: usize = 16;

/// The rounds of questions before it gives up, until the loss is reported again.
const ROUNDS: u8 = 8;

/// The question of the registry's leader about one group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ending {
    call: u64,
    /// The number by which nodes are bound: above those of this beginning, below those of the next.
    end: u64,
    is_binding: bool,
    rounds: u8,
    known: BTreeMap<NodeId, Known>,
}

/// A node's knowledge of a group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Known {
    /// The number of the latest configuration, or of the promise.
    pub(crate) number: u64,
    /// True if the node may vote in this beginning.
    pub(crate) votes: bool,
    /// The members of that configuration.
    pub(crate) members: List<NodeId, 5>,
}

/// The number between the configurations of an instance and those of the next one.
const fn end_of(instance: u64) -> u64 {
    first_number(instance + 1) - 1
}

impl<S: Begins, P: Carried> Groups<S, P> {
    /// Reports groups without a quorum to the registry's leader, if they may begin anew by themselves.
    pub(crate) fn report_lost(&mut self, lost: Vec<GroupId>, cx: &mut Context<'_, Self>) {
        let may_begin = |it: &GroupId| S::begins_anew(&self.site, *it);
        self.registrar.lost = lost.into_iter().filter(may_begin).collect();
        if self.registrar.lost.is_empty() {
            return;
        }
        self.enter_registry(cx);
        if self.leads(GroupId::REGISTRY) {
            for group in self.registrar.lost.clone() {
                self.on_lost(self.me, group, cx);
            }
            return;
        }
        for to in self.likely(GroupId::REGISTRY) {
            self.report_lost_to(to);
        }
    }

    pub(crate) fn report_lost_to(&mut self, leader: NodeId) {
        let to = self.latest(leader);
        let lost = self.registrar.lost.iter();
        let items = lost.map(|group| (to, Item::Lost { group: *group }));
        self.posted.0.extend(items);
    }

    /// The groups of which this node is a founder and has had no news for whole epochs. A group's
    /// leader sends its place to all founders in each epoch.
    pub(crate) fn silent_groups(&self) -> Vec<GroupId> {
        if !S::HAS_REGISTRY || !self.has_site() || self.registrar.epochs < OLD {
            return Vec::new();
        }
        let all = S::groups(&self.site).into_iter();
        let all = all.filter(|it| S::begins_anew(&self.site, *it));
        let silent = all.filter(|it| {
            let part = self
                .replica(*it)
                .filter(|it| !it.configuration().voters.is_empty());
            let hint = self.leader_hints.get(*it);
            part.is_none() && hint.is_none_or(|it| it.epochs() >= OLD)
        });
        let silent = silent.filter(|it| self.founders(*it).contains(&self.me.id));
        silent.collect()
    }

    /// Handles the report of a loss.
    pub(crate) fn on_lost(&mut self, from: Member, group: GroupId, cx: &mut Context<'_, Self>) {
        self.enter_registry(cx);
        if !self.leads(GroupId::REGISTRY) {
            let place = self.whereabouts(GroupId::REGISTRY);
            return self.posted.0.extend(place.map(|it| (from, it)));
        }
        let endings = &self.registrar.endings;
        let is_asked = endings.contains_key(&group) || self.registrar.due.contains_key(&group);
        let end = end_of(self.births_of(group));
        let is_last = end >= Configuration::NUMBER_MAX;
        if !S::begins_anew(&self.site, group) || is_asked || is_last || endings.len() >= AT_ONCE {
            return;
        }
        self.inquiries = self.inquiries.wrapping_add(1);
        let ending = Ending {
            call: self.inquiries,
            end,
            is_binding: false,
            rounds: 0,
            known: BTreeMap::new(),
        };
        self.registrar.endings.insert(group, ending);
        self.ask_about_end(group, cx);
        cx.arm(Timer::Ending, self.config.replica.resend);
    }

    /// The number of the present beginning of a group, as the registry has decided it.
    fn births_of(&self, group: GroupId) -> u64 {
        let birth = self.registry().and_then(|it| it.birth(group));
        birth.map_or(0, |it| instance(it.number))
    }

    /// Asks all nodes that have not answered.
    fn ask_about_end(&mut self, group: GroupId, cx: &mut Context<'_, Self>) {
        let Some(ending) = self.registrar.endings.get_mut(&group) else {
            return;
        };
        ending.rounds += 1;
        let (call, number, is_binding) = (ending.call, ending.end, ending.is_binding);
        let known = &ending.known;
        let is_open = |id: &NodeId| match is_binding {
            true => known.get(id).is_none_or(|it| it.number < number),
            false => !known.contains_key(id),
        };
        let me = self.me.id;
        let open: Vec<NodeId> = self
            .plan
            .known()
            .filter(|it| *it != me && is_open(it))
            .collect();
        let item = Item::End {
            group,
            call,
            number,
            is_binding,
        };
        let items = open.into_iter().map(|it| (self.latest(it), item.clone()));
        let items: Vec<_> = items.collect();
        self.posted.0.extend(items);
        if is_binding {
            self.end(group, number, cx);
        }
        let own = self.known_of(group, number);
        self.on_known(me, group, call, own, cx);
    }

    pub(crate) fn on_ending_tick(&mut self, cx: &mut Context<'_, Self>) {
        self.registrar.endings.retain(|_, it| it.rounds < ROUNDS);
        let open: Vec<GroupId> = self.registrar.endings.keys().copied().collect();
        for group in open {
            self.ask_about_end(group, cx);
        }
        if !self.registrar.endings.is_empty() {
            cx.arm(Timer::Ending, self.config.replica.resend);
        }
    }

    /// Handles the question of the registry's leader, and the promise that it asks for.
    pub(crate) fn on_end(
        &mut self,
        from: Member,
        group: GroupId,
        (call, number, is_binding): (u64, u64, bool),
        cx: &mut Context<'_, Self>,
    ) {
        let is_end = number == end_of(instance(number).saturating_sub(1));
        let is_right = is_end && number < Configuration::NUMBER_MAX;
        if !is_right || !S::begins_anew(&self.site, group) {
            self.counters.0.refused += 1;
            return;
        }
        self.received(GroupId::REGISTRY, from);
        if is_binding {
            self.end(group, number, cx);
        }
        let Known {
            number,
            votes,
            members,
        } = self.known_of(group, number);
        let ended = Item::Ended {
            group,
            life: from.incarnation.0,
            call,
            number,
            votes,
            members,
        };
        self.posted.0.push((from, ended));
    }

    /// Takes no further part in the beginning of a group before this number.
    fn end(&mut self, group: GroupId, number: u64, cx: &mut Context<'_, Self>) {
        if self.mark(group) >= number {
            return;
        }
        self.leave(group, cx);
        self.marks.remove(&group);
        self.ended.insert(group, number);
        let plan = self.adoption.origin.unwrap_or_default();
        cx.event(Event::Fact(Fact::Ended {
            group,
            plan,
            number,
        }));
    }

    /// The latest configuration of a group that this node knows, from its own memory or from others.
    fn known_of(&self, group: GroupId, end: u64) -> Known {
        let replica = self.replica(group);
        let own = replica.map(|it| it.configuration());
        let own = own.or_else(|| self.marks.get(&group).map(|it| &**it));
        let own = own.filter(|it| it.number > 0);
        let hint = self.leader_hints.get(group);
        let hinted = hint.filter(|it| it.last_number() < end && it.is_behind(self.mark(group)));
        let (number, members) = match (hinted, own) {
            (Some(hint), _) => (hint.last_number(), hint.members.iter().copied().collect()),
            (None, Some(own)) => (own.number, own.members().map(|it| it.member.id).collect()),
            (None, None) => (0, List::new()),
        };
        let is_present = |it: u64| it > 0 && end_of(instance(it)) == end;
        let votes = replica.is_some_and(|it| it.votes() && is_present(it.configuration().number));
        Known {
            number: number.max(self.mark(group)),
            votes,
            members,
        }
    }

    /// Handles the answer of a node, at the registry's leader.
    pub(crate) fn on_known(
        &mut self,
        from: NodeId,
        group: GroupId,
        call: u64,
        known: Known,
        cx: &mut Context<'_, Self>,
    ) {
        let endings = &mut self.registrar.endings;
        let Some(ending) = endings.get_mut(&group).filter(|it| it.call == call) else {
            return; // The answer to a question that has ended.
        };
        let promised = ending
            .known
            .get(&from)
            .is_some_and(|it| it.number >= ending.end);
        if !promised {
            ending.known.insert(from, known);
        }
        let ending = ending.clone();
        if self.has_ended_all(group, &ending) {
            self.registrar.endings.remove(&group);
            return self.begin_after(group, ending.end - 1, cx);
        }
        if !ending.is_binding && self.is_beyond_recovery(group, &ending) {
            if self.rules.ends_unasked() {
                self.registrar.endings.remove(&group);
                return self.begin_after(group, ending.end - 1, cx);
            }
            if let Some(ending) = self.registrar.endings.get_mut(&group) {
                ending.is_binding = true;
                ending.rounds = 0;
            }
            self.ask_about_end(group, cx);
        }
    }

    /// Returns true if all nodes but as many as may fail have promised: then this beginning of the
    /// group has no quorum, whatever its configurations are. A node that the site has no more counts
    /// while it is present.
    fn has_ended_all(&self, group: GroupId, ending: &Ending) -> bool {
        let is_open = |id: NodeId| {
            ending
                .known
                .get(&id)
                .is_none_or(|it| it.number < ending.end)
        };
        let open = self.plan.nodes().iter().filter(|it| is_open(it.id));
        let mut former = self.plan.known().filter(|it| !self.plan.names(*it));
        let is_former_here = former.any(|it| self.is_here(it) && is_open(it));
        !is_former_here && open.count() <= self.plan.failures::<S>(group).into()
    }

    /// Returns true if too many members of the latest known configuration have lost their memory. A node
    /// that has not answered may have its memory.
    fn is_beyond_recovery(&self, group: GroupId, ending: &Ending) -> bool {
        let known = &ending.known;
        let silent = self
            .plan
            .nodes()
            .iter()
            .filter(|it| !known.contains_key(&it.id));
        if silent.count() > self.plan.failures::<S>(group).into() {
            return false;
        }
        if known.values().any(|it| it.number >= ending.end) {
            return true; // A former leader of the registry has begun to end it.
        }
        let birth = self.registry().and_then(|it: &Registry| it.birth(group));
        let first = birth.map_or(0, |it| it.number);
        let latest = known.values().max_by_key(|it| it.number);
        let latest = latest.filter(|it| it.number > first);
        let members: Vec<NodeId> = match (latest, birth) {
            (Some(latest), _) => latest.members.iter().copied().collect(),
            (None, Some(birth)) => birth.founders.iter().map(|it| it.id).collect(),
            (None, None) => self.founders(group),
        };
        // Nodes that the site has no more, and that are away, are taken to be off.
        let counts = |it: NodeId| self.plan.names(it) || self.is_here(it);
        let may_vote = |it: &&NodeId| match known.get(it) {
            Some(known) => known.votes,
            None => counts(**it),
        };
        2 * members.iter().filter(may_vote).count() <= members.len()
    }
}
