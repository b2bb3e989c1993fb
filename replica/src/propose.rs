//! What this member's application asks, and how long it waits.

use core::mem;

use selvedge_core::wire::List;
use selvedge_core::{Context, NodeId};

use crate::encoding::encoded_len;
use crate::message::Body;
use crate::replica::Replica;
use crate::{Event, Proposal, Reject, State, Timer};

impl<S: State> Replica<S> {
    fn check_room(&self) -> Result<(), Reject> {
        let limit = self.config.pending;
        if self.state().is_none() {
            return Err(Reject::NoMember);
        }
        if self.waiting() >= usize::try_from(limit).unwrap_or(usize::MAX) {
            return Err(Reject::Full { limit });
        }
        Ok(())
    }

    pub(crate) fn propose(
        &mut self,
        update: S::Update,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        self.check_room()?;
        let committed = self.acceptor.committed();
        // A group that has forgotten this member is not told of the numbers before this one.
        let sessions = self.acceptor.sessions();
        let is_forgotten = sessions.rules_out(self.me, self.work.since());
        let proposal = (self.work).number(self.me, committed, is_forgotten, update);
        self.check_len(&proposal)?;
        self.work.take_number(&proposal);
        self.submit(proposal, cx);
        Ok(())
    }

    pub(crate) fn relay(
        &mut self,
        proposal: Proposal<S::Update>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        self.check_room()?;
        self.check_len(&proposal)?;
        let Proposal {
            by, number, since, ..
        } = proposal;
        if self.acceptor.sessions().last(by) >= number {
            cx.event(Event::Overtaken { by, number });
            return Ok(());
        }
        if self.acceptor.sessions().rules_out(by, since) {
            cx.event(Event::Forgotten { by, number });
            return Ok(());
        }
        let waits = |it: &Proposal<S::Update>| it.by == by && it.number == number;
        if !self.work.proposals.iter().any(waits) {
            self.submit(proposal, cx);
        }
        Ok(())
    }

    /// Whether it fits into a frame, as an entry with a kind in front.
    fn check_len(&self, proposal: &Proposal<S::Update>) -> Result<(), Reject> {
        let len = 1 + encoded_len(proposal);
        let room = self.entry_room();
        if len > room {
            return Err(Reject::TooLong { len, room });
        }
        Ok(())
    }

    fn submit(&mut self, proposal: Proposal<S::Update>, cx: &mut Context<'_, Self>) {
        self.work.proposals.push_back(proposal.clone());
        self.arm_pending(cx);
        if self.leads() {
            self.append_all([proposal], cx);
        } else if self.has_leader() {
            if let Some(lead) = self.lead {
                let proposals = List::from_iter([proposal]);
                self.send_to(lead.ballot.by, Body::Propose { proposals }, cx);
            }
        } else {
            self.ask_for_leader(cx);
        }
    }

    pub(crate) fn read(&mut self, read: u64, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        self.check_room()?;
        let number = self.work.ask(read);
        self.arm_pending(cx);
        if self.leads() {
            self.on_read(self.me, number, cx);
        } else if self.has_leader() {
            if let Some(lead) = self.lead {
                self.send_to(lead.ballot.by, Body::Read { number }, cx);
            }
        } else {
            self.ask_for_leader(cx);
        }
        Ok(())
    }

    /// Nobody is known to lead: this member stands, or asks the one that should.
    fn ask_for_leader(&mut self, cx: &mut Context<'_, Self>) {
        self.seek_leader(cx);
        if !self.leads() && self.rank() > 0 {
            self.send_work(cx);
        }
    }

    /// Sends what waits to the leader, or to the member that should lead.
    pub(crate) fn send_work(&mut self, cx: &mut Context<'_, Self>) {
        if self.work.is_empty() || self.leads() {
            return;
        }
        let leader = self.lead.filter(|it| !it.is_lost).map(|it| it.ballot.by);
        let Some(to) = leader.or_else(|| self.preferred()) else {
            return;
        };
        self.send_proposals(to, cx);
        let unanswered = self.work.reads.iter().filter(|it| it.at.is_none());
        for asked in unanswered {
            self.send_to(
                to,
                Body::Read {
                    number: asked.number,
                },
                cx,
            );
        }
    }

    fn send_proposals(&self, to: NodeId, cx: &mut Context<'_, Self>) {
        let mut left = self.entry_room();
        let mut proposals = List::new();
        for proposal in &self.work.proposals {
            let len = encoded_len(proposal) + 1;
            if len > left {
                break;
            }
            left -= len;
            proposals.push(proposal.clone());
        }
        if !proposals.is_empty() {
            self.send_to(to, Body::Propose { proposals }, cx);
        }
    }

    fn arm_pending(&mut self, cx: &mut Context<'_, Self>) {
        if !self.work.is_armed && !self.work.is_empty() {
            self.work.is_armed = true;
            cx.arm(Timer::Pending, self.config.resend);
        }
    }

    pub(crate) fn on_pending_tick(&mut self, cx: &mut Context<'_, Self>) {
        self.work.is_armed = false;
        if self.work.is_empty() {
            return;
        }
        self.overtake(cx);
        if self.work.is_empty() {
            return;
        }
        self.work.attempts = self.work.attempts.saturating_add(1);
        if self.work.attempts >= self.config.attempts {
            self.work.attempts = 0;
            if !self.work.is_unavailable {
                self.work.is_unavailable = true;
                let waited = self.config.resend * u64::from(self.config.attempts);
                cx.event(Event::Unavailable { waited });
            }
            self.lose_leader(cx);
        }
        if self.leads() {
            self.enter_own(cx);
        } else {
            if !self.has_leader() {
                self.work.turn = self.work.turn.wrapping_add(1);
                self.seek_leader(cx);
            }
            self.send_work(cx);
            self.ask_for_answered(cx);
        }
        self.arm_pending(cx);
    }

    /// A read knows its version, and that version has not come.
    fn ask_for_answered(&mut self, cx: &mut Context<'_, Self>) {
        let waits = self.work.reads.iter().any(|it| it.at.is_some());
        if let Some(lead) = self.lead
            && waits
            && let Some(voter) = self.configuration().voter(lead.ballot.by)
        {
            self.ask_for_missing(voter.member, cx);
        }
    }

    /// This node is no member any more: what waits here is answered nowhere.
    pub(crate) fn abandon(&mut self, cx: &mut Context<'_, Self>) {
        for Proposal { by, number, .. } in mem::take(&mut self.work.proposals) {
            cx.event(Event::Abandoned { by, number });
        }
        self.work.begin_again();
        for asked in mem::take(&mut self.work.reads) {
            cx.event(Event::Unreadable(asked.read));
        }
        self.note_progress(cx);
    }

    /// Something that this member waited for has come.
    pub(crate) fn note_progress(&mut self, cx: &mut Context<'_, Self>) {
        self.work.attempts = 0;
        self.work.turn = 0;
        if self.work.is_unavailable {
            self.work.is_unavailable = false;
            cx.event(Event::Available);
        }
        if self.work.is_armed && self.work.is_empty() {
            self.work.is_armed = false;
            cx.disarm(Timer::Pending);
        }
    }
}
