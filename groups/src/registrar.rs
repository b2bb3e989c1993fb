//! The beginning of groups by decision: the tasks of the registry's leader.
//!
//! A group that generation 0 of the site does not found begins with the members that the registry
//! decides, among nodes that are here: with its first question, or when a site of a later
//! generation has it. The registry names founders in the lives that it knows. So a founder that
//! begins again without its memory has no vote, and founds nothing twice.
//!
//! A group that lost its memory for good begins anew by the same decision. The numbers of its
//! configurations are higher than all before ([`number_after`]), so that messages of a former
//! beginning mean nothing to members of a later one.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::mem;

use selvedge_core::{Context, Input, Member, Span};
use selvedge_replica::{Command, Configuration, Replica};

use crate::ending::Ending;
use crate::find_group::{Finding, PRESENT};
use crate::founders::Call;
use crate::leader_hints::{Hint, OLD};
use crate::propose::Proposal;
use crate::registry::{BIRTHS_MAX, Birth, Registration, Registry, instance, number_after};
use crate::state::Carried;
use crate::{Begins, GroupId, Groups, Item, Reject, Timer};

/// The most nodes that wait at the registry's leader for a group to begin. Others ask again.
const FINDERS: usize = 256;

/// The most groups that begin at once, and that are notified of their beginning again.
const AT_ONCE: usize = 16;

/// The most doublings of the wait before founders are notified again.
const DOUBLINGS: u8 = 6;

/// The registry's tasks, and the questions of this node to its leader.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Registrar {
    /// The groups that this node looks for.
    pub(crate) finding: Finding,
    /// A site that this node proposes.
    pub(crate) proposal: Option<Proposal>,
    /// The number of sites that this node has proposed in this life.
    pub(crate) proposed: u64,
    /// True while this node leads the registry and has looked for its tasks.
    leads: bool,
    /// The groups that are to begin, with the last configuration before.
    pub(crate) due: BTreeMap<GroupId, u64>,
    /// The question to their founders.
    pub(crate) call: Option<Call>,
    finders: BTreeSet<(Member, GroupId)>,
    /// The groups that began, and whose leader is not known here: with the number of times that
    /// their founders were notified.
    pub(crate) open: BTreeMap<GroupId, u8>,
    /// The nodes that wait for an answer about a site.
    pub(crate) askers: BTreeSet<(Member, u64)>,
    /// True if a part of this node's proposal has arrived, and the next one is due.
    pub(crate) is_prompt: bool,
    /// True if this node has asked another leader of the registry since the last tick.
    has_asked: bool,
    /// The groups without a quorum that this node found when the epoch began.
    pub(crate) lost: BTreeSet<GroupId>,
    /// The ticks since then, as far as they are counted.
    pub(crate) waits: u8,
    /// The number of epochs that have begun in this life, up to [`OLD`].
    pub(crate) epochs: u8,
    /// The groups of which this leader asks if they have ended.
    pub(crate) endings: BTreeMap<GroupId, Ending>,
    /// The groups that were reported as lost, and of which it does not ask yet.
    pub(crate) reported: BTreeSet<GroupId>,
    /// For each group that began again, the number of beginnings before the latest one reported here.
    pub(crate) begun: BTreeMap<GroupId, u64>,
}

impl Registrar {
    pub(crate) const fn is_proposing(&self) -> bool {
        self.proposal.is_some()
    }

    /// This node leads the registry no more.
    pub(crate) fn stop_leading(&mut self) {
        self.leads = false;
        self.due.clear();
        self.call = None;
        self.finders.clear();
        self.open.clear();
        self.askers.clear();
        self.endings.clear();
        self.reported.clear();
    }

    /// Notes so many beginnings of a group before the present one. Returns false if they were noted before.
    pub(crate) fn note_begun(&mut self, group: GroupId, before: u64) -> bool {
        let is_new = self.begun.get(&group).is_none_or(|it| *it < before);
        if is_new {
            self.finding.on_begun(group);
            if self.begun.len() >= BIRTHS_MAX && !self.begun.contains_key(&group) {
                self.begun.pop_first(); // More than the registry begins: a node sent what was not decided.
            }
            self.begun.insert(group, before);
        }
        is_new
    }

    /// An epoch has begun: groups that nodes still look for are asked for again.
    pub(crate) fn on_epoch(&mut self) {
        self.finding.on_epoch();
        self.epochs = (self.epochs + 1).min(OLD);
    }

