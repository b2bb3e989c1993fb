//! The end of a group's beginning, so that the group begins anew by itself.
//!
//! A node that is away may go on elsewhere. So a group begins anew by itself only when its present
//! beginning can decide nothing more: when all nodes of the site, but for as many as may fail, have
//! promised to take no further part in it. Each configuration has twice that number of voters and
//! one more, so the others are no quorum of any, whichever configurations were decided.
//!
//! The registry's leader asks in rounds, and a round counts when all nodes but as many as may fail have
//! answered.
//!
//! 1. Some rounds bind nobody. The group goes on unless each of them finds that its latest known members are no
//!    quorum any more, or that no node knows a member: a single round may fall into a change of members.
//! 2. A binding round has each node leave the group and store the promise. From then on there is no way back.
//! 3. Another one finds the same nodes in the same lives. Else a node may have promised, lost its memory, and been
//!    named again by a quorum that had not promised yet. Between the two rounds all promises held at
//!    one time, so there is no quorum that could name a later life.
//!
//! All rounds are of one generation of the site, and so is the next beginning.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::mem;

use selvedge_core::wire::List;
use selvedge_core::{Context, Incarnation, Member, NodeId, Span};
use selvedge_replica::Configuration;

use crate::leader_hints::{Hint, OLD, UNANSWERED};
use crate::registry::{BIRTHS_MAX, first_number, instance};
use crate::route::MEMBERS_MAX;
use crate::state::Carried;
use crate::{Begins, Event, Fact, GroupId, Groups, Item, Timer};

/// The most groups of which the registry's leader asks at once.
const AT_ONCE: usize = 16;

/// The most groups that wait for that. Others are reported again.
const REPORTED: usize = 4_096;

/// The questions of a round before the leader gives up, until the loss is reported again.
const QUESTIONS: u8 = 8;

/// The ticks for which a node reports a loss, until the next epoch.
const REPORTED_FOR: u8 = 16;

/// The rounds before the leader gives up.
const ROUNDS: u8 = 16;

/// The rounds that bind nobody.
const TRIALS: u8 = 3;

/// The times that founders are notified of a beginning before the group can be lost.
const NOTIFIED: u8 = 3;

/// The question of the registry's leader about one group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ending {
    /// The number of the round.
    call: u64,
    /// The number by which nodes are bound: above those of this beginning, below those of the next.
    end: u64,
    is_binding: bool,
    /// The questions of this round.
    asked: u8,
    /// The ticks before the next round.
    rests: u64,
    /// The rounds so far.
    rounds: u8,
    /// The rounds in which the group was beyond recovery, and the latest configuration in them.
    trials: u8,
    latest: u64,
    /// The lives that had promised in the round before.
    promised: BTreeMap<NodeId, Incarnation>,
    /// The answers of this round.
    known: BTreeMap<NodeId, Known>,
}

/// A node's knowledge of a group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Known {
    pub(crate) life: Incarnation,
    /// The first life of which it has all memory.
    pub(crate) since: Incarnation,
    /// The number of the last configuration that it knows as a member, or of its promise.
    pub(crate) mark: u64,
    /// True if the node may vote in this beginning.
    pub(crate) votes: bool,
    /// The number of the latest configuration that it knows, also from others.
    pub(crate) number: u64,
    /// The members of that configuration, in the lives in which it names them.
    pub(crate) members: List<Member, 1>,
}

/// The number between the configurations of an instance and those of the next one.
const fn end_of(instance: u64) -> u64 {
    first_number(instance + 1) - 1
}

impl<S: Begins, P: Carried> Groups<S, P> {
    fn may_begin_anew(&self, group: GroupId) -> bool {
        let is_other = S::HAS_REGISTRY && group != GroupId::REGISTRY;
        is_other && S::exists(&self.site, group) && S::begins_anew(&self.site, group)
    }

    /// Reports groups without a quorum to the registry's leader, if they may begin anew by themselves.
    pub(crate) fn report_lost(&mut self, lost: Vec<GroupId>, cx: &mut Context<'_, Self>) {
        let lost = lost.into_iter().filter(|it| self.may_begin_anew(*it));
        self.registrar.lost = lost.collect();
        self.registrar.waits = 0;
        if !self.registrar.lost.is_empty() {
            self.report_losses(cx);
            self.arm_site(cx);
        }
    }

