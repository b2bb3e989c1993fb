//! A leader's choice of other members: an epoch began, or members failed or left (sections 3.4 and
//! 3.5).

use alloc::vec::Vec;

use selvedge_core::{Context, Input, Member, NodeId, Span};
use selvedge_replica::{Command, Configuration, Voter};

use crate::GroupId;
use crate::part::Part;
use crate::plan::stagger;
use crate::registry::instance;
use crate::state::Carried;
use crate::{Begins, Event, Groups, Item, Timer};

/// After standing this often without a leader, a member takes its group for lost.
const IN_VAIN: u8 = 8;

impl<S: Begins, P: Carried> Groups<S, P> {
    /// Begins an epoch, at the host's command. An earlier one than before is taken, too: a host may
    /// have been wrong.
    pub(crate) fn on_epoch(&mut self, epoch: u64, cx: &mut Context<'_, Self>) {
        if self.epoch == epoch {
            return;
        }
        self.epoch = epoch;
        let here: Vec<NodeId> = self.others_here().iter().map(|it| it.id).collect();
        self.wake_registry(&here);
        self.report_lost_quorums(cx);
        self.report_spared_to_all();
        self.registrar.on_epoch();
        self.adoption.on_epoch();
        if self.generation() > 0 && self.leads(GroupId::REGISTRY) {
            self.announce_site_to_all();
        }
        self.leader_hints.grow_old();
        let led = self.parts.iter().filter(|it| it.1.replica.leads());
        // Together, as that takes no more hashes than one group.
        let founders = self.plan.founders_of::<S>(&self.site, led.map(|it| *it.0));
        let groups: Vec<GroupId> = self.parts.keys().copied().collect();
        for group in groups {
            let Some(part) = self.parts.get_mut(&group) else {
                continue; // It was left in this step.
            };
            if part.replica.configuration().voters.is_empty() {
                // Nothing of it arrives any more. A state may take longer than an epoch. A member that lies can hold this
                // place by pages without an end: also by a message in each epoch.
                if !part.replica.is_fetching()
                    && let Some(part) = self.parts.remove(&group)
                {
                    self.disarm(group, &part, cx);
                }
                continue;
            }
            part.sought = 0;
            part.is_due = true;
            part.notified = 0; // Founders are notified again.
            if part.replica.leads()
                && let Ok(at) = founders.binary_search_by_key(&group, |it| it.0)
                && let Some((_, founders)) = founders.get(at)
            {
                part.notified = part.replica.configuration().number;
                self.tell_founders(group, founders);
            }
            self.look_for_change(group, cx);
            self.look_whether_left(group, cx);
        }
    }

    /// Reports groups without a quorum: most of their members failed or left, a leader has no answer
    /// of them, a member has stood in vain for long, or a founder has had no news.
    fn report_lost_quorums(&mut self, cx: &mut Context<'_, Self>) {
        let is_lost = |part: &Part<S>| {
            let configuration = part.replica.configuration();
            let is_member = part.is_named() && !configuration.voters.is_empty();
            // A leader asks its members in each epoch. An answer that is still on its way costs a false report.
            let is_alone = part.replica.leads() && part.confirms;
            is_member && (is_alone || part.stood >= IN_VAIN || !self.has_quorum(configuration))
        };
        let own = self.parts.iter().filter(|it| is_lost(it.1)).map(|it| *it.0);
        let ended = |members: &[Member]| {
            let ended = members.iter().filter(|it| self.has_ended(it.id)).count();
            2 * ended >= members.len() && ended > 0
        };
        // A group may have moved on since its place was known.
        let hinted = self.leader_hints.in_vain().filter(|it| ended(it.1));
        let hinted = hinted.map(|it| it.0);
        let is_other = |it: &GroupId| !self.parts.contains_key(it) && S::exists(&self.site, *it);
        let hinted = hinted.filter(is_other);
        let mut lost: Vec<GroupId> = own.chain(hinted).collect();
        for group in &lost {
            cx.event(Event::QuorumLost(*group));
        }
        lost.extend(self.silent_groups());
        lost.extend(self.ended_groups());
        self.report_lost(lost, cx);
    }

