//! A member that follows a leader.

use selvedge_core::{Context, Member};

use crate::acceptor::Accept;
use crate::message::Body;
use crate::replica::{Lead, Replica, Role};
use crate::{Ballot, Entries, Event, Fact, State, Timer, Version};

impl<S: State> Replica<S> {
    /// Handles a leader's entries, the report of its last commit, or its claim to lead.
    pub(crate) fn on_accept(
        &mut self,
        from: Member,
        ballot: Ballot,
        (after, commit, round): (Version, Version, u64),
        entries: Entries<S::Update>,
        cx: &mut Context<'_, Self>,
    ) {
        if !self.votes() {
            return self.on_accept_without_vote(from, commit, cx);
        }
        if ballot < self.acceptor.promised() && !self.rules.any_ballot() {
            return self.refuse(from, ballot, cx);
        }
        self.follow(ballot, cx);
        let before = self.claim();
        let held = self
            .acceptor
            .accept(ballot, (after, commit), entries.iter().cloned());
        if held == Accept::Gap {
            return self.ask_for_missing(from, cx);
        }
        if self.claim() != before {
            let fact = Fact::Accepted {
                ballot,
                after,
                committed: self.acceptor.committed(),
                commit,
                entries,
            };
            Self::emit_fact(fact, cx);
        }
        self.tie(cx);
        let number = self.configuration().number;
        let end = self.acceptor.end();
        // This commits no further than the last entry that this member holds.
        self.commit(commit, cx);
        if self.configuration().number != number {
            return; // The leader knows of the commit: its own configuration ended.
        }
        let committed = self.acceptor.committed();
        let accepted = Body::Accepted {
            ballot,
            end,
            committed,
            round,
        };
        self.send(from, accepted, cx);
        if commit > committed {
            self.ask_for_missing(from, cx);
        }
    }

    /// Follows the commits, at a member without a vote, and asks to be named.
    fn on_accept_without_vote(
        &mut self,
        from: Member,
        commit: Version,
        cx: &mut Context<'_, Self>,
    ) {
        let named = self.configuration().voter(self.me.id);
        // A node that is named as a witness would get no state, and a message of the leader again.
        let is_bare = named.is_some_and(|it| it.is_witness);
        let lacks_state = !is_bare && self.acceptor.state().is_none();
        if commit > self.acceptor.committed() || lacks_state {
            self.ask_for_missing(from, cx);
        }
        if self.acceptor.is_named_before() {
            let life = self.acceptor.voter().incarnation.0;
            self.send(from, Body::Rejoin { life }, cx);
        }
    }

    /// Follows a leader that has sent a message itself.
    fn follow(&mut self, ballot: Ballot, cx: &mut Context<'_, Self>) {
        self.seen = self.seen.max(ballot.number);
        if !self.is_active {
            self.on_active(cx);
        }
        let known = self.lead.filter(|it| !it.is_lost).map(|it| it.ballot);
        if known == Some(ballot) && matches!(self.role, Role::Follower) {
            return;
        }
        self.step_down(cx);
        self.end_watch(cx);
        let is_lost = false;
        self.lead = Some(Lead { ballot, is_lost });
        self.deferred = None;
        if self.waits_to_stand {
            self.waits_to_stand = false;
            cx.disarm(Timer::Campaign);
        }
        let leader = ballot.by;
        cx.event(Event::Elected { leader, ballot });
        self.send_work(cx);
    }
}