    /// Forgets groups that the site does not have, and questions to the nodes of the former site.
    pub(crate) fn forget(&mut self, exists: impl Fn(GroupId) -> bool) {
        self.finding.forget(&exists);
        self.begun.retain(|it, _| exists(*it));
        self.lost.retain(|it| exists(*it));
        self.reported.retain(|it| exists(*it));
        let endings = mem::take(&mut self.endings).into_keys();
        self.reported.extend(endings.filter(|it| exists(*it)));
        // Which of them were commands is not known here: a node that gave one asks again.
        let due = self.due.iter().filter(|it| *it.1 > 0 && exists(*it.0));
        self.reported.extend(due.map(|it| *it.0));
        self.due.retain(|_, lost| *lost == 0);
    }

    /// Returns true once between two ticks.
    pub(crate) const fn may_ask_at_once(&mut self) -> bool {
        !mem::replace(&mut self.has_asked, true)
    }

    /// Notes a tick. Returns true if it is for the next part of a proposal.
    pub(crate) const fn on_tick(&mut self) -> bool {
        self.has_asked = false;
        mem::replace(&mut self.is_prompt, false)
    }

    /// Returns true if no part has grown beyond its limit.
    #[cfg(feature = "check")]
    pub(crate) fn is_bounded(&self, hints: usize, nodes: usize) -> bool {
        self.finding.len() <= hints
            && self.finders.len() <= FINDERS
            && self.due.len() <= BIRTHS_MAX
            && self.open.len() <= BIRTHS_MAX
            && self.askers.len() <= FINDERS
            && self.begun.len() <= BIRTHS_MAX
            && self.is_ending_bounded(nodes)
    }
}

impl<S: Begins, P: Carried> Groups<S, P> {
    /// The registry, as far as this node knows.
    #[must_use]
    pub fn registry(&self) -> Option<&Registry> {
        self.state(GroupId::REGISTRY)?.registry()
    }

    /// Returns true if a group begins by a decision of the registry.
    pub(crate) fn is_by_registry(&self, group: GroupId) -> bool {
        S::HAS_REGISTRY && group != GroupId::REGISTRY && !S::is_founding(&self.site, group)
    }

    /// Handles a question for a group.
    pub(crate) fn on_find(
        &mut self,
        from: Member,
        group: GroupId,
        lost: u64,
        cx: &mut Context<'_, Self>,
    ) {
        self.enter_registry(cx);
        if !self.leads(GroupId::REGISTRY) {
            let place = self.whereabouts(GroupId::REGISTRY);
            return self.posted.0.extend(place.map(|it| (from, it)));
        }
        if group == GroupId::REGISTRY {
            let place = self.whereabouts(group);
            return self.posted.0.extend(place.map(|it| (from, it)));
        }
        if !S::exists(&self.site, group) {
            return; // Its site has the group, perhaps, and this one not yet.
        }
        let births = self.registry().map_or(0, |it| it.births().len());
        let is_full = births + self.registrar.due.len() >= BIRTHS_MAX;
        let birth = self.registry().and_then(|it| it.birth(group)).cloned();
        if lost == PRESENT {
            let present = birth.unwrap_or_else(Birth::before_all);
            return self.send_birth(from, group, present, cx);
        }
        if lost > Configuration::NUMBER_MAX || birth.is_none() && is_full {
            self.counters.0.refused += 1;
            return;
        }
        let known = birth.as_ref().map_or(0, |it| it.number);
        if instance(lost) > instance(known) {
            // The registry has decided all beginnings: nobody can know a later one.
            self.counters.0.refused += 1;
        }
        let is_anew = lost > 0 && instance(lost) == instance(known);
        let lost = if is_anew { lost } else { 0 };
        match birth {
            Some(birth) if !is_anew => {
                let is_open = self.registrar.open.contains_key(&group);
                self.registrar.open.entry(group).or_insert(0);
                self.send_birth(from, group, birth, cx);
                if is_open {
                    return; // Its founders are notified at intervals.
                }
            }
            None if !is_anew && S::is_founding(&self.site, group) => {
                return self.send_birth(from, group, Birth::before_all(), cx);
            }
            _ => {
                if self.registrar.finders.len() < FINDERS {
                    self.registrar.finders.insert((from, group));
                }
                let due = self.registrar.due.entry(group).or_default();
                *due = lost.max(*due);
            }
        }
        self.arm_registry(Span::ZERO, cx);
    }

