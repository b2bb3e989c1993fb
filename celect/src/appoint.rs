//! The appointment of a node by this node's election, and its outcome.

use selvedge_core::{Context, Member, Pending, Span};

use crate::message::Message;
use crate::run::{Appointee, Run};
use crate::{Attribute, Ballot, Celect, Config, Event, Timer};

impl<A: Attribute> Celect<A> {
    /// Appoints the best candidate of the answers, if these are enough.
    pub(crate) fn evaluate(&mut self, cx: &mut Context<'_, Self>) {
        let (needed, protocol) = (self.needed(), self.config.protocol);
        let Some(run) = &mut self.run else {
            return; // This node runs no election.
        };
        let enough = run.answers() >= needed;
        let is_spoken_for =
            |it: &Member| run.unhealthy.binary_search(it).is_err() && !run.exclude.contains(it);
        let mut by_rank = run.candidates.iter().map(|&(_, member)| member);
        let best = by_rank.find(is_spoken_for);
        match best {
            Some(best)
                if (enough || protocol.streams())
                    && run.named.is_none_or(|named| named.member != best) =>
            {
                self.appoint(best, cx);
            }
            Some(_) => {}
            None if run.y > 0 && (enough || self.rules.restarts_when_empty()) => {
                run.x = run.x.saturating_add(1);
                run.y -= 1;
                run.last = run.last.next();
                self.counters.rounds += 1;
                self.round(cx);
            }
            None => {}
        }
        self.finish(cx);
    }

    fn appoint(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        let Some(run) = &mut self.run else {
            debug_assert!(false, "a run appoints");
            return;
        };
        run.last = run.last.next();
        let ballot = run.last;
        run.named = Some(Appointee {
            member,
            appointment: Pending::new(ballot),
            leads: member == self.me,
        });
        if member == self.me {
            let few = run.few;
            self.lead((ballot, few), None, cx);
        } else {
            let life = member.incarnation.0;
            let few = run.few;
            cx.send(
                member,
                Message::Appoint {
                    ballot,
                    life,
                    no_majority: few,
                },
            );
            cx.arm(Timer::Answer, self.wait());
        }
    }

    /// Returns the time to wait for answers, or for the node that we appointed. A report that a node
    /// failed, or let its lease run out, may be false, so the node gets as many APPOINTs as others.
    /// But it is rarely false, so all these attempts together take one timeout.
    fn wait(&self) -> Span {
        let Config {
            timeout, attempts, ..
        } = self.config;
        let enough = |run: &&Run| run.answers() >= run.needed();
        let named = self.run.as_ref().filter(enough).and_then(|run| run.named);
        let is_lost = |member| (self.leader).is_some_and(|it| it.lost && it.member == member);
        let has_ended = |member| self.peers.has_ended(member) || is_lost(member);
        if named.is_some_and(|named| has_ended(named.member)) {
            Span((timeout.0 / u64::from(attempts)).max(1))
        } else {
            timeout
        }
    }

    /// Records that a node leads by this ballot.
    pub(crate) fn confirm(&mut self, ballot: Ballot) {
        if let Some(named) = self.run.as_mut().and_then(|run| run.named.as_mut()) {
            named.leads |= named.appointment.is_answered_by(&ballot);
        }
    }

    /// Ends the run if the node that it appointed leads.
    pub(crate) fn finish(&mut self, cx: &mut Context<'_, Self>) {
        let named = self.run.as_ref().and_then(|run| {
            let is_done = run.answers() >= run.needed();
            run.named.filter(|named| is_done && named.leads)
        });
        let Some(named) = named else {
            return; // The run goes on, or this node runs no election.
        };
        if let Some(run) = self.run.take() {
            cx.disarm(Timer::Answer);
            let (member, ballot) = (named.member, *named.appointment.question());
            let (c, miss) = run.bound;
            // An estimate that was forgotten meanwhile came from another leader, or is too old.
            let miss = miss.filter(|_| self.has_bound());
            cx.event(Event::Concluded {
                ballot,
                missing_from: c,
                miss,
            });
            let answers = u16::try_from(run.answered.len()).unwrap_or(u16::MAX);
            let missing = answers.saturating_sub(run.agreed);
            self.report(member, (ballot, answers, missing), cx);
            // The leader was lost during the run, so no election was begun then.
            if self.leader.is_some_and(|leader| leader.lost)
                && self.config.reelect
                && !self.rules.lowest_wins()
            {
                self.begin_soon(cx);
            }
        }
    }

