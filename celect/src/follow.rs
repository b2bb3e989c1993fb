//! Other nodes' elections, to which this node gives way; the leader that it follows; and the loss of
//! that leader.

use selvedge_core::{Context, Member, Span, serial_newer};

use crate::attribute::key;
use crate::leadership::Leadership;
use crate::message::Message;
use crate::{Attribute, Ballot, Celect, Event, Timer};

impl<A: Attribute> Celect<A> {
    /// Handles the QUERY of another node's election.
    pub(crate) fn on_query(
        &mut self,
        from: Member,
        (ballot, few): (Ballot, bool),
        (x, y, want): (u8, u8, u16),
        exclude: &[Member],
        cx: &mut Context<'_, Self>,
    ) {
        let later = self.leader.filter(|leader| {
            let by_ballots = !self.rules.lowest_wins() && !self.rules.last_wins();
            let is_kept = few && self.keeps_leader(from, ballot);
            by_ballots && (leader.ballot > ballot || is_kept)
        });
        // A streaming initiator appoints before all answers arrive, and sends QUERY again.
        let is_of_this_run = later.is_some_and(|leader| leader.ballot.same_run(ballot));
        if let Some(leader) = later
            && !is_of_this_run
        {
            self.send_leader(from, leader, cx);
            return;
        }
        self.epoch = self.epoch.max(ballot.epoch);
        if !is_of_this_run {
            self.give_way(ballot, cx);
        }
        let (candidates, unhealthy, mut room) = self.answer(x, y, exclude);
        let known = self.others(want, from, exclude, &mut room, cx);
        cx.send(
            from,
            Message::Response {
                ballot,
                candidates,
                unhealthy,
                known,
            },
        );
        if self.awaited == Some(ballot) && self.peers.has_ended(from) {
            self.watch(cx);
        }
    }

    /// Awaits the leader of another run, and gives up our own if the other has the larger ballot.
    fn give_way(&mut self, ballot: Ballot, cx: &mut Context<'_, Self>) {
        match &self.run {
            Some(run) if run.last > ballot => {}
            Some(run) => {
                let ours = run.ballot;
                self.run = None;
                cx.disarm(Timer::Answer);
                cx.event(Event::Yielded {
                    ballot: ours,
                    to: ballot,
                });
                self.awaited = self.awaited.max(Some(ballot));
                if self.config.patience > Span::ZERO && !self.rules.gives_up() {
                    cx.arm(Timer::Watch, self.config.patience);
                }
            }
            None => self.awaited = self.awaited.max(Some(ballot)),
        }
    }

    /// Handles our appointment.
    pub(crate) fn on_appoint(
        &mut self,
        from: Member,
        (ballot, few): (Ballot, bool),
        life: u32,
        cx: &mut Context<'_, Self>,
    ) {
        if life != self.me.incarnation.0 {
            self.counters.stale += 1;
            return;
        }
        self.epoch = self.epoch.max(ballot.epoch);
        let is_kept = few && self.keeps_leader(from, ballot);
        let is_later = |it: &Leadership| it.ballot >= ballot && !self.rules.last_wins();
        match self.leader.filter(|it| is_kept || is_later(it)) {
            Some(leader) => self.send_leader(from, leader, cx),
            None => self.lead((ballot, few), Some(from), cx),
        }
    }

    /// Makes this node lead by this ballot, and announces it. `few` is true if the initiator had no
    /// majority.
    pub(crate) fn lead(
        &mut self,
        (ballot, few): (Ballot, bool),
        by: Option<Member>,
        cx: &mut Context<'_, Self>,
    ) {
        let leader = Leadership {
            member: self.me,
            ballot,
            renewal: 0,
            lease: self.config.lease.unwrap_or_default(),
            lost: false,
            few: few || self.lacks_majority(),
            asked: 0,
            firm: false,
        };
        let led = self.leads().is_some();
        self.adopt(leader, cx);
        let is_sent = self.announce(leader, by, cx);
        cx.disarm(Timer::Lease);
        self.begin_lease(is_sent, cx);
        // A node that leads on goes on measuring as it did.
        if !led {
            self.begin_to_measure(cx);
        }
    }

