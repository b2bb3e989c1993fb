//! When a leader chooses other members: an epoch began, or members are gone (sections 3.4 and 3.5).

use alloc::vec::Vec;

use selvedge_core::{Context, Input, Span};
use selvedge_replica::{Command, Configuration, Voter};

use super::plan::stagger;
use super::state::Carried;
use super::{Begins, Event, Groups, Item, Timer};
use crate::GroupId;

impl<S: Begins, P: Carried> Groups<S, P> {
    /// The host says that an epoch has begun. An earlier one than before is taken, too: a host may
    /// have been wrong.
    pub(super) fn on_epoch(&mut self, epoch: u64, cx: &mut Context<'_, Self>) {
        if self.epoch == epoch {
            return;
        }
        self.epoch = epoch;
        self.hints.grow_old();
        let groups: Vec<GroupId> = self.parts.keys().copied().collect();
        for group in groups {
            let Some(part) = self.parts.get_mut(&group) else {
                continue; // It was left in this step.
            };
            if part.replica.configuration().voters.is_empty() {
                // It was heard of an epoch ago, and nothing came of it.
                if let Some(part) = self.parts.remove(&group) {
                    self.disarm(group, &part, cx);
                }
                continue;
            }
            part.told = 0; // Founders are told again.
            part.is_due = true;
            self.look_for_change(group, cx);
        }
    }

    /// Whether it is time to choose, where this node leads.
    pub(super) fn look_for_change(&mut self, group: GroupId, cx: &mut Context<'_, Self>) {
        let Some(part) = self.parts.get_mut(&group) else {
            return; // It was left in this step.
        };
        let number = part.replica.configuration().number;
        if part.number != number {
            part.number = number;
            part.is_due = false;
        }
        if !part.replica.leads() {
            part.told = 0;
            if part.changes {
                part.changes = false;
                cx.disarm(Timer::Change(group));
            }
            return;
        }
        let is_told = part.told == number;
        part.told = number;
        let (is_armed, is_urgent) = (part.changes, part.is_urgent);
        let is_due = part.is_due;
        if !is_told {
            self.tell_founders(group);
        }
        let has_lost = self.has_lost_members(group);
        let after = if has_lost && !(is_armed && is_urgent) {
            // Others may fail with the first one: they are replaced together. They wait for no epoch.
            self.config.patience
        } else if is_due && !is_armed {
            Span(self.config.stagger.0 / 256 * stagger(group))
        } else {
            return;
        };
        if let Some(part) = self.parts.get_mut(&group) {
            part.changes = true;
            part.is_urgent = has_lost;
        }
        cx.arm(Timer::Change(group), after);
    }

    /// Whether as many members are gone as others are chosen after.
    fn has_lost_members(&self, group: GroupId) -> bool {
        let Some(part) = self.parts.get(&group) else {
            return false; // It was left.
        };
        let members = part.replica.configuration().members();
        let gone = members.filter(|it| self.is_gone(it.member.id)).count();
        let failures = self.plan.selection().failures.max(1);
        gone >= self.config.replace_after.min(failures).into()
    }

    pub(super) fn on_change_tick(&mut self, group: GroupId, cx: &mut Context<'_, Self>) {
        let epoch = self.epoch;
        let Some(part) = self.parts.get_mut(&group) else {
            return; // It was left.
        };
        part.changes = false;
        if !part.replica.leads() {
            return;
        }
        part.is_due = false;
        let present = part.replica.configuration().clone();
        let here = self.plan.nodes().iter().copied();
        let here = here.filter(|it| self.is_here(it.id));
        let target = S::target(&self.site, group);
        let chosen = self.plan.choose(epoch, here, [target]).pop();
        let members = match chosen {
            Some((_, Ok(members))) => members,
            Some((_, Err(why))) => return cx.event(Event::Unplaceable { group, why }),
            None => return,
        };
        // A member is named in its latest life: whether it kept its memory or not, it votes then.
        let voter = |id| {
            let latest = self.latest(id);
            let named = present.voter(id);
            let named = named.filter(|it| !latest.supersedes(it.member));
            named.unwrap_or_else(|| Voter::new(latest))
        };
        let next = Configuration {
            voters: members.into_iter().map(voter).collect(),
            ..present.clone()
        };
        if next.voters == present.voters {
            return;
        }
        match self.step(group, Input::Command(Command::Configure(next)), cx) {
            Ok(()) => self.counters.0.changes += 1,
            Err(_) => {
                // Another change is under way. It takes a while, and so does the next try: a stagger
                // may be none.
                if let Some(part) = self.parts.get_mut(&group) {
                    part.is_due = true;
                    part.changes = true;
                    part.is_urgent = true;
                    cx.arm(Timer::Change(group), self.config.patience);
                }
            }
        }
    }

    /// Founders that are no members are told where the group is: a node that looks for it asks them.
    fn tell_founders(&mut self, group: GroupId) {
        let Some(news) = self.whereabouts(group) else {
            return; // It knows no members.
        };
        let Item::Where { members, .. } = &news else {
            return;
        };
        let founders = self.founders(group).into_iter();
        let others: Vec<_> = founders
            .filter(|it| *it != self.me.id && !members.contains(it))
            .collect();
        for founder in others {
            self.posted.0.push((self.latest(founder), news.clone()));
        }
    }
}