    /// Reports the losses again after 1, 2, 4 and so on ticks: as an epoch begins, the registry gets another
    /// leader as well. Returns true while another report is due.
    pub(crate) fn report_lost_again(&mut self, cx: &mut Context<'_, Self>) -> bool {
        if self.registrar.lost.is_empty() {
            return false;
        }
        self.registrar.waits = self.registrar.waits.saturating_add(1);
        let is_open = self.registrar.waits <= REPORTED_FOR;
        if is_open && self.registrar.waits.is_power_of_two() {
            self.report_losses(cx);
        }
        is_open
    }

    fn report_losses(&mut self, cx: &mut Context<'_, Self>) {
        self.enter_registry(cx);
        if self.leads(GroupId::REGISTRY) {
            for group in self.registrar.lost.clone() {
                self.on_lost(self.me, group, self.lost_number(group), cx);
            }
            return;
        }
        self.leader_hints.used(GroupId::REGISTRY).count();
        for to in self.likely(GroupId::REGISTRY) {
            self.report_lost_to(to);
        }
    }

    /// The number of the beginning that this node reports as lost. The registry's leader names the next one to a
    /// part of a former beginning.
    fn lost_number(&self, group: GroupId) -> u64 {
        let own = self.replica(group).map(|it| it.configuration().number);
        match own.filter(|it| *it > 0) {
            Some(_) => self.mark(group),
            None => self.latest_number(group),
        }
    }

    pub(crate) fn report_lost_to(&mut self, leader: NodeId) {
        let to = self.latest(leader);
        for &group in &self.registrar.lost {
            let number = self.lost_number(group);
            self.posted.0.push((to, Item::Lost { group, number }));
        }
    }

    /// The groups of which this node is a founder and has had no news for whole epochs. A group's
    /// leader sends its place to all founders in each epoch.
    pub(crate) fn silent_groups(&self) -> Vec<GroupId> {
        if !S::HAS_REGISTRY || !self.has_site() || self.registrar.epochs < OLD {
            return Vec::new();
        }
        let has_leader = |hint: &Hint<P>| {
            let is_recent = hint.epochs() < OLD && hint.unanswered() <= UNANSWERED;
            is_recent && hint.leader.is_some() && hint.is_behind(0)
        };
        let all = S::groups(&self.site).into_iter();
        let all = all.filter(|it| self.may_begin_anew(*it));
        let silent = all.filter(|it| {
            let own = self.replica(*it);
            let is_known = own.is_some_and(|it| it.votes() || it.leader().is_some());
            !is_known && !self.leader_hints.get(*it).is_some_and(has_leader)
        });
        let founders = self.plan.founders_of::<S>(&self.site, silent);
        let own = founders.iter().filter(|it| it.1.contains(&self.me.id));
        own.map(|it| it.0).collect()
    }

    /// The groups that this node has promised to end, and that have not begun anew as far as it knows.
    pub(crate) fn ended_groups(&self) -> Vec<GroupId> {
        let has_hint = |group: GroupId, end: u64| {
            let hint = self.leader_hints.get(group);
            hint.is_some_and(|it| it.last_number() > end)
        };
        let ended = self.ended.iter().map(|it| (*it.0, *it.1));
        let open = ended.filter(|it| !self.parts.contains_key(&it.0) && !has_hint(it.0, it.1));
        open.map(|it| it.0).collect()
    }

    /// Handles the report of a loss, from a node that knows configurations up to this number.
    pub(crate) fn on_lost(
        &mut self,
        from: Member,
        group: GroupId,
        number: u64,
        cx: &mut Context<'_, Self>,
    ) {
        self.enter_registry(cx);
        if !self.leads(GroupId::REGISTRY) {
            let place = self.whereabouts(GroupId::REGISTRY);
            return self.posted.0.extend(place.map(|it| (from, it)));
        }
        if !self.may_begin_anew(group) {
            return;
        }
        let birth = self.registry().and_then(|it| it.birth(group));
        if let Some(birth) = birth.filter(|it| it.number > number).cloned() {
            // The group has begun anew since.
            return self.send_birth(from, group, birth, cx);
        }
        if from.id != self.me.id {
            // Its life may be later than the last news of the group's leader.
            let place = self.whereabouts(group);
            self.posted.0.extend(place.map(|it| (from, it)));
        }
        let registrar = &mut self.registrar;
        if registrar.reported.len() < REPORTED {
            registrar.reported.insert(group);
        }
        if registrar.endings.is_empty() {
            self.begin_endings(cx);
        }
    }

