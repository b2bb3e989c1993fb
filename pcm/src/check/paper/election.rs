//! The election of a resource manager among the paper's gateways (section 4.2, Figure 2).

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use selvedge_core::{Context, Span};

use super::dispatcher::{Dispatcher, Message, Role, Timer, member};
use super::tables::{Label, Shared};
use super::watch::Notified;

impl Dispatcher {
    /// Handles a manager that has been silent for too long: asks the optimal gateway to stand.
    pub(super) fn on_silence(&mut self, cx: &mut Context<'_, Self>) {
        self.ended.insert(self.manager);
        if self.rules.raises_twice() {
            (self.era, self.voted) = (self.era.saturating_add(1), None);
        }
        let here = self.known.iter().filter(|it| !self.ended.contains(it));
        let here: Vec<u64> = here.copied().collect();
        // Drawn at random: any gateway may be the optimal one by this gateway's table and routes.
        let best = usize::try_from(cx.below(here.len() as u64)).ok();
        match best.and_then(|it| here.get(it)) {
            Some(&best) if best != self.me => {
                cx.arm(Timer::Silence, Span::secs(1));
                cx.send(member(best), Message::Inform);
            }
            _ => self.stand(cx),
        }
    }

    /// Stands for election because another gateway misses the manager, which this one cannot reach, either.
    pub(super) fn on_inform(&mut self, cx: &mut Context<'_, Self>) {
        if matches!(self.role, Role::Dispatcher) {
            self.stand(cx);
        }
    }

    /// Becomes a candidate (Figure 2, "on conversion to candidate").
    pub(super) fn stand(&mut self, cx: &mut Context<'_, Self>) {
        self.era = self.era.saturating_add(1);
        self.voted = Some(self.me);
        self.role = Role::Candidate([self.me].into());
        cx.event(Notified::Stands(self.era));
        if self.rules.candidate_labels() {
            self.label = self.first_label();
            cx.event(Notified::Labels(self.label, self.shared.clone()));
        }
        cx.disarm(Timer::Silence);
        cx.arm(Timer::Election, Span::secs(1));
        self.notify(&Message::Stand(self.era), cx);
        self.look_whether_elected(cx);
    }

    const fn first_label(&self) -> Label {
        Label {
            era: self.era,
            index: 0,
        }
    }

    /// Votes for a candidate, once in an era.
    pub(super) fn on_stand(&mut self, from: u64, era: u8, cx: &mut Context<'_, Self>) {
        let may_vote = era > self.era || era == self.era && self.voted.is_none();
        if !may_vote {
            return;
        }
        (self.era, self.voted) = (era, Some(from));
        self.follow(from, cx);
        cx.send(
            member(from),
            Message::Vote(era, self.label, self.shared.clone()),
        );
    }

    pub(super) fn on_vote(
        &mut self,
        from: u64,
        era: u8,
        (label, shared): (Label, Shared),
        cx: &mut Context<'_, Self>,
    ) {
        let Role::Candidate(votes) = &mut self.role else {
            return;
        };
        if era != self.era {
            return;
        }
        votes.insert(from);
        if label > self.label && !self.rules.silent_votes() {
            (self.label, self.shared) = (label, shared);
        }
        self.look_whether_elected(cx);
    }

    fn look_whether_elected(&mut self, cx: &mut Context<'_, Self>) {
        if let Role::Candidate(votes) = &self.role
            && self.has_majority(votes)
        {
            self.manage(cx);
        }
    }

    fn manage(&mut self, cx: &mut Context<'_, Self>) {
        self.manager = self.me;
        cx.disarm(Timer::Election);
        cx.disarm(Timer::Silence);
        cx.event(Notified::Manages(self.era));
        self.relabel(self.first_label(), cx);
    }

    /// Returns true if these votes are enough to manage, or to commit.
    pub(super) fn has_majority(&self, votes: &BTreeSet<u64>) -> bool {
        let is_most = |of: usize| 2 * votes.len() > of;
        if self.rules.own_list() {
            return is_most(self.known.len());
        }
        if self.rules.majority_of_available() {
            let here = self.known.iter().filter(|it| !self.ended.contains(it));
            return is_most(here.count());
        }
        self.shared.has_majority(votes)
    }

    /// Stands again: the votes were too few when the election's timer expired.
    pub(super) fn on_election_over(&mut self, cx: &mut Context<'_, Self>) {
        if self.rules.appending_merge() {
            self.notify(&Message::Merge(self.shared.clone()), cx);
        }
        self.stand(cx);
    }

    /// Hands this manager's office to a better gateway.
    pub(super) fn hand_over(&mut self, to: u64, cx: &mut Context<'_, Self>) {
        if self.rules.named_successor() {
            (self.era, self.voted) = (self.era.saturating_add(1), None);
        }
        self.notify(&Message::Successor(self.era, to), cx);
        self.follow(to, cx);
    }

    pub(super) fn on_successor(&mut self, from: u64, era: u8, to: u64, cx: &mut Context<'_, Self>) {
        if !self.rules.named_successor() {
            // The named gateway stands for election as any other gateway does.
            let may_stand = era >= self.era && matches!(self.role, Role::Dispatcher);
            if to == self.me && may_stand && self.manager == from {
                self.stand(cx);
            }
            return;
        }
        if era <= self.era {
            return;
        }
        (self.era, self.voted) = (era, None);
        self.follow(to, cx);
        if to == self.me {
            cx.event(Notified::Stands(era));
            self.manage(cx);
        }
    }
}
