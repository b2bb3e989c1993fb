//! Reads that see every update that was applied before them.
//!
//! The leader notes the last committed version when it is asked, and answers when a quorum has
//! acknowledged a round that it sent after that: then no other leader had committed anything when
//! it was asked (Ongaro, "Consensus: bridging theory and practice", 2014, section 6.4). With a
//! [lease](crate::Lease) it answers at once. A leader that adopted the end of its configuration
//! answers no read: another leader may have decided that entry, and the next configuration more.

use alloc::vec::Vec;

use selvedge_core::{Context, Member, NodeId};

use crate::lead::Question;
use crate::message::Body;
use crate::replica::{Replica, Role};
use crate::{Ballot, Event, State, Version};

impl<S: State> Replica<S> {
    /// Handles the question of a member, perhaps this one, for the version at which to read.
    pub(crate) fn on_read(&mut self, by: Member, number: u64, cx: &mut Context<'_, Self>) {
        if !self.leads() {
            if self.has_leader() {
                return self.refuse(by, Ballot::default(), cx);
            }
            return self.find_leader(cx);
        }
        let holds_lease = self.holds_lease(cx);
        let limit = usize::try_from(self.config.pending).unwrap_or(usize::MAX);
        let committed = self.acceptor.committed();
        let Role::Leader(leadership) = &mut self.role else {
            return;
        };
        let version = committed.max(leadership.start);
        // This leader's log ends its configuration. The last entry may have been decided long ago, and
        // later configurations may have decided since: the read is asked again there.
        let is_watch = number == 0;
        if !is_watch && self.acceptor.is_sealed() && version == self.acceptor.end() {
            return;
        }
        if holds_lease {
            return self.answer(by, number, version, cx);
        }
        let questions = &mut leadership.questions;
        if questions
            .iter()
            .any(|it| it.by == by && it.number == number)
        {
            return; // It is asked again while it waits.
        }
        // Only members ask if the leader is present, and each has one such question open.
        let is_watch = is_watch && self.acceptor.configuration().voter(by.id).is_some();
        let former = |it: &&mut Question| it.number == 0 && it.by.id == by.id;
        if is_watch && let Some(question) = questions.iter_mut().find(former) {
            // Its place stays: others wait behind it.
            question.by = by;
            return;
        }
        if !is_watch && questions.len() >= limit {
            self.counters.no_room += 1;
            return;
        }
        // One round at a time: questions that arrive meanwhile wait for the next one.
        let is_free = questions.is_empty();
        let round = leadership.round + 1;
        questions.push(Question {
            by,
            number,
            version,
            round,
        });
        if is_free {
            self.begin_round(cx);
        } else {
            leadership.wants_round = true;
        }
    }

    fn begin_round(&mut self, cx: &mut Context<'_, Self>) {
        if let Role::Leader(leadership) = &mut self.role {
            leadership.round += 1;
            leadership.wants_round = false;
        }
        self.begin_lease(cx);
        self.send_accepts(cx);
        self.on_round(cx);
    }

    /// Answers the questions that waited for rounds that a quorum has acknowledged.
    pub(crate) fn on_round(&mut self, cx: &mut Context<'_, Self>) {
        let Role::Leader(leadership) = &mut self.role else {
            return;
        };
        let me = self.me.id;
        let group = self.acceptor.group();
        let is_done = |round: u64| {
            group.is_quorum(|id: NodeId| id == me || leadership.acknowledged(id, round))
        };
        let lease_round = leadership.lease.round;
        let lease_done = lease_round != 0 && !leadership.lease.is_held && is_done(lease_round);
        let first = leadership.questions.first().map(|it| it.round);
        let done = first.filter(|&round| round <= leadership.round && is_done(round));
        if lease_done {
            self.settle_lease();
        }
        let Some(round) = done else {
            return;
        };
        let Role::Leader(leadership) = &mut self.role else {
            return;
        };
        let answered: Vec<Question> = leadership
            .questions
            .iter()
            .filter(|it| it.round <= round)
            .copied()
            .collect();
        leadership.questions.retain(|it| it.round > round);
        let wants_round = leadership.wants_round;
        for it in answered {
            self.answer(it.by, it.number, it.version, cx);
        }
        if wants_round {
            self.begin_round(cx);
        }
    }

    fn answer(&mut self, by: Member, number: u64, version: Version, cx: &mut Context<'_, Self>) {
        if by == self.me {
            self.on_read_at(number, version, cx);
        } else {
            let life = by.incarnation.0;
            let body = Body::ReadAt {
                life,
                number,
                version,
            };
            self.send(by, body, cx);
        }
    }

    /// Handles the leader's answer: the first version at which a read may be answered.
    pub(crate) fn on_read_at(&mut self, number: u64, version: Version, cx: &mut Context<'_, Self>) {
        self.end_watch(cx);
        let Some(asked) = self.work.reads.iter_mut().find(|it| it.number == number) else {
            return; // It was answered before, or asked if the leader is present.
        };
        if asked.at.is_none() {
            asked.at = Some(version);
        }
        self.answer_reads(cx);
    }

    /// Reports the reads that this member's state can answer to the application.
    pub(crate) fn answer_reads(&mut self, cx: &mut Context<'_, Self>) {
        let committed = self.acceptor.committed();
        let is_ready = |at: Option<Version>| at.is_some_and(|at| at <= committed);
        if !self.work.reads.iter().any(|it| is_ready(it.at)) {
            return;
        }
        for it in self.work.reads.iter().filter(|it| is_ready(it.at)) {
            cx.event(Event::Readable {
                read: it.read,
                version: committed,
            });
        }
        self.work.reads.retain(|it| !is_ready(it.at));
        self.note_progress(cx);
    }
}