    /// Asks about the groups that were reported, as many at once as may be.
    fn begin_endings(&mut self, cx: &mut Context<'_, Self>) {
        while self.registrar.endings.len() < AT_ONCE
            && let Some(group) = self.registrar.reported.pop_first()
        {
            self.begin_ending(group);
        }
        if !self.registrar.endings.is_empty() {
            cx.arm(Timer::Ending, Span::ZERO);
        }
    }

    fn begin_ending(&mut self, group: GroupId) {
        let registrar = &self.registrar;
        let is_new = registrar.open.get(&group).is_some_and(|it| *it < NOTIFIED);
        if is_new || registrar.endings.contains_key(&group) || registrar.due.contains_key(&group) {
            return;
        }
        let births = self.registry().map_or(0, |it| it.births().len());
        let is_born = self.registry().is_some_and(|it| it.birth(group).is_some());
        let end = end_of(self.births_of(group));
        let has_room = is_born || births + registrar.due.len() < BIRTHS_MAX;
        if end >= Configuration::NUMBER_MAX || !has_room || !self.may_begin_anew(group) {
            return;
        }
        let ending = Ending {
            call: 0,
            end,
            is_binding: false,
            asked: 0,
            rests: 0,
            rounds: 0,
            trials: 0,
            latest: 0,
            promised: BTreeMap::new(),
            known: BTreeMap::new(),
        };
        let ending = self.next_round(ending, 0);
        self.registrar.endings.extend(ending.map(|it| (group, it)));
    }

    /// Another round. Answers of the one before do not count. `None` after too many.
    fn next_round(&mut self, ending: Ending, rests: u64) -> Option<Ending> {
        self.inquiries = self.inquiries.wrapping_add(1);
        let is_left = ending.rounds < ROUNDS;
        is_left.then(|| Ending {
            call: self.inquiries,
            asked: 0,
            rests,
            known: BTreeMap::new(),
            rounds: ending.rounds + 1,
            ..ending
        })
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
        if ending.rests > 0 {
            ending.rests -= 1;
            return;
        }
        ending.asked += 1;
        let (call, number, is_binding) = (ending.call, ending.end, ending.is_binding);
        if is_binding {
            self.end(group, number, cx);
        }
        let own = self.known_of(group, number);
        let item = Item::End {
            group,
            call,
            number,
            is_binding,
        };
        let Some(ending) = self.registrar.endings.get_mut(&group) else {
            return;
        };
        let me = self.me.id;
        ending.known.insert(me, own);
        let open = self
            .plan
            .known()
            .filter(|it| !ending.known.contains_key(it));
        let open: Vec<NodeId> = open.collect();
        let items = open.into_iter().map(|it| (self.latest(it), item.clone()));
        let items: Vec<_> = items.collect();
        self.posted.0.extend(items);
    }

    /// Ends rounds, and asks again.
    pub(crate) fn on_ending_tick(&mut self, cx: &mut Context<'_, Self>) {
        for (group, ending) in mem::take(&mut self.registrar.endings) {
            if let Some(ending) = self.after_round(group, ending, cx) {
                self.registrar.endings.insert(group, ending);
            }
        }
        let open: Vec<GroupId> = self.registrar.endings.keys().copied().collect();
        for group in open {
            self.ask_about_end(group, cx);
        }
        if !self.registrar.reported.is_empty() && self.registrar.endings.len() < AT_ONCE {
            self.begin_endings(cx);
        }
        if !self.registrar.endings.is_empty() {
            cx.arm(Timer::Ending, self.config.replica.resend);
        }
    }

