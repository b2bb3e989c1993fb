//! From one configuration to the next.
//!
//! The next configuration is the last entry of the present one, so it is committed with every entry
//! before it, by a quorum of the present members: nothing can follow it there, and any leader of
//! the present one finds it. Members of the next one install the state as of that version before
//! they vote, so a leader there has a quorum that installed it. The former members inform the next
//! ones until one of them reports that quorum; then the nodes that are no longer members give the
//! state up.
//!
//! So a change needs no quorum of former and next members together, all members may be new, and a
//! restart without memory is a change like any other: the member is named in its new life.

use alloc::boxed::Box;

use selvedge_core::{Context, Member, NodeId};

use crate::encoding::encoded_len;
use crate::message::Body;
use crate::origin::is_later;
use crate::replica::{Replica, Role};
use crate::{Configuration, Fact, Misbehaviour, Reject, State, Timer, Voter};

/// The number of times that the interval between invitations doubles.
const INVITE_SLOWEST: u8 = 6;

impl<S: State> Replica<S> {
    /// Proposes another configuration, at the leader.
    pub(crate) fn configure(
        &mut self,
        mut next: Configuration,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        let leader = self.leader().map(|it| it.0);
        let room = self.entry_room();
        let Role::Leader(leadership) = &mut self.role else {
            return Err(Reject::NotLeader { leader });
        };
        next.number = self.acceptor.configuration().number.saturating_add(1);
        next.check()?;
        // It travels in frames of the present configuration.
        let len = 1 + encoded_len(&next);
        if len > room {
            return Err(Reject::TooLong { len, room });
        }
        if leadership.change.is_some() || self.acceptor.is_sealed() {
            return Err(Reject::Changing);
        }
        if self.rules.separate_successors() {
            self.acceptor.switch(next);
            self.on_configured(cx);
            return Ok(());
        }
        leadership.change = Some(next);
        self.append_backlog(cx);
        Ok(())
    }

    /// Handles a request to be named: the node remembers nothing of the life in which the
    /// configuration names it, and asks for the life in which its memory began.
    pub(crate) fn on_rejoin(&mut self, named: Member, cx: &mut Context<'_, Self>) {
        if !self.leads() {
            return; // It asks the leader when it receives a message from it.
        }
        let configuration = self.configuration();
        let is_later = |it: &Voter| {
            it.member.id == named.id && is_later(named.incarnation, it.member.incarnation)
        };
        if !configuration
            .voter(named.id)
            .is_some_and(|it| is_later(&it))
        {
            return;
        }
        let mut next = configuration.clone();
        for voter in next.voters.iter_mut().chain(&mut next.also) {
            if is_later(voter) {
                voter.member = named;
            }
        }
        // Refused while another change is under way; it asks again.
        let _refused = self.configure(next, cx).is_err();
    }

    /// Goes over to the next configuration, which this member is in or knows of.
    pub(crate) fn on_configured(&mut self, cx: &mut Context<'_, Self>) {
        let led = self.leads();
        self.step_down(cx);
        self.end_watch(cx);
        self.lead = None;
        self.deferred = None;
        self.seen = 0;
        self.received = 0;
        self.is_active = false;
        if self.invited.take().is_some() {
            cx.disarm(Timer::Invite);
        }
        if self.is_tied {
            self.is_tied = false;
            cx.disarm(Timer::Tied);
        }
        if self.waits_to_stand {
            self.waits_to_stand = false;
            cx.disarm(Timer::Campaign);
        }
        let is_member = self.configuration().voter(self.me.id).is_some();
        if self.state().is_none() {
            self.abandon(cx);
        }
        self.abandon_too_long(cx);
        if led || !is_member || self.acceptor.holds_in_vain() {
            self.invite(cx);
        }
        self.find_leader(cx);
    }

    /// Begins a later life, at its first input: the memory of timers and of a leader's role is
    /// lost.
    pub(crate) fn begin_again(&mut self, cx: &mut Context<'_, Self>) {
        self.tie(cx);
        if self.acceptor.holds_in_vain() && !self.is_active {
            self.invite(cx);
        }
        self.find_leader(cx);
    }

