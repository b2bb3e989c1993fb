//! The election of a leader: pre-vote and phase 1 of Paxos in one round trip.
//!
//! A candidate asks for promises of a ballot that it has not promised itself. A member whose leader
//! is present refuses, and no member has changed anything: that is the pre-vote. A member without a
//! leader promises: that is phase 1. The candidate makes its own promise last, when the promises of
//! the others are enough, so a candidate that was cut off returns with the ballot that it had.

use alloc::vec::Vec;
use core::mem;

use selvedge_core::{Context, Member, NodeId};

use crate::candidacy::{Best, Candidacy, Claim};
use crate::configuration::BALLOT_MAX;
use crate::encoding::encoded_len;
use crate::lead::Leadership;
use crate::message::{Body, Wants};
use crate::replica::{Deferred, Lead, Replica, Role};
use crate::{Ballot, Entries, Entry, Event, Fact, State, Timer, Version};

/// A member whose ballots fail waits up to 2 to this power times as long as after the first one.
const DOUBLINGS_MAX: u8 = 5;

impl<S: State> Replica<S> {
    /// Has some member stand, if no leader is present: this one at once if it is the most preferred
    /// of the present members, and else later. A member that waits goes on waiting, whatever it
    /// receives.
    pub(crate) fn find_leader(&mut self, cx: &mut Context<'_, Self>) {
        let may_stand = matches!(self.role, Role::Follower) && self.can_lead();
        if self.has_leader() || !may_stand || self.waits_to_stand {
            return;
        }
        let rank = self.rank();
        if rank == 0 {
            self.stand(Ballot::default(), cx);
        } else {
            self.wait_to_stand(rank, cx);
        }
    }

    /// Stops waiting to stand if this member is the most preferred now that the leader has failed.
    pub(crate) fn hasten(&mut self, cx: &mut Context<'_, Self>) {
        if self.waits_to_stand && self.rank() == 0 && !self.has_leader() {
            self.waits_to_stand = false;
            cx.disarm(Timer::Campaign);
            self.find_leader(cx);
        }
    }

    /// Waits, as another member stands or leads with a higher ballot. Two that stood again at once
    /// could go on for ever, so each has a wait of its own, whichever of the others it takes for
    /// failed.
    fn give_way(&mut self, cx: &mut Context<'_, Self>) {
        let me = self.me.id;
        let candidates = self.configuration().members().filter(|it| !it.is_witness);
        let before = candidates.take_while(|it| it.member.id != me).count();
        self.wait_to_stand(before as u64 + 1, cx);
    }

    /// Waits for so many turns, and longer after each further ballot of its own that failed: where a
    /// promise takes longer than a turn, members that stand in turn outbid each other.
    fn wait_to_stand(&mut self, turns: u64, cx: &mut Context<'_, Self>) {
        if !self.waits_to_stand {
            self.waits_to_stand = true;
            let doublings = (self.ballots.saturating_sub(1) * 2).min(DOUBLINGS_MAX);
            let turns = turns << doublings;
            cx.arm(Timer::Campaign, self.config.resend * 2 * turns);
        }
    }

    /// Stands, with a ballot above all that this member has seen.
    pub(crate) fn stand(&mut self, handed_over: Ballot, cx: &mut Context<'_, Self>) {
        let is_asked = handed_over != Ballot::default();
        if self.may_be_tied() && !is_asked {
            // It would break the lease that it acknowledged.
            self.wait_to_stand(1, cx);
            return;
        }
        self.step_down(cx);
        #[cfg(feature = "check")]
        if self
            .most_ballots
            .is_some_and(|most| self.next_ballot().number > most)
        {
            return;
        }
        let ballot = self.next_ballot();
        if ballot.number > BALLOT_MAX {
            return; // A peer that lies has used the numbers up: the others would refuse this one.
        }
        self.counters.elections += 1;
        self.ballots.0 = DOUBLINGS_MAX.min(*self.ballots + 1);
        self.waits_to_stand = false;
        self.role = Role::Candidate(Candidacy::new(ballot, handed_over));
        self.ask_for_promises(cx);
        self.evaluate(cx);
    }

    /// Asks the members that have not promised.
    fn ask_for_promises(&mut self, cx: &mut Context<'_, Self>) {
        let Role::Candidate(candidacy) = &self.role else {
            return;
        };
        let Claim { accepted, end } = self.claim();
        let body = Body::Prepare {
            ballot: candidacy.ballot,
            committed: self.acceptor.committed(),
            accepted,
            end,
            handed_over: candidacy.handed_over,
        };
        for voter in self.configuration().members() {
            let to = voter.member;
            let is_asked = to.id != self.me.id && !candidacy.has(to.id);
            if is_asked && !self.peers.has_ended(to.id) {
                self.send(to, body.clone(), cx);
            }
        }
        cx.arm(Timer::Campaign, self.config.resend);
    }

