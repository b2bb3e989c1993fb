//! The queries of an initiator.

use selvedge_core::{Context, Member};

use crate::message::Message;
use crate::peers::Peers;
use crate::pool::Pool;
use crate::run::{Run, named};
use crate::{Attribute, Ballot, Celect, Event, Protocol, Timer};

impl<A: Attribute> Celect<A> {
    /// Begins an election. Its epoch is above all known epochs.
    pub(crate) fn begin(&mut self, cx: &mut Context<'_, Self>) {
        self.epoch = self.epoch.saturating_add(1);
        let ballot = Ballot {
            epoch: self.epoch,
            initiator: self.me,
            step: 0,
        };
        let (x, y) = if self.config.protocol.prefers() {
            (self.config.lowest, self.config.suspected)
        } else {
            (1, 0)
        };
        if let Some(leader) = &mut self.leader {
            leader.asked = 0;
        }
        self.run = Some(Run {
            few: self.is_of_few(),
            ..Run::new(ballot, (x, y), self.bound())
        });
        self.awaited = None;
        cx.disarm(Timer::Watch);
        cx.disarm(Timer::Start);
        cx.event(Event::Electing(ballot));
        self.round(cx);
    }

    /// Begins a round: asks again, and uses all that the run has learned.
    pub(crate) fn round(&mut self, cx: &mut Context<'_, Self>) {
        let bound = self.bound();
        if let Some(run) = &mut self.run {
            run.bound = bound;
            run.agreed = 0;
            run.overdue = 0;
        }
        let (wanted, lean) = self.wanted();
        let Some(run) = &mut self.run else {
            debug_assert!(false, "a run has rounds");
            return;
        };
        run.asked.clear();
        run.answered.clear();
        run.candidates.clear();
        run.unhealthy.clear();
        run.named = None;
        run.ballot = run.last;
        run.unnamed = run.exclude.len() - named(run.exclude.iter().copied(), &self.config).len();
        let pool = Self::pool(&self.peers, &self.attribute, run, false);
        let known = pool.len();
        let chosen = pool.draw(wanted, cx);
        // Then answers allocate nothing, unless they name many different nodes.
        let needed = run.needed().min(chosen.len());
        run.answered.reserve(needed);
        run.candidates.reserve(2 * usize::from(run.x));
        run.unhealthy.reserve(2 * usize::from(run.y));
        // If the others are too few, our own list is added.
        run.wants = known < wanted && !self.rules.no_discovery();
        run.own = lean || run.wants;
        self.ask(&chosen, cx);
        cx.arm(Timer::Answer, self.config.timeout);
        if self.run.as_ref().is_some_and(|run| run.own) {
            self.answer_ourselves(cx);
        }
    }

    /// Adds our own list as an answer.
    pub(crate) fn answer_ourselves(&mut self, cx: &mut Context<'_, Self>) {
        let Some(run) = &self.run else {
            debug_assert!(false, "a run asks this node too");
            return;
        };
        let (candidates, unhealthy, _) = self.answer(run.x, run.y, &run.exclude);
        self.absorb(&candidates, &unhealthy, true);
        self.evaluate(cx);
    }

    /// Returns the number of others to ask, and true if our own list counts in any case.
    pub(crate) fn wanted(&self) -> (usize, bool) {
        let lean = matches!(self.config.protocol, Protocol::Lean);
        let wanted = self.needed() + usize::from(self.config.failures);
        (wanted - usize::from(lean), lean)
    }

    /// Returns the number of lists that our election needs, or an election that begins now.
    pub(crate) fn needed(&self) -> usize {
        let next = usize::from(self.bound().0) + 1;
        self.run.as_ref().map_or(next, Run::needed)
    }

    /// Gives the current bound to a run that waits for answers. A run that has its answers keeps the
    /// bound with which it began.
    pub(crate) fn rest_on_latest(&mut self) {
        let bound = self.bound();
        if let Some(run) = &mut self.run
            && run.answers() < run.needed()
            && bound.0 != run.bound.0
        {
            run.bound = bound;
        }
    }

    /// Returns the nodes that may be asked, with or without the nodes that have answered.
    pub(crate) fn pool<'a>(
        peers: &'a Peers,
        attribute: &A,
        run: &Run,
        is_repeated: bool,
    ) -> Pool<'a> {
        let answered = run.answered.iter().filter(|_| is_repeated);
        let without = run.exclude.iter().chain(answered).copied();
        Pool::new(peers, attribute, &run.met, without)
    }

    /// Asks `members`.
    pub(crate) fn ask(&mut self, members: &[Member], cx: &mut Context<'_, Self>) {
        let (wanted, _) = self.wanted();
        let Some(run) = &mut self.run else {
            debug_assert!(false, "a run asks");
            return;
        };
        let want = if run.wants {
            u16::try_from(wanted).unwrap_or(u16::MAX)
        } else {
            0
        };
        let exclude = named(run.exclude.iter().copied(), &self.config);
        let x = usize::from(run.x).saturating_add(run.unnamed);
        let x = u8::try_from(x).unwrap_or(u8::MAX);
        for &member in members {
            run.note_asked(member, &self.peers);
            cx.send(
                member,
                Message::Query {
                    ballot: run.ballot,
                    lowest: x,
                    suspected: run.y,
                    want,
                    exclude: exclude.clone(),
                    no_majority: run.few,
                },
            );
        }
    }
}