    /// Registers another beginning of a group, after this last configuration.
    pub(crate) fn begin_after(&mut self, group: GroupId, last: u64, cx: &mut Context<'_, Self>) {
        let due = self.registrar.due.entry(group).or_default();
        *due = last.max(*due);
        self.arm_registry(Span::ZERO, cx);
    }

    pub(crate) fn send_birth(
        &mut self,
        to: Member,
        group: GroupId,
        birth: Birth,
        cx: &mut Context<'_, Self>,
    ) {
        if to.id == self.me.id {
            return self.on_born(to, group, birth, cx);
        }
        self.posted.0.push((to, Item::Born { group, birth }));
    }

    /// Looks after the registry, after a step of its replica.
    pub(crate) fn look_after_registry(&mut self, cx: &mut Context<'_, Self>) {
        self.adopt_decided(cx);
        let leads = self.leads(GroupId::REGISTRY);
        if !leads {
            return self.registrar.stop_leading();
        }
        if !mem::replace(&mut self.registrar.leads, true) {
            let births = self.registry().into_iter().flat_map(Registry::births);
            let births: BTreeMap<GroupId, u8> = births.map(|it| (it.0, 0)).collect();
            self.registrar.open = births;
            self.look_for_births(cx);
            // The former leader may have failed before the founders had the site that has the group.
            if !self.registrar.open.is_empty() {
                self.arm_registry(Span::ZERO, cx);
            }
            self.announce_generation();
        }
        self.note_births(cx);
        self.answer_proposals(cx);
        let finders = mem::take(&mut self.registrar.finders);
        for (from, group) in finders {
            let birth = self.registry().and_then(|it| it.birth(group)).cloned();
            match birth {
                Some(birth) if !self.registrar.due.contains_key(&group) => {
                    self.send_birth(from, group, birth, cx);
                }
                _ => {
                    self.registrar.finders.insert((from, group));
                }
            }
        }
        if self.is_registry_idle() && !self.registrar.due.is_empty() {
            self.arm_registry(Span::ZERO, cx);
        }
    }

    fn announce_generation(&mut self) {
        if self.generation() > 0 {
            self.announce_site_to_all();
        }
    }

    /// Looks for groups of the site that have not begun, at the registry's leader.
    pub(crate) fn look_for_births(&mut self, cx: &mut Context<'_, Self>) {
        let leads = self.leads(GroupId::REGISTRY);
        let Some(registry) = self.registry().filter(|_| leads) else {
            return;
        };
        let all = S::groups(&self.site).into_iter();
        let missing = all.filter(|it| self.is_by_registry(*it) && registry.birth(*it).is_none());
        let taken = registry.births().len() + self.registrar.due.len();
        let room = BIRTHS_MAX.saturating_sub(taken);
        let missing: Vec<(GroupId, u64)> = missing.take(room).map(|it| (it, 0)).collect();
        let is_any = !missing.is_empty();
        for (group, lost) in missing {
            self.registrar.due.entry(group).or_insert(lost);
        }
        if is_any {
            self.arm_registry(Span::ZERO, cx);
        }
    }

    /// Arms the timer of the registry's tasks, unless it is armed for a question to founders.
    fn arm_registry(&mut self, after: Span, cx: &mut Context<'_, Self>) {
        if self.registrar.call.is_none() {
            cx.arm(Timer::Registry, after);
        }
    }

    /// Proposes the beginning of groups that are due, and notifies founders again.
    pub(crate) fn on_registry_tick(&mut self, cx: &mut Context<'_, Self>) {
        if !self.leads(GroupId::REGISTRY) {
            return;
        }
        self.propose_births(cx);
        self.notify_of_births(cx);
        if self.registrar.call.is_some() {
            cx.arm(Timer::Registry, self.config.replica.resend);
        } else if !(self.registrar.due.is_empty() && self.registrar.open.is_empty()) {
            let least = self.registrar.open.values().min().copied().unwrap_or(0);
            let wait = self.config.replica.resend * (1 << least.min(DOUBLINGS));
            self.arm_registry(wait, cx);
        }
    }