    pub(crate) fn on_stand_tick(&mut self, cx: &mut Context<'_, Self>) {
        let waited = mem::take(&mut self.waits_to_stand);
        let candidacy = match &self.role {
            Role::Candidate(candidacy) => candidacy,
            Role::Leader(_) if waited => return self.stand(Ballot::default(), cx), // It was refused.
            Role::Follower if !self.has_leader() && self.can_lead() => {
                return self.stand(Ballot::default(), cx);
            }
            Role::Leader(_) | Role::Follower => return,
        };
        let group = self.acceptor.group();
        let may_promise = |id| id == self.me.id || candidacy.has(id) || !self.peers.has_ended(id);
        if group.is_quorum(may_promise) {
            self.ask_for_promises(cx);
            self.evaluate(cx);
        } else {
            // Idle until the membership service reports another member.
            self.step_down(cx);
        }
    }

    /// Handles the arrival of a member: a candidate asks it, and this member may have waited for
    /// it.
    pub(crate) fn on_candidate_here(&mut self, cx: &mut Context<'_, Self>) {
        if matches!(self.role, Role::Candidate(_)) {
            self.ask_for_promises(cx);
        } else if self.lead.is_none() || self.lead.is_some_and(|it| it.is_lost) {
            self.find_leader(cx);
        }
    }

    /// Handles a request for a promise.
    pub(crate) fn on_prepare(
        &mut self,
        from: Member,
        ballot: Ballot,
        claim: Claim,
        handed_over: Ballot,
        cx: &mut Context<'_, Self>,
    ) {
        if !self.votes() {
            // It has no memory of its promises, or no state yet.
            if self.acceptor.lacks_state() {
                self.ask_for_missing(from, cx);
            }
            return;
        }
        self.seen = self.seen.max(ballot.number);
        let promised = self.acceptor.promised();
        let is_known = ballot == promised;
        if ballot < promised && !self.rules.any_ballot() {
            return self.refuse(from, ballot, cx);
        }
        if !is_known && self.is_bound(from, handed_over) {
            let deferred = Deferred {
                from,
                ballot,
                claim,
            };
            self.deferred = Some(deferred);
            self.refuse(from, ballot, cx);
            // A leader shows that it is present, and learns if the other one cannot follow it.
            self.on_follower_here(from.id, false, cx);
            return self.watch(cx);
        }
        self.grant(from, ballot, claim, cx);
    }

    /// Returns true if this member may not promise: its leader is present, or may rely on a lease.
    fn is_bound(&self, from: Member, handed_over: Ballot) -> bool {
        let Some(lead) = self.lead else {
            return self.may_be_tied();
        };
        if lead.ballot.by == from.id && !self.leads() {
            return false; // The leader itself raises its ballot.
        }
        let is_handed_over = handed_over == lead.ballot;
        !is_handed_over && (self.may_be_tied() || !lead.is_lost)
    }

    fn grant(&mut self, from: Member, ballot: Ballot, claim: Claim, cx: &mut Context<'_, Self>) {
        if self.acceptor.promised() != ballot {
            self.step_down(cx);
            self.acceptor.promise(ballot);
            self.lead = None;
            self.deferred = None;
            Self::emit_fact(Fact::Promised(ballot), cx);
            if self.can_lead() {
                // The candidate may fail.
                self.waits_to_stand = false;
                self.give_way(cx);
            }
        }
        let own = self.claim();
        let tail = match own > claim && !self.acceptor.is_witness() {
            true => self.acceptor.tail().cloned().collect(),
            false => Entries::new(),
        };
        let promise = Body::Promise {
            ballot,
            committed: self.acceptor.committed(),
            accepted: own.accepted,
            end: own.end,
            tail,
        };
        self.send(from, promise, cx);
    }

    pub(crate) fn refuse(&self, to: Member, ballot: Ballot, cx: &mut Context<'_, Self>) {
        let leader = self.lead.filter(|it| !it.is_lost).map(|it| it.ballot);
        let refusal = Body::Refuse {
            ballot,
            promised: self.acceptor.promised(),
            leader: leader.unwrap_or_default(),
        };
        self.send(to, refusal, cx);
    }