    /// Handles overdue answers, or an overdue appointed node.
    pub(crate) fn on_overdue(&mut self, cx: &mut Context<'_, Self>) {
        // The answers at hand may be enough by now.
        self.rest_on_latest();
        self.evaluate(cx);
        let needed = self.needed();
        let wait = self.wait();
        let Some(run) = &mut self.run else {
            return; // The answers were enough, and the run is over.
        };
        cx.arm(Timer::Answer, wait);
        if run.answers() < needed {
            self.ask_more(cx);
            return;
        }
        let Some(named) = &mut run.named else {
            // All candidates are excluded: some of them may be alive after all.
            run.exclude.clear();
            run.last = run.last.next();
            self.round(cx);
            return;
        };
        let (member, ballot) = (named.member, *named.appointment.question());
        let repeats = self.config.attempts.saturating_sub(1);
        if named.appointment.again(repeats) || self.rules.retries_the_dead() {
            let life = member.incarnation.0;
            let few = run.few;
            cx.send(
                member,
                Message::Appoint {
                    ballot,
                    life,
                    no_majority: few,
                },
            );
            return;
        }
        self.pass_over(member, cx);
    }

    fn ask_more(&mut self, cx: &mut Context<'_, Self>) {
        let needed = self.needed();
        let (wanted, lean) = self.wanted();
        let Some(run) = &mut self.run else {
            debug_assert!(false, "a run asks");
            return;
        };
        run.forget_silent(&self.peers, self.config.attempts);
        let pool_of =
            |run: &Run, is_repeated| Self::pool(&self.peers, &self.attribute, run, is_repeated);
        let others = pool_of(run, false).len();
        // The nodes that we knew when the round began have become too few, or too few of them
        // answer.
        let is_short = others < wanted || run.asked_of(&self.peers) >= others;
        if !run.wants && is_short && !self.rules.no_discovery() {
            run.wants = true;
            if !run.own {
                run.own = true;
                self.answer_ourselves(cx);
                return;
            }
        }
        let known = others + usize::from(run.own || lean);
        let is_starved = known < needed && !self.rules.no_discovery();
        if is_starved && !run.exclude.is_empty() && !self.rules.retries_the_dead() {
            // Without the nodes that were passed over too few are left: some may be alive after
            // all.
            run.exclude.clear();
            run.last = run.last.next();
            self.counters.rounds += 1;
            self.round(cx);
            return;
        }
        if is_starved && !run.starved {
            run.starved = true;
            let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
            cx.event(Event::Stalled {
                ballot: run.ballot,
                known: count(known),
                needed: count(needed),
            });
        }
        let missing = wanted.saturating_sub(run.answered.len());
        // A node that has answered may know others, and may have met some since.
        let chosen = pool_of(run, !run.wants).draw(missing, cx);
        self.ask(&chosen, cx);
    }

    /// Asks again without the node that we appointed, which seems to be dead.
    pub(crate) fn pass_over(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        // Asks again instead of taking the next of the answers: each answer names one node, so the
        // next of them may not be the lowest. Silence or a certain end passes a node over; a declared
        // failure does not, because other nodes may know better.
        let Some(run) = &mut self.run else {
            debug_assert!(false, "a run passes over");
            return;
        };
        while !run.exclude.is_empty() && !run.has_room(member, &self.config) {
            run.exclude.remove(0);
        }
        run.exclude.push(member);
        if self.rules.skips_locally() {
            run.named = None;
            self.evaluate(cx);
            return;
        }
        run.last = run.last.next();
        self.counters.rounds += 1;
        self.round(cx);
    }

    /// Passes over an appointed node whose life has certainly ended, without waiting.
    pub(crate) fn drop_from_run(&mut self, cx: &mut Context<'_, Self>) {
        let named = self.run.as_ref().and_then(|run| run.named);
        if let Some(named) = named
            && !named.leads
            && self.peers.is_over(named.member)
            && !self.rules.retries_the_dead()
        {
            self.pass_over(named.member, cx);
        }
    }
}
