//! The followers of this gateway (PCM, section 4.3.1).

use alloc::boxed::Box;
use alloc::vec::Vec;

use selvedge_core::{Context, Member, NodeId};

use super::Gateway;
use super::event::Timer;
use crate::{
    Answer, Attachment, DutyCycle, Library, Message, Outcome, Returned, Run, TaskId, Update, Voters,
};

impl Gateway {
    /// Handles the keep-alive of a follower.
    pub(super) fn on_keep_alive(
        &mut self,
        from: Member,
        number: u32,
        duty: DutyCycle,
        libraries: &[Library],
        cx: &mut Context<'_, Self>,
    ) {
        let Some(tables) = self.available() else {
            return cx.send(from, Message::Elsewhere);
        };
        let last = tables.limits().libraries.into();
        let forgotten = libraries.len().saturating_sub(last);
        let libraries = libraries.get(forgotten..).unwrap_or_default();
        let gateway = self.me.id;
        let is_reported = |it: &Attachment| {
            let known = (it.member, it.number, it.gateway, it.duty);
            known == (from, number, gateway, duty) && *it.libraries == *libraries
        };
        let is_known = tables.follower(from.id).is_some_and(is_reported);
        if is_known && self.own.get(&from.id).is_some_and(is_reported) {
            // The usual case, in which nothing is copied.
            return cx.arm(Timer::Purge(from.id), self.config.patience(duty));
        }
        let reported = Attachment {
            member: from,
            number,
            gateway,
            duty,
            libraries: libraries.iter().copied().collect(),
        };
        if is_known {
            return self.watch(reported, cx);
        }
        let update = Update::Attach(reported.clone());
        let known = tables.known(&update);
        if let Some(Outcome::NoRoom(_)) = known {
            // Not proposed: it would be proposed again in each period of the follower.
            self.counters.0.no_room += 1;
            return;
        }
        if known.is_some() {
            // It was purged, or was at another gateway meanwhile. A later attachment is new.
            if let Some((member, number)) = tables.last_attachment(from.id)
                && member == from
            {
                cx.send(from, Message::Purged { number });
            }
            return;
        }
        let is_full = self.own.len() >= tables.limits().followers as usize;
        if is_full && !self.own.contains_key(&from.id) {
            self.counters.0.no_room += 1;
            return;
        }
        self.watch(reported, cx);
        self.try_to_propose(update, cx);
    }

    /// Expects the follower's next keep-alive, in time.
    fn watch(&mut self, reported: Attachment, cx: &mut Context<'_, Self>) {
        let (id, patience) = (reported.member.id, self.config.patience(reported.duty));
        self.own.insert(id, reported);
        cx.arm(Timer::Purge(id), patience);
    }

    /// Stops watching a follower, which is now at another gateway or at none.
    pub(super) fn unwatch(&mut self, id: NodeId, cx: &mut Context<'_, Self>) {
        if self.own.remove(&id).is_some() {
            cx.disarm(Timer::Purge(id));
        }
    }

    /// Watches the followers that the tables have at this gateway. O(n) for n followers.
    pub(super) fn watch_own(&mut self, cx: &mut Context<'_, Self>) {
        let me = self.me.id;
        let all = self.tables().into_iter().flat_map(|it| it.followers());
        let own: Vec<Attachment> = all.filter(|it| it.gateway == me).cloned().collect();
        for follower in own {
            self.watch_own_one(&follower, cx);
        }
    }

    /// Watches a follower that the tables have at this gateway: a former life of the gateway may have proposed
    /// its attachment.
    pub(super) fn watch_own_one(&mut self, follower: &Attachment, cx: &mut Context<'_, Self>) {
        let known = self.own.get(&follower.member.id);
        if known.is_none_or(|it| follower.is_later(it)) {
            self.watch(follower.clone(), cx);
        }
    }