    /// Informs the members of the configuration of it, and other nodes that may know a later one,
    /// until a member leads; at intervals that grow.
    fn invite(&mut self, cx: &mut Context<'_, Self>) {
        let nth = self.invited.unwrap_or_default();
        self.invited = Some(nth.saturating_add(1));
        let body = self.current();
        self.send_to_all(&body, cx);
        if nth > 0 {
            let members = self.configuration();
            let others = self
                .peers
                .here()
                .filter(|it| members.voter(it.id).is_none());
            for other in others {
                self.send(other, body.clone(), cx);
            }
        }
        cx.arm(
            Timer::Invite,
            self.config.resend * (1 << nth.min(INVITE_SLOWEST)),
        );
    }

    pub(crate) fn on_invite_tick(&mut self, cx: &mut Context<'_, Self>) {
        if self.invited.is_some() && !self.is_active {
            self.invite(cx);
        } else {
            self.invited = None;
        }
    }

    fn current(&self) -> Body<S::Update> {
        Body::Current {
            configuration: Box::new(self.configuration().clone()),
            is_active: self.is_active,
        }
    }

    pub(crate) fn send_current(&self, to: Member, cx: &mut Context<'_, Self>) {
        if self.configuration().number > 0 {
            self.send(to, self.current(), cx);
        }
    }

    /// Handles a configuration that another node sends.
    pub(crate) fn on_current(
        &mut self,
        from: Member,
        other: &Configuration,
        is_active: bool,
        cx: &mut Context<'_, Self>,
    ) {
        let number = self.configuration().number;
        if other.number < number {
            return self.send_current(from, cx);
        }
        // The sender may have given its state up; the configuration's members have it. A witness
        // that is asked for it sends this message again: each answer would cause a question.
        let keeps = other.voter(from.id).is_some_and(|it| !it.is_witness);
        let may_have_state = keeps || !is_active;
        if other.number > number {
            if may_have_state {
                self.ask_for_missing(from, cx);
            }
            // Of two witnesses that lack the state, one behind the other, each may name the other one:
            // only a later configuration causes questions before the next tick.
            if other.number < self.received {
                return;
            }
            self.received = other.number;
            for voter in other.members().filter(|it| !it.is_witness) {
                let to = voter.member;
                if to.id != from.id && to.id != self.me.id {
                    self.ask_for_missing(to, cx);
                }
            }
            return;
        }
        if self.is_active && !is_active {
            self.send_current(from, cx);
        }
        if is_active && !self.is_active {
            self.on_active(cx);
        }
        let lacks_state = self.acceptor.lacks_state();
        if lacks_state && may_have_state && other.voter(self.me.id).is_some() {
            self.ask_for_missing(from, cx);
        }
        self.find_leader(cx);
    }

    /// Notes that a quorum of the configuration has installed the state.
    pub(crate) fn on_active(&mut self, cx: &mut Context<'_, Self>) {
        self.is_active = true;
        if self.invited.take().is_some() {
            cx.disarm(Timer::Invite);
        }
        if self.acceptor.holds_in_vain() {
            self.acceptor.retire();
            self.serving = [None, None];
            Self::emit_fact(Fact::Retired, cx);
        }
    }

    /// Hands the lead over to another member, at the leader.
    pub(crate) fn hand_over(
        &mut self,
        to: NodeId,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        let leader = self.leader().map(|it| it.0);
        let Role::Leader(leadership) = &self.role else {
            return Err(Reject::NotLeader { leader });
        };
        let ballot = leadership.ballot;
        let voter = self.configuration().voter(to);
        if to == self.me.id || voter.is_none_or(|it| it.is_witness) {
            return Err(Reject::NoCandidate(to));
        }
        self.void_lease(cx);
        self.send_to(to, Body::Stand { ballot }, cx);
        Ok(())
    }
}

/// Checks that a configuration that a peer sends can have this number.
pub(crate) fn check_current(other: &Configuration, number: u64) -> Result<(), Misbehaviour> {
    if other.number != number || other.check().is_err() {
        return Err(Misbehaviour::Configuration);
    }
    Ok(())
}