    pub(crate) fn on_leader(
        &mut self,
        from: Member,
        (received, ended): (Leadership, bool),
        covered: &[Member],
        cx: &mut Context<'_, Self>,
    ) {
        let Leadership {
            member,
            ballot,
            renewal,
            ..
        } = received;
        self.epoch = self.epoch.max(ballot.epoch);
        let claimed = Leadership {
            lost: ended,
            ..received
        };
        if (claimed.few || claimed.lost) && self.keeps_leader(from, ballot) {
            self.contest(from, claimed, cx);
            return;
        }
        if ended && self.answer_that_we_lead(from, ballot, cx) {
            return;
        }
        let mut is_new = false;
        if !ended {
            self.confirm(ballot);
        }
        if self.supersedes(received) {
            // LEADER from the leader itself must count as newer than a report of others that the
            // leader failed.
            let renewal = renewal.wrapping_sub(ended.into());
            self.adopt(
                Leadership {
                    renewal,
                    ..received
                },
                cx,
            );
            is_new = true;
            if ended {
                self.end_announcement(cx);
            } else {
                self.rejoin(received, cx);
                self.pass_on(received, from, covered, cx);
            }
            self.renewed(cx);
        } else if let Some(known) = self.leader
            && known.ballot == ballot
            && known.member == member
        {
            let answers = known.asked > 0 && from == member;
            if member != self.me
                && !ended
                && (answers || serial_newer(renewal, known.renewal))
                && (!known.lost || self.is_credible(from, member))
            {
                self.leader = Some(received);
                if known.lost || answers {
                    cx.disarm(Timer::Start);
                }
                if known.lost {
                    self.rejoin(received, cx);
                    cx.event(Event::Regained {
                        leader: member,
                        ballot,
                    });
                }
                self.pass_on(received, from, covered, cx);
                self.renewed(cx);
                // The leader may have sent the answer before it failed.
                if answers && self.peers.has_ended(member) && self.config.reelect {
                    self.watch(cx);
                }
            }
        } else if let Some(known) = self.leader
            && known.ballot > ballot
            && self.config.retries > 0
        {
            // The sender has missed a later ballot.
            self.send_leader(from, known, cx);
            return;
        }
        // An acknowledgement means that this node follows.
        let is_given_up = |it: Leadership| it.ballot == ballot && it.lost;
        if !ended && !self.leader.is_some_and(is_given_up) {
            self.send_leader_ack(from, ballot, renewal, cx);
        }
        self.finish(cx);
        if is_new && ended {
            self.lose(cx);
        } else if is_new {
            self.recheck_failed(from, cx);
        }
    }

    /// Loses a new leader whose failure was reported before: it will not be reported again.
    fn recheck_failed(&mut self, from: Member, cx: &mut Context<'_, Self>) {
        let Some(leader) = self.leader else {
            debug_assert!(false, "a leader was adopted in this step");
            return;
        };
        if !self.is_credible(from, leader.member) {
            self.lose(cx);
        } else if self.peers.has_ended(leader.member) && self.config.reelect {
            // The leader itself sent LEADER: it was alive a moment ago, and may be refuted soon.
            self.watch(cx);
        }
    }

    /// Returns true if this node believes a LEADER from `from` about `leader`. A leader that sends it
    /// itself has not failed; a LEADER that others forward may be older than the failure.
    fn is_credible(&self, from: Member, leader: Member) -> bool {
        let speaks_for_itself = from == leader && !self.peers.is_over(leader);
        speaks_for_itself || !self.peers.has_ended(leader)
    }