    /// Chooses members, or waits for the time to do so, where this node leads.
    pub(crate) fn look_for_change(&mut self, group: GroupId, cx: &mut Context<'_, Self>) {
        let Some(part) = self.parts.get_mut(&group) else {
            return; // It was left in this step.
        };
        let number = part.replica.configuration().number;
        if part.number != number {
            part.number = number;
            part.is_due = false;
        }
        if !part.replica.leads() {
            part.notified = 0;
            part.inquiry = None;
            return self.disarm_change(group, cx);
        }
        let is_notified = part.notified == number;
        part.notified = number;
        let (is_armed, is_urgent) = (part.changes, part.is_urgent);
        let is_due = part.is_due;
        if !is_notified {
            let founders = self.founders(group);
            self.tell_founders(group, &founders);
        }
        let lost = self.lost_members(group);
        let has_lost = lost.is_some();
        let after = if let Some(lost) = lost.filter(|_| !(is_armed && is_urgent)) {
            // Others may fail with the first one: they are replaced together. They wait for no epoch, and
            // less long where no other one may fail. Without a wait two leaders whose lists differ would
            // change members back and forth all the time.
            let is_last = lost >= usize::from(self.plan.failures::<S>(group));
            Span(self.config.patience.0 / if is_last { 4 } else { 1 })
        } else if is_due && !is_armed {
            let spread = Span(self.config.stagger.0 / 256 * stagger(group));
            Span(self.config.change_delay.0.saturating_add(spread.0))
        } else {
            return;
        };
        if let Some(part) = self.parts.get_mut(&group) {
            part.changes = true;
            part.is_urgent = has_lost;
        }
        cx.arm(Timer::Change(group), after);
    }

    /// The number of members that failed or left, if it is high enough to choose others.
    fn lost_members(&self, group: GroupId) -> Option<usize> {
        let part = self.parts.get(&group)?;
        let members = part.replica.configuration().members();
        let ended = members.filter(|it| self.is_lost(it.member.id)).count();
        let failures = self.plan.failures::<S>(group).max(1);
        (ended >= self.config.replace_after.min(failures).into()).then_some(ended)
    }

    pub(crate) fn on_change_tick(&mut self, group: GroupId, cx: &mut Context<'_, Self>) {
        let Some(part) = self.parts.get_mut(&group) else {
            return; // It was left.
        };
        part.changes = false;
        if !part.replica.leads() {
            return;
        }
        part.is_due = false;
        match part.inquiry.take() {
            Some(inquiry) => self.inquire_again(group, inquiry, cx),
            None => self.inquire(group, cx),
        }
    }

    /// Proposes these as the group's next members.
    pub(crate) fn change(
        &mut self,
        group: GroupId,
        voters: Vec<Voter>,
        cx: &mut Context<'_, Self>,
    ) {
        let Some(part) = self.parts.get(&group) else {
            return; // It was left.
        };
        let present = part.replica.configuration();
        // Configurations of the next beginning have the numbers behind these.
        let is_last = S::HAS_REGISTRY && instance(present.number + 1) > instance(present.number);
        if is_last || !self.has_quorum(present) {
            return self.look_again(group, cx);
        }
        let next = Configuration {
            voters,
            ..present.clone()
        };
        match self.step(group, Input::Command(Command::Configure(next)), cx) {
            Ok(()) => self.counters.0.changes += 1,
            // Another change is under way.
            Err(_) => self.look_again(group, cx),
        }
    }

    /// Returns true if no more members failed or left than may fail. This node sends nothing to a
    /// member that is away, so a link would be in flight until one is back, and name outdated
    /// lives.
    fn has_quorum(&self, configuration: &Configuration) -> bool {
        let members = configuration.members();
        let here = members.filter(|it| !self.has_ended(it.member.id)).count();
        2 * here > configuration.voters.len()
    }

    /// Tries again after a while, as an obstacle to a change lasts a while: a stagger may be zero.
    pub(crate) fn look_again(&mut self, group: GroupId, cx: &mut Context<'_, Self>) {
        if let Some(part) = self.parts.get_mut(&group) {
            part.is_due = true;
        }
        self.arm_change(group, self.config.patience, cx);
    }

    /// Looks again after a while, and is not put off.
    pub(crate) fn arm_change(&mut self, group: GroupId, after: Span, cx: &mut Context<'_, Self>) {
        if let Some(part) = self.parts.get_mut(&group) {
            part.changes = true;
            part.is_urgent = true;
            cx.arm(Timer::Change(group), after);
        }
    }

    pub(crate) fn disarm_change(&mut self, group: GroupId, cx: &mut Context<'_, Self>) {
        if let Some(part) = self.parts.get_mut(&group)
            && part.changes
        {
            part.changes = false;
            cx.disarm(Timer::Change(group));
        }
    }

    /// Sends the place of the group to founders that are not members: a node that looks for it asks
    /// them.
    fn tell_founders(&mut self, group: GroupId, founders: &[NodeId]) {
        let Some(news) = self.whereabouts(group) else {
            return; // It knows no members.
        };
        let Item::Where { members, .. } = &news else {
            return;
        };
        let others: Vec<NodeId> = founders
            .iter()
            .copied()
            .filter(|it| *it != self.me.id && members.iter().all(|member| member.id != *it))
            .collect();
        for founder in others {
            self.posted.0.push((self.latest(founder), news.clone()));
        }
    }
}