    fn propose_births(&mut self, cx: &mut Context<'_, Self>) {
        if !self.is_registry_idle() {
            return;
        }
        let site = &self.site;
        self.registrar.due.retain(|it, _| S::exists(site, *it));
        let next = self.registrar.due.iter().take(AT_ONCE);
        let groups: Vec<GroupId> = next.map(|it| *it.0).collect();
        for (group, chosen) in self.choose_founders(&groups) {
            // A step of the registry may have changed the site, or ended this node's lead.
            let Some(&lost) = self.registrar.due.get(&group) else {
                continue;
            };
            let present = self.registry().and_then(|it| it.birth(group));
            let present = present.map_or(0, |it| it.number);
            let number = number_after(lost);
            if number > Configuration::NUMBER_MAX || number <= present {
                self.registrar.due.remove(&group);
                continue;
            }
            let founders = chosen.into_iter().map(|it| self.latest(it)).collect();
            let birth = Birth {
                number,
                generation: self.generation(),
                founders,
            };
            let birth = Registration::Birth { group, birth };
            let Some(update) = S::register(birth) else {
                return;
            };
            let propose = Input::Command(Command::Propose(update));
            let proposed = self.step(GroupId::REGISTRY, propose, cx);
            if let Err(Reject::Replica(selvedge_replica::Reject::TooLong { .. })) = proposed {
                self.counters.0.too_long += 1;
                self.registrar.due.remove(&group);
            }
        }
    }

    /// Notifies founders of groups whose leader is not known yet.
    fn notify_of_births(&mut self, cx: &mut Context<'_, Self>) {
        let mut open = mem::take(&mut self.registrar.open);
        let has_leader = |group: &GroupId, number: u64| {
            let own = self
                .replica(*group)
                .filter(|it| it.configuration().number >= number);
            let own = own.and_then(Replica::leader).is_some();
            let hint = self.leader_hints.get(*group);
            let lives = |it: &Hint<P>| it.number() == number && it.leader.is_some();
            // A later configuration was decided, perhaps long ago, so the group has begun.
            own || self.latest_number(*group) > number || hint.is_some_and(lives)
        };
        let registry = self.registry();
        open.retain(|group, _| {
            let birth = registry.and_then(|it| it.birth(*group));
            let exists = S::exists(&self.site, *group);
            exists && birth.is_some_and(|it| !has_leader(group, it.number))
        });
        let least = open.values().min().copied().unwrap_or_default();
        let waiting = open.iter_mut().filter(|it| *it.1 == least).take(AT_ONCE);
        let notified: Vec<GroupId> = waiting
            .map(|(group, tries)| {
                *tries = tries.saturating_add(1);
                *group
            })
            .collect();
        self.registrar.open = open;
        for group in notified {
            let birth = self.registry().and_then(|it| it.birth(group)).cloned();
            let Some(birth) = birth else { continue };
            for founder in birth.founders.iter().copied().collect::<Vec<_>>() {
                self.send_birth(founder, group, birth.clone(), cx);
            }
        }
    }

    /// Returns true if the registry has decided everything that this node proposed there.
    pub(crate) fn is_registry_idle(&self) -> bool {
        let replica = self.replica(GroupId::REGISTRY);
        // The reads by which a leader finds its quorum may have the period of this question.
        replica.is_some_and(|it| it.waiting_proposals() == 0)
    }

    /// Notes the groups that were due, and have begun.
    fn note_births(&mut self, cx: &mut Context<'_, Self>) {
        let Some(registry) = self.registry() else {
            return;
        };
        let due = self.registrar.due.iter();
        let begun = due.filter(|(group, lost)| {
            let number = registry.birth(**group).map_or(0, |it| it.number);
            number > 0 && (**lost == 0 || instance(number) > instance(**lost))
        });
        let begun: Vec<GroupId> = begun.map(|it| *it.0).collect();
        for group in begun {
            self.registrar.due.remove(&group);
            self.registrar.open.insert(group, 0);
            self.arm_registry(Span::ZERO, cx);
            let birth = self.registry().and_then(|it| it.birth(group)).cloned();
            let Some(birth) = birth else { continue };
            if instance(birth.number) > 0 {
                // Each node that is here reports it, and asks for the decision where it has a part of a former
                // beginning. The decision alone would be the answer to a command.
                let place = Item::Where {
                    group,
                    number: birth.number,
                    leader: None,
                    members: birth.founders.iter().copied().collect(),
                };
                let others = self.others_here().into_iter();
                self.posted.0.extend(others.map(|it| (it, place.clone())));
                self.note_begun(group, birth.number, cx);
                self.on_born(self.me, group, birth, cx);
            } else if self.parts.contains_key(&group) {
                self.on_born(self.me, group, birth, cx);
            }
        }
    }
}