    fn supersedes(&self, received: Leadership) -> bool {
        let Some(known) = self.leader else {
            return true;
        };
        if self.rules.last_wins() {
            return known.ballot != received.ballot;
        }
        if self.rules.lowest_wins() {
            return key(&self.attribute, received.member) < key(&self.attribute, known.member);
        }
        received.ballot > known.ballot
    }

    /// Follows `leader`.
    fn adopt(&mut self, leader: Leadership, cx: &mut Context<'_, Self>) {
        let Leadership { member, ballot, .. } = leader;
        if let Some(ours) = self.leads()
            && member != self.me
        {
            self.stop_leading(cx);
            cx.event(Event::Deposed {
                ballot: ours,
                by: ballot,
            });
        }
        let is_other = |it: Leadership| it.member != member;
        if self.leader.is_some_and(is_other) {
            self.forget_leader(cx);
        }
        self.leader = Some(leader);
        self.contested = self.contested.filter(|it| it.ballot > ballot);
        cx.disarm(Timer::Start);
        cx.event(Event::Elected {
            leader: member,
            ballot,
        });
        if self.awaited.is_some_and(|awaited| awaited <= ballot) {
            self.awaited = None;
            cx.disarm(Timer::Watch);
        }
        if let Some(run) = &self.run
            && !run.ballot.same_run(ballot)
            && run.last < ballot
        {
            self.run = None;
            cx.disarm(Timer::Answer);
        }
    }

    /// Handles the loss of the leader, which is believed to have failed or left.
    pub(crate) fn lose(&mut self, cx: &mut Context<'_, Self>) {
        if let Some(leader) = &mut self.leader
            && !leader.lost
        {
            leader.lost = true;
            leader.asked = 0;
            let event = Event::Lost {
                leader: leader.member,
                ballot: leader.ballot,
            };
            cx.event(event);
            cx.disarm(Timer::Lease);
            self.forget_leader(cx);
            self.ask_leader(cx);
            if self.config.reelect {
                self.begin_soon(cx);
            }
        }
    }

    /// Returns true if a leader is missing: no node leads, or the leader is believed to have failed or
    /// left, or an initiator has promised a later leader.
    pub(crate) fn misses_leader(&self) -> bool {
        let has_ended = |it: Leadership| it.lost || self.peers.has_ended(it.member);
        self.leader.is_none_or(has_ended) || self.awaited.is_some()
    }

    /// Begins an election after a delay that differs between nodes, in which an election of another
    /// node may make it unnecessary.
    pub(crate) fn begin_soon(&mut self, cx: &mut Context<'_, Self>) {
        const SLOTS: u64 = 16;
        let (timeout, attempts) = (self.config.timeout, self.config.attempts);
        let asked = self.leader.map_or(0, |it| it.asked);
        // All questions together take one timeout.
        let answer = if asked > 0 {
            Span((timeout.0 / u64::from(attempts)).max(1))
        } else {
            Span::ZERO
        };
        if self.config.spread == Span::ZERO && answer == Span::ZERO {
            self.begin_if_missed(cx);
            return;
        }
        let mut after = answer;
        let is_last = asked == 0 || asked >= attempts;
        if self.config.spread > Span::ZERO && is_last {
            let slot = cx.below(SLOTS);
            after = answer + Span(self.config.spread.0.saturating_mul(slot) / SLOTS);
        }
        cx.arm(Timer::Start, after);
    }

    pub(crate) fn watch(&mut self, cx: &mut Context<'_, Self>) {
        if self.rules.gives_up() {
            return;
        }
        if self.config.patience == Span::ZERO {
            self.begin_if_missed(cx);
        } else {
            cx.arm(Timer::Watch, self.config.patience);
        }
    }

    pub(crate) fn begin_if_missed(&mut self, cx: &mut Context<'_, Self>) {
        if self.run.is_none() && self.misses_leader() {
            self.begin(cx);
        }
    }
}