    /// Asks the leader if it is present, as other members take it for failed.
    pub(crate) fn watch(&mut self, cx: &mut Context<'_, Self>) {
        let Some(lead) = self
            .lead
            .filter(|it| !it.is_lost && it.ballot.by != self.me.id)
        else {
            return;
        };
        if self.watches {
            return;
        }
        self.watches = true;
        self.send_to(lead.ballot.by, Body::Read { number: 0 }, cx);
        let patience = self.config.resend * u64::from(self.config.attempts);
        cx.arm(Timer::Watch, patience);
    }

    pub(crate) fn on_watch_tick(&mut self, cx: &mut Context<'_, Self>) {
        if self.watches {
            self.watches = false;
            self.lose_leader(cx);
        }
    }

    /// Ends the question to the leader: it answered, or another one leads.
    pub(crate) fn end_watch(&mut self, cx: &mut Context<'_, Self>) {
        if self.watches {
            self.watches = false;
            cx.disarm(Timer::Watch);
        }
    }

    /// Takes the leader for lost.
    pub(crate) fn lose_leader(&mut self, cx: &mut Context<'_, Self>) {
        self.end_watch(cx);
        if self.leads() {
            return; // It learns that from higher ballots alone.
        }
        if let Some(lead) = &mut self.lead {
            lead.is_lost = true;
        }
        if let Some(deferred) = self.deferred.take()
            && deferred.ballot > self.acceptor.promised()
            && !self.may_be_tied()
            && self.votes()
        {
            let Deferred {
                from,
                ballot,
                claim,
            } = deferred;
            return self.grant(from, ballot, claim, cx);
        }
        self.hasten(cx);
        self.find_leader(cx);
    }

    pub(crate) fn on_promise(
        &mut self,
        from: Member,
        ballot: Ballot,
        claim: Claim,
        committed: Version,
        tail: Entries<S::Update>,
        cx: &mut Context<'_, Self>,
    ) {
        let Role::Candidate(candidacy) = &mut self.role else {
            self.counters.stale += 1;
            return;
        };
        let Some(voter) = self.acceptor.configuration().voter(from.id) else {
            self.counters.stale += 1;
            return;
        };
        if candidacy.ballot != ballot {
            self.counters.stale += 1;
            return;
        }
        candidacy.note(from.id, claim);
        let is_better = candidacy
            .best
            .as_ref()
            .is_none_or(|best| best.claim < claim);
        let len: usize = tail.iter().map(encoded_len).sum();
        let is_whole = committed + tail.len() as Version == claim.end
            && len <= self.acceptor.group().entry_room();
        if !voter.is_witness && is_whole && is_better {
            candidacy.best = Some(Best {
                from,
                claim,
                committed,
                tail,
            });
        }
        self.evaluate(cx);
    }

    /// Leads, if a quorum has promised and the candidate has the entries of that quorum.
    pub(crate) fn evaluate(&mut self, cx: &mut Context<'_, Self>) {
        let Role::Candidate(candidacy) = &self.role else {
            return;
        };
        debug_assert!(
            self.acceptor.promised() <= candidacy.ballot,
            "a candidate that promises a higher ballot steps down"
        );
        let own = self.claim();
        let highest = candidacy.best.as_ref().map_or(own, |it| it.claim.max(own));
        // A witness may have a higher claim, and cannot send the entries that it accepted. A quorum
        // without it is as good; else the candidate waits for a member that holds them.
        let counts_all = self.rules.adopts_confirmed();
        let is_for = |id: NodeId| {
            let claim = candidacy.claim(id);
            id == self.me.id || claim.is_some_and(|it| counts_all || it <= highest)
        };
        if !self.acceptor.group().is_quorum(is_for) {
            return;
        }
        let committed = self.acceptor.committed();
        if own == highest || self.rules.adopts_confirmed() {
            let mut tail: Vec<Entry<S::Update>> = self.acceptor.tail().cloned().collect();
            if self.rules.adopts_confirmed() {
                tail.truncate(self.confirmed(candidacy));
            }
            return self.lead(tail, cx);
        }
        let Some(best) = candidacy.best.as_ref().filter(|it| it.claim == highest) else {
            return;
        };
        if best.committed > committed {
            let from = best.from;
            let wants = Wants::Entries;
            return self.send(from, Body::Missing { committed, wants }, cx);
        }
        let known = usize::try_from(committed - best.committed).unwrap_or(usize::MAX);
        let tail = best.tail.iter().skip(known).cloned().collect();
        self.lead(tail, cx);
    }