    /// Handles the timeout of a follower.
    pub(super) fn on_purge_tick(&mut self, id: NodeId, cx: &mut Context<'_, Self>) {
        let known = self.tables().and_then(|it| it.follower(id)).cloned();
        let Some(known) = known else {
            self.own.remove(&id);
            return;
        };
        let is_own = known.gateway == self.me.id;
        let is_orphan = self.manages && !self.serves(known.gateway);
        if !is_own && !is_orphan {
            self.own.remove(&id);
            return;
        }
        // Repeats the proposal, which may be lost.
        cx.arm(Timer::Purge(id), self.config.patience(known.duty));
        self.try_to_propose(Update::Purge(known), cx);
    }

    /// Sends a task to the followers of its unit that are at this gateway, or to `only` one of them.
    pub(super) fn send_runs(&self, task: TaskId, only: Option<Member>, cx: &mut Context<'_, Self>) {
        let Some(tables) = self.tables() else {
            return;
        };
        let (Some(assignment), Some(open)) = (tables.assignment(task), tables.open_task(task))
        else {
            return; // It has ended, or waits for a unit.
        };
        let here = assignment.electors.iter().filter(|&&elector| {
            let known = tables.follower(elector.id);
            let is_here = known.is_some_and(|it| it.member == elector && it.gateway == self.me.id);
            is_here && only.is_none_or(|it| it == elector)
        });
        for &elector in here {
            let to_gateway = tables.limits().counts_votes;
            let run = Run::new(task, assignment, &open.function, to_gateway);
            cx.send(elector, Message::Run(Box::new(run)));
        }
    }

    /// Notifies the followers at this gateway that an attempt has ended.
    pub(super) fn send_over(
        &self,
        task: TaskId,
        attempt: u16,
        electors: &[Member],
        cx: &mut Context<'_, Self>,
    ) {
        let here = electors.iter().filter(|it| {
            let known = self.own.get(&it.id);
            known.is_some_and(|known| known.member == **it)
        });
        for &elector in here {
            cx.send(elector, Message::Over { task, attempt });
        }
    }

    /// Handles a follower's vote, which gateways count.
    pub(super) fn on_vote(
        &mut self,
        from: Member,
        (task, attempt): (TaskId, u16),
        returned: Returned,
        cx: &mut Context<'_, Self>,
    ) {
        let Some(tables) = self.available() else {
            return cx.send(from, Message::Elsewhere);
        };
        let update = Update::Vote {
            task,
            attempt,
            by: from,
            returned,
        };
        match tables.known(&update) {
            None => self.try_to_propose(update, cx),
            Some(Outcome::Voted { .. }) => cx.send(from, Message::Counted { task, attempt }),
            Some(_) if tables.is_past(task, attempt) => {
                cx.send(from, Message::Over { task, attempt });
            }
            Some(_) => {} // Perhaps this gateway does not know yet that the follower takes part.
        }
    }

    /// Handles an orchestrator's verdict: the answer and its voters.
    pub(super) fn on_verdict(
        &mut self,
        from: Member,
        task: TaskId,
        (attempt, term): (u16, u16),
        (answer, voters): (Answer, Voters),
        cx: &mut Context<'_, Self>,
    ) {
        let Some(tables) = self.available() else {
            return cx.send(from, Message::Elsewhere);
        };
        let present = tables.assignment(task);
        let present = present.filter(|it| it.attempt == attempt);
        let orchestrator = present.and_then(|it| it.orchestrator());
        let is_elector = present.is_some_and(|it| it.electors.contains(&from));
        if orchestrator == Some(from) && !tables.can_have_made(task, &answer, &voters) {
            // Perhaps a voter was purged, and the orchestrator does not know it yet.
            self.counters.0.disbelieved += 1;
            self.send_runs(task, Some(from), cx);
        } else if orchestrator == Some(from) || tables.takes_any_attempt() {
            let update = Update::Answer {
                task,
                attempt,
                term,
                answer,
                voters,
            };
            self.try_to_propose(update, cx);
        } else if is_elector {
            self.send_runs(task, Some(from), cx); // It does not know the present orchestrator.
        } else if tables.is_past(task, attempt) {
            cx.send(from, Message::Over { task, attempt });
        }
    }
}