    /// The question as it goes on. `None` where it is over.
    fn after_round(
        &mut self,
        group: GroupId,
        ending: Ending,
        cx: &mut Context<'_, Self>,
    ) -> Option<Ending> {
        let is_answered = |id: NodeId| ending.known.contains_key(&id);
        if !self.are_all_but_failures(group, is_answered) {
            return (ending.asked < QUESTIONS).then_some(ending);
        }
        if !ending.is_binding {
            return self.after_trial(group, ending, cx);
        }
        let has_promised = |id: NodeId| ending.life_that_promised(id).is_some();
        if !self.are_all_but_failures(group, has_promised) {
            return (ending.asked < QUESTIONS).then_some(ending);
        }
        let is_confirmed = |id: NodeId| {
            let life = ending.life_that_promised(id);
            life.is_some() && life == ending.promised.get(&id).copied()
        };
        if self.are_all_but_failures(group, is_confirmed) {
            self.begin_after(group, ending.end - 1, cx);
            return None;
        }
        let all = ending.known.keys().copied();
        let promised = all.filter_map(|it| Some((it, ending.life_that_promised(it)?)));
        let promised = promised.collect();
        self.next_round(Ending { promised, ..ending }, 0)
    }

    /// A round that bound nobody is over.
    fn after_trial(
        &mut self,
        group: GroupId,
        mut ending: Ending,
        cx: &mut Context<'_, Self>,
    ) -> Option<Ending> {
        let latest = ending.known.values().map(|it| it.number).max();
        let latest = latest.unwrap_or_default();
        if !self.is_beyond_recovery(group, &ending) {
            // Another node may answer yet.
            let is_open = |it: NodeId| self.is_here(it) && !ending.known.contains_key(&it);
            let waits = ending.asked < QUESTIONS && self.plan.known().any(is_open);
            if !waits {
                self.note_place(group, &ending, cx);
            }
            return waits.then_some(ending);
        }
        ending.trials = match latest == ending.latest {
            true => ending.trials + 1,
            false => 1,
        };
        ending.latest = latest;
        ending.is_binding = ending.trials >= TRIALS;
        if ending.is_binding && self.rules.ends_unasked() {
            self.begin_after(group, ending.end - 1, cx);
            return None;
        }
        let rests = match ending.is_binding {
            true => 0,
            false => self.config.patience.0 / self.config.replica.resend.0.max(1),
        };
        self.next_round(ending, rests)
    }

    /// Notes the place of a group that is not lost, for the nodes that report it again.
    fn note_place(&mut self, group: GroupId, ending: &Ending, cx: &mut Context<'_, Self>) {
        let Some(latest) = self.latest_of(group, ending) else {
            return;
        };
        let number = latest.number;
        let members: Vec<Member> = latest.members.iter().copied().collect();
        if !members.iter().all(|it| self.plan.place(it.id).is_some()) {
            return; // Of a site that this node does not have yet.
        }
        // No answer named a leader.
        let hint = self.leader_hints.get_mut(group);
        if let Some(hint) = hint.filter(|it| it.number() <= number) {
            hint.leader = None;
        }
        self.on_where(group, number, None, &members, cx);
    }