    /// The number of the candidate's entries that a quorum of the promising members holds: the
    /// published rule keeps no more.
    fn confirmed(&self, candidacy: &Candidacy<S::Update>) -> usize {
        let committed = self.acceptor.committed();
        let holds = |version: Version| {
            self.acceptor.group().is_quorum(|id| {
                let claim = candidacy.promises.iter().find(|it| it.0 == id);
                id == self.me.id || claim.is_some_and(|it| it.1.end >= version)
            })
        };
        (1..)
            .take_while(|nth| committed + nth <= self.acceptor.end() && holds(committed + nth))
            .count()
    }

    /// Begins to lead, with these entries as adopted.
    fn lead(&mut self, adopted: Vec<Entry<S::Update>>, cx: &mut Context<'_, Self>) {
        let Role::Candidate(candidacy) = &self.role else {
            return;
        };
        let Candidacy {
            ballot, is_raised, ..
        } = *candidacy;
        let after = self.acceptor.committed();
        cx.disarm(Timer::Campaign);
        self.end_watch(cx);
        self.waits_to_stand = false;
        self.deferred = None;
        self.fetching = None;
        cx.disarm(Timer::Fetch);
        self.acceptor
            .accept(ballot, (after, after), adopted.iter().cloned());
        let group = self.acceptor.configuration();
        let start = self.acceptor.end();
        let mut leadership = Leadership::new(ballot, self.me.id, group, start);
        leadership.is_raised = is_raised;
        self.role = Role::Leader(leadership);
        let is_lost = false;
        self.lead = Some(Lead { ballot, is_lost });
        self.on_active(cx);
        Self::emit_fact(
            Fact::Accepted {
                ballot,
                after,
                committed: after,
                commit: after,
                entries: adopted.into_iter().collect(),
            },
            cx,
        );
        let leader = self.me.id;
        cx.event(Event::Elected { leader, ballot });
        self.begin_lease(cx);
        self.send_accepts(cx);
        self.enter_own(cx);
        self.advance(self.acceptor.end(), cx);
    }

    /// Handles a refusal: a member does not promise, or does not accept.
    pub(crate) fn on_refuse(
        &mut self,
        ballot: Ballot,
        promised: Ballot,
        leader: Ballot,
        cx: &mut Context<'_, Self>,
    ) {
        self.seen = self.seen.max(promised.number);
        match &self.role {
            Role::Candidate(candidacy) if candidacy.ballot == ballot => {
                // This member cannot follow a leader below its promised ballot.
                let own = self.acceptor.promised();
                // The other one may not have learned yet that the leader failed.
                let is_there = leader != Ballot::default()
                    && leader.by != self.me.id
                    && !self.peers.has_ended(leader.by);
                if is_there && leader >= own {
                    self.step_down(cx);
                    self.follow_hearsay(leader, cx);
                } else if promised > ballot {
                    self.step_down(cx);
                    self.give_way(cx);
                }
            }
            Role::Leader(leadership) if leadership.ballot == ballot && promised > ballot => {
                // It goes on with the others meanwhile.
                if leadership.is_raised {
                    self.give_way(cx);
                } else {
                    self.stand(Ballot::default(), cx);
                    if let Role::Candidate(candidacy) = &mut self.role {
                        candidacy.is_raised = true;
                    }
                }
            }
            Role::Follower if ballot == Ballot::default() && leader.by != self.me.id => {
                let known = self.lead.map(|it| it.ballot).unwrap_or_default();
                if leader > known {
                    self.follow_hearsay(leader, cx);
                }
            }
            Role::Follower | Role::Candidate(_) | Role::Leader(_) => self.counters.stale += 1,
        }
    }

    /// Asks a leader that another member takes for present.
    fn follow_hearsay(&mut self, leader: Ballot, cx: &mut Context<'_, Self>) {
        if leader < self.acceptor.promised() {
            return self.find_leader(cx);
        }
        let is_lost = false;
        self.lead = Some(Lead {
            ballot: leader,
            is_lost,
        });
        self.waits_to_stand = false;
        cx.disarm(Timer::Campaign);
        self.watch(cx);
        self.send_work(cx);
    }

    /// Stands at the leader's request.
    pub(crate) fn on_stand(&mut self, ballot: Ballot, cx: &mut Context<'_, Self>) {
        let is_leader = self.lead.is_some_and(|it| it.ballot == ballot);
        if is_leader && self.can_lead() && matches!(self.role, Role::Follower) {
            self.stand(ballot, cx);
        } else {
            self.counters.stale += 1;
        }
    }
}
