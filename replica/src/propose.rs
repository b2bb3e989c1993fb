//! The application's proposals and reads at this member, and their waiting.

use alloc::vec::Vec;
use core::iter::{self, Peekable};
use core::mem;

use selvedge_core::wire::List;
use selvedge_core::{Context, NodeId};

use crate::encoding::encoded_len;
use crate::message::Body;
use crate::replica::Replica;
use crate::sessions::Fate;
use crate::{Event, Proposal, Reject, State, Timer};

impl<S: State> Replica<S> {
    /// Checks that this number more may wait.
    fn check_room(&self, more: usize) -> Result<(), Reject> {
        let limit = self.config.pending;
        if self.state().is_none() {
            return Err(Reject::NoMember);
        }
        if self.waiting().saturating_add(more) > usize::try_from(limit).unwrap_or(usize::MAX) {
            return Err(Reject::Full { limit });
        }
        Ok(())
    }

    /// Proposes these under the next numbers, in their order.
    pub(crate) fn propose(
        &mut self,
        updates: List<S::Update, 1>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        self.check_room(updates.len())?;
        let committed = self.acceptor.committed();
        // A group that has forgotten this member learns nothing of the numbers before this one.
        let sessions = self.acceptor.sessions();
        let is_forgotten = sessions.rules_out(self.me, self.work.since());
        let mut proposals = List::<Proposal<S::Update>, 1>::new();
        for update in updates {
            let proposal = match proposals.last() {
                Some(before) => before.followed_by(update),
                None => (self.work).number(self.me, committed, is_forgotten, update),
            };
            self.check_len(&proposal)?;
            proposals.push(proposal);
        }
        for proposal in &proposals {
            self.work.take_number(proposal);
        }
        self.submit(proposals, cx);
        Ok(())
    }

    pub(crate) fn relay(
        &mut self,
        proposal: Proposal<S::Update>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        self.check_room(1)?;
        self.check_len(&proposal)?;
        let Proposal {
            by, number, since, ..
        } = proposal;
        match self.acceptor.sessions().fate(by, number, since) {
            Fate::Open => {}
            Fate::Applied => {
                cx.event(Event::Overtaken { by, number });
                return Ok(());
            }
            Fate::Over => {
                cx.event(Event::Forgotten { by, number });
                return Ok(());
            }
        }
        let waits = |it: &Proposal<S::Update>| it.by == by && it.number == number;
        if !self.work.proposals.iter().any(waits) {
            self.submit(List::from_iter([proposal]), cx);
        }
        Ok(())
    }

    /// Checks that it fits into a frame, as an entry with a kind in front.
    pub(crate) fn check_len(&self, proposal: &Proposal<S::Update>) -> Result<(), Reject> {
        let len = 1 + encoded_len(proposal);
        let room = self.entry_room();
        if len > room {
            return Err(Reject::TooLong { len, room });
        }
        Ok(())
    }

    fn submit(&mut self, proposals: List<Proposal<S::Update>, 1>, cx: &mut Context<'_, Self>) {
        self.work.proposals.extend(proposals.iter().cloned());
        self.arm_pending(cx);
        if self.leads() {
            self.append_all(proposals, cx);
        } else if self.has_leader() {
            let Some(lead) = self.lead else { return };
            let mut rest = proposals.iter().peekable();
            while self.send_proposals(lead.ballot.by, &mut rest, cx) {}
        } else {
            self.ask_for_leader(cx);
        }
    }

    pub(crate) fn read(&mut self, read: u64, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        self.check_room(1)?;
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

    /// Stands, or asks the member that should: no leader is known.
    fn ask_for_leader(&mut self, cx: &mut Context<'_, Self>) {
        self.find_leader(cx);
        if !self.leads() && self.rank() > 0 {
            self.send_work(cx);
        }
    }

    /// Sends the waiting work to the leader, or to the member that should lead.
    pub(crate) fn send_work(&mut self, cx: &mut Context<'_, Self>) {
        debug_assert!(!self.leads(), "a leader enters its waiting work itself");
        if self.work.is_empty() {
            return;
        }
        let leader = self.lead.filter(|it| !it.is_lost).map(|it| it.ballot.by);
        let Some(to) = leader.or_else(|| self.preferred()) else {
            return;
        };
        self.send_proposals(to, &mut self.work.proposals.iter().peekable(), cx);
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

    /// Sends the first of these, as many as fit into a message. Returns true if there were any.
    fn send_proposals<'a>(
        &self,
        to: NodeId,
        rest: &mut Peekable<impl Iterator<Item = &'a Proposal<S::Update>>>,
        cx: &mut Context<'_, Self>,
    ) -> bool
    where
        S: 'a,
    {
        let mut left = self.entry_room();
        let mut takes = |it: &&Proposal<S::Update>| {
            let len = encoded_len(*it) + 1;
            let fits = len <= left;
            left -= if fits { len } else { 0 };
            fits
        };
        let fitting = iter::from_fn(|| rest.next_if(&mut takes));
        let proposals: List<_, 1> = fitting.cloned().collect();
        let are_any = !proposals.is_empty();
        if are_any {
            self.send_to(to, Body::Propose { proposals }, cx);
        }
        are_any
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
                self.find_leader(cx);
            }
            self.send_work(cx);
            self.ask_for_answered(cx);
        }
        // Also a leader may be left behind, by members that have dropped their memory of the group.
        if self.work.is_unavailable {
            self.ask_outside(cx);
        }
        self.arm_pending(cx);
    }

    /// Asks for the entries that a read needs: it knows its version, which has not arrived.
    fn ask_for_answered(&mut self, cx: &mut Context<'_, Self>) {
        let waits = self.work.reads.iter().any(|it| it.at.is_some());
        if let Some(lead) = self.lead
            && waits
            && let Some(voter) = self.configuration().voter(lead.ballot.by)
        {
            self.ask_for_missing(voter.member, cx);
        }
    }

    /// Sends this configuration to the other nodes that are present, and to witnesses, one after
    /// another: no member answers, so there may be a later configuration without any of them. A
    /// node that knows a later one sends it.
    fn ask_outside(&mut self, cx: &mut Context<'_, Self>) {
        let members = self.configuration();
        let is_outside = |id| members.voter(id).is_none_or(|it| it.is_witness);
        if let Some(other) = self.peers.next_here(self.work.sought, is_outside) {
            self.work.sought = Some(other.id);
            self.send_current(other, cx);
        }
    }

    /// Gives up proposals for which frames of this configuration have no room, as they were
    /// proposed in another one, and their proposers' proposals behind them.
    pub(crate) fn abandon_too_long(&mut self, cx: &mut Context<'_, Self>) {
        let room = self.entry_room();
        let mut over = Vec::new();
        self.work.proposals.retain(|it| {
            let by = it.by;
            let is_over = over.contains(&by) || 1 + encoded_len(it) > room;
            if is_over {
                over.push(by);
                let number = it.number;
                cx.event(Event::Abandoned { by, number });
            }
            !is_over
        });
        if over.contains(&self.me) {
            self.work.begin_again();
        }
        if !over.is_empty() {
            self.note_progress(cx);
        }
    }

    /// Gives all waiting work up: this node is no longer a member, and nothing answers it.
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

    /// Notes progress: something that this member waited for has come.
    pub(crate) fn note_progress(&mut self, cx: &mut Context<'_, Self>) {
        self.ballots.0 = 0;
        self.work.attempts = 0;
        self.work.turn = 0;
        self.work.sought = None;
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