    /// The answer with the latest configuration of the present beginning.
    fn latest_of<'a>(&self, group: GroupId, ending: &'a Ending) -> Option<&'a Known> {
        let birth = self.registry().and_then(|it| it.birth(group));
        let first = birth.map_or(1, |it| it.number);
        let is_later = |it: &&Known| it.number >= first && !it.members.is_empty();
        let later = ending.known.values().filter(is_later);
        later.max_by_key(|it| (it.number, it.mark == it.number))
    }

    /// Returns true if something is so at all nodes of the site but as many as may fail, and at each present node
    /// that the site has no more: these may still be members.
    fn are_all_but_failures(&self, group: GroupId, is_so: impl Fn(NodeId) -> bool) -> bool {
        let open = self.plan.nodes().iter().filter(|it| !is_so(it.id));
        let mut former = self.plan.known().filter(|it| !self.plan.names(*it));
        let is_former_open = former.any(|it| self.is_here(it) && !is_so(it));
        !is_former_open && open.count() <= self.plan.failures::<S>(group).into()
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
        if !is_right || !self.may_begin_anew(group) {
            self.counters.0.refused += 1;
            return;
        }
        self.received(GroupId::REGISTRY, from);
        if is_binding {
            self.end(group, number, cx);
        }
        let known = self.known_of(group, number);
        let ended = Item::Ended {
            group,
            life: from.incarnation.0,
            since: known.since.0,
            call,
            mark: known.mark,
            votes: known.votes,
            number: known.number,
            members: known.members,
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
        let own = own.filter(|it| it.number > 0);
        let own = own.or_else(|| self.marks.get(&group).map(|it| &**it));
        let hint = self.leader_hints.get(group);
        let is_later = |number: u64| self.mark(group) < number && number < end;
        let hinted = hint.filter(|it| is_later(it.last_number()));
        let (number, members) = match (hinted, own) {
            (Some(hint), _) => {
                let members = hint.last_members().iter().copied();
                (hint.last_number(), members.collect())
            }
            (None, Some(own)) => (own.number, own.members().map(|it| it.member).collect()),
            (None, None) => (0, List::new()),
        };
        let is_present = |it: u64| it > 0 && end_of(instance(it)) == end;
        let votes = replica.is_some_and(|it| it.votes() && is_present(it.configuration().number));
        Known {
            life: self.me.incarnation,
            since: self.since,
            mark: self.mark(group),
            votes,
            number,
            members,
        }
    }

    /// Handles the answer of a node, at the registry's leader.
    pub(crate) fn on_known(&mut self, from: NodeId, group: GroupId, call: u64, known: Known) {
        let ending = self.registrar.endings.get_mut(&group);
        // Others answer a round that has ended.
        let is_right = known.members.len() <= MEMBERS_MAX;
        if let Some(ending) = ending.filter(|it| is_right && it.call == call && it.asked > 0) {
            ending.known.insert(from, known);
        }
    }

    /// Returns true if too many members of the latest known configuration have lost their memory. A node
    /// that has not answered may have its memory.
    fn is_beyond_recovery(&self, group: GroupId, ending: &Ending) -> bool {
        let known = &ending.known;
        if known.values().any(|it| it.mark >= ending.end) {
            return true; // A former leader of the registry has begun to end it.
        }
        let birth = self.registry().and_then(|it| it.birth(group));
        let first = birth.map_or(1, |it| it.number);
        let latest = self.latest_of(group, ending);
        let number = latest.map_or(first, |it| it.number);
        let members: Vec<Member> = match (latest, birth) {
            (Some(latest), _) => latest.members.iter().copied().collect(),
            (None, Some(birth)) => birth.founders.iter().copied().collect(),
            (None, None) if self.generation() == 0 => {
                let founders = self.founders(group).into_iter();
                founders.map(|it| Member::new(it.0, 0)).collect()
            }
            // The founders do not follow from a later generation of the site. All nodes but as many as may fail
            // have answered, and where none remembers a configuration no quorum of one does.
            (None, None) => return !known.values().any(|it| it.votes),
        };
        // Nodes that the site has no more, and that are away, are off.
        let counts = |it: NodeId| self.plan.names(it) || self.is_here(it);
        let may_vote = |it: &&Member| match known.get(&it.id) {
            // It may not have learned yet that it is a member.
            Some(known) => {
                let has_memory = it.incarnation.is_within(known.since, known.life);
                known.votes || known.mark < number && has_memory
            }
            None => counts(it.id),
        };
        2 * members.iter().filter(may_vote).count() <= members.len()
    }
}

#[cfg(feature = "check")]
impl crate::registrar::Registrar {
    /// Returns true if no part has grown beyond its limit.
    pub(crate) fn is_ending_bounded(&self, nodes: usize) -> bool {
        let is_bounded = |it: &Ending| it.known.len() <= nodes && it.promised.len() <= nodes;
        let waits = self.reported.len() <= REPORTED + AT_ONCE + BIRTHS_MAX;
        waits && self.endings.len() <= AT_ONCE && self.endings.values().all(is_bounded)
    }
}

impl Ending {
    /// The life in which a node has promised, in this round.
    fn life_that_promised(&self, id: NodeId) -> Option<Incarnation> {
        let known = self.known.get(&id)?;
        (known.mark >= self.end).then_some(known.life)
    }
}
