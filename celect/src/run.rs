//! An election, at its initiator; and what others answer it.

use alloc::vec::Vec;

use selvedge_core::{Context, Member, Rank};

use crate::message::{FIXED_MAX_LEN, Members, Message, cut};
use crate::{Attribute, Ballot, Celect, Event, Protocol, Timer};

/// An election of ours.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Run {
    /// Of this round.
    pub(crate) ballot: Ballot,
    /// The last that was given out.
    pub(crate) last: Ballot,
    /// Who is not on our list, and was named in an answer when we knew too few.
    pub(crate) met: Vec<Member>,
    pub(crate) asked: Vec<Member>,
    pub(crate) answered: Vec<Member>,
    /// Whether our own list is one of the answers.
    own: bool,
    pub(crate) candidates: Vec<Member>,
    pub(crate) unhealthy: Vec<Member>,
    /// Who did not answer when it was appointed, in that order.
    pub(crate) exclude: Vec<Member>,
    pub(crate) x: u8,
    pub(crate) y: u8,
    named: Option<Named>,
    /// Whether the application was told that too few are known.
    starved: bool,
}

/// Whom we appointed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Named {
    member: Member,
    ballot: Ballot,
    attempts: u8,
    /// Whether it said that it leads.
    heard: bool,
}

impl Run {
    const fn new(ballot: Ballot, x: u8, y: u8) -> Self {
        Self {
            ballot,
            last: ballot,
            met: Vec::new(),
            asked: Vec::new(),
            answered: Vec::new(),
            own: false,
            candidates: Vec::new(),
            unhealthy: Vec::new(),
            exclude: Vec::new(),
            x,
            y,
            named: None,
            starved: false,
        }
    }

    fn answers(&self) -> usize {
        self.answered.len() + usize::from(self.own)
    }
}

/// Puts a member into a sorted list, once.
pub(crate) fn put(list: &mut Vec<Member>, member: Member) {
    if let Err(at) = list.binary_search(&member) {
        list.insert(at, member);
    }
}

impl<A: Attribute> Celect<A> {
    /// Begins an election. The epoch is above all that were heard of.
    pub(crate) fn begin(&mut self, cx: &mut Context<'_, Self>) {
        self.epoch = self.epoch.saturating_add(1);
        let ballot = Ballot {
            epoch: self.epoch,
            initiator: self.me,
            step: 0,
        };
        let (x, y) = if self.config.protocol.prefers() {
            (self.config.x, self.config.y)
        } else {
            (1, 0)
        };
        self.run = Some(Run::new(ballot, x, y));
        self.awaited = None;
        cx.disarm(Timer::Watch);
        cx.disarm(Timer::Start);
        cx.event(Event::Electing(ballot));
        self.round(cx);
    }

    /// Asks anew, with all that the run has learned.
    fn round(&mut self, cx: &mut Context<'_, Self>) {
        let pool = self.pool();
        let (wanted, lean) = self.wanted();
        let Some(run) = &mut self.run else {
            return;
        };
        run.asked.clear();
        run.answered.clear();
        run.candidates.clear();
        run.unhealthy.clear();
        run.named = None;
        run.ballot = run.last;
        // Where others are too few ours is one more list.
        run.own = lean || pool.len() < wanted && !self.rules.no_discovery();
        self.ask(pool, wanted, cx);
        cx.arm(Timer::Answer, self.config.timeout);
        if self.run.as_ref().is_some_and(|run| run.own) {
            self.answer_ourselves(cx);
        }
    }

    /// Our own list is an answer.
    fn answer_ourselves(&mut self, cx: &mut Context<'_, Self>) {
        let Some(run) = &self.run else {
            return;
        };
        let (candidates, unhealthy, _) = self.answer(run.x, run.y, 0, &run.exclude, self.me);
        self.absorb(&candidates, &unhealthy);
        self.evaluate(cx);
    }

    /// How many others are asked, and whether our own list is counted whatever they are.
    const fn wanted(&self) -> (usize, bool) {
        let lean = matches!(self.config.protocol, Protocol::Lean);
        (self.config.wanted() - lean as usize, lean)
    }

    /// Who may be asked, by id.
    fn pool(&self) -> Vec<Member> {
        let Some(run) = &self.run else {
            return Vec::new();
        };
        let mut pool: Vec<Member> = self.peers.iter().collect();
        for &member in &run.met {
            if !self.peers.is_gone(member) {
                put(&mut pool, member);
            }
        }
        pool.retain(|it| !run.exclude.contains(it));
        pool
    }

    /// Asks so many of `pool`, whichever.
    fn ask(&mut self, mut pool: Vec<Member>, count: usize, cx: &mut Context<'_, Self>) {
        let (wanted, _) = self.wanted();
        let known = self.pool().len();
        let Some(run) = &mut self.run else {
            return;
        };
        let len = pool.len();
        if count < len {
            for at in 0..count {
                let other = at + usize::try_from(cx.below((len - at) as u64)).unwrap_or(0);
                pool.swap(at, other);
            }
            pool.truncate(count);
            pool.sort_unstable();
        }
        let want = if known < wanted && !self.rules.no_discovery() {
            u16::try_from(wanted).unwrap_or(u16::MAX)
        } else {
            0
        };
        let budget = self.config.list_budget(FIXED_MAX_LEN);
        for member in pool {
            put(&mut run.asked, member);
            let exclude = cut(run.exclude.iter().copied(), &mut budget.clone());
            cx.send(
                member,
                Message::Query {
                    ballot: run.ballot,
                    x: run.x,
                    y: run.y,
                    want,
                    exclude,
                },
            );
        }
    }

    /// What we know, for an initiator: the `x` lowest, the `y` most suspected, `want` others.
    /// O(N log N).
    pub(crate) fn answer(
        &self,
        x: u8,
        y: u8,
        want: u16,
        exclude: &[Member],
        to: Member,
    ) -> (Members, Members, Members) {
        let mut budget = self.config.list_budget(FIXED_MAX_LEN);
        let mut list: Vec<Member> = self.peers.iter().collect();
        if !self.rules.owner_left_out() {
            put(&mut list, self.me);
        }
        list.retain(|it| !exclude.contains(it));
        let mut unhealthy = Members::new();
        if y > 0 {
            let suspicions = |it: &Member| core::cmp::Reverse(self.peers.suspicions(*it));
            let mut worst = list.clone();
            worst.retain(|it| self.peers.suspicions(*it) > 0);
            worst.sort_by_key(suspicions);
            // Where a frame is short both lists are.
            let mut half = budget / 2;
            unhealthy = cut(worst.into_iter().take(y.into()), &mut half);
            budget /= 2;
            list.retain(|it| !unhealthy.contains(it));
        }
        list.sort_by_key(|&it| self.key(it));
        let candidates = cut(list.into_iter().take(x.into()), &mut budget);
        let others = self.peers.iter().filter(|&it| it != to);
        let known = cut(others.take(want.into()), &mut budget);
        (candidates, unhealthy, known)
    }

    /// An answer to our run arrives.
    pub(crate) fn answered(
        &mut self,
        from: Member,
        ballot: Ballot,
        [candidates, unhealthy, known]: [&[Member]; 3],
        cx: &mut Context<'_, Self>,
    ) {
        let needed = self.config.needed();
        let limit = usize::from(self.config.exclude_limit);
        let (any_run, (wanted, _)) = (self.rules.any_run(), self.wanted());
        let Some(run) = &mut self.run else {
            self.counters.stale += 1;
            return;
        };
        let is_asked = any_run || run.ballot == ballot && run.asked.binary_search(&from).is_ok();
        if !is_asked || run.answers() >= needed {
            self.counters.stale += 1;
            return;
        }
        if let Some(over) = self.hidden_behind(candidates) {
            // Below it the sender may have known somebody else: it has to say so.
            let is_full = self
                .run
                .as_ref()
                .is_some_and(|run| run.exclude.len() >= limit);
            if is_full {
                self.counters.stale += 1;
            } else {
                self.pass_over(over, cx);
            }
            return;
        }
        let Some(run) = &mut self.run else {
            return;
        };
        // Two lives of a node have one list.
        run.answered.retain(|it| it.id != from.id);
        put(&mut run.answered, from);
        let (x, y) = (run.x.into(), run.y.into());
        let first = |list: &[Member], count: usize| -> Members {
            list.iter().copied().take(count).collect()
        };
        if !known.is_empty() {
            self.meet(first(known, wanted), cx);
        }
        self.absorb(&first(candidates, x), &first(unhealthy, y));
        self.evaluate(cx);
    }

    /// Learns of nodes that may be asked, and asks as many as are still wanted.
    fn meet(&mut self, known: Members, cx: &mut Context<'_, Self>) {
        let before = self.pool();
        let (wanted, _) = self.wanted();
        let me = self.me;
        let Some(run) = &mut self.run else {
            return;
        };
        for member in known {
            if run.met.len() < wanted && member.id != me.id {
                put(&mut run.met, member);
            }
        }
        let asked = run.asked.len();
        let mut new = self.pool();
        new.retain(|it| before.binary_search(it).is_err());
        if !new.is_empty() {
            self.ask(new, wanted.saturating_sub(asked), cx);
        }
    }

    /// Whom an answer names that is certainly over. Where preferences count it does no harm.
    fn hidden_behind(&self, candidates: &[Member]) -> Option<Member> {
        let run = self.run.as_ref()?;
        let is_skipped = self.rules.skips_locally() || self.rules.retries_the_dead();
        if is_skipped || self.config.protocol.prefers() {
            return None;
        }
        let mut named = candidates.iter().copied().take(run.x.into());
        named.find(|&it| self.peers.is_over(self.peers.latest(it)))
    }

    /// Adds an answer to what is known.
    fn absorb(&mut self, candidates: &[Member], unhealthy: &[Member]) {
        let prefers = self.config.protocol.prefers() || self.rules.skips_locally();
        // Who names a former life has not heard of the present one.
        let me = self.me;
        let present = |it: Member| {
            let latest = self.peers.latest(it);
            if it.id == me.id { me } else { latest }
        };
        let Some(run) = &mut self.run else {
            return;
        };
        for member in candidates.iter().copied().map(present) {
            let is_past = |other: &Member| other.supersedes(member);
            if self.peers.is_over(member) || run.candidates.iter().any(is_past) {
                continue;
            }
            run.candidates.retain(|&other| !member.supersedes(other));
            put(&mut run.candidates, member);
        }
        for &member in unhealthy {
            put(&mut run.unhealthy, member);
        }
        if !prefers {
            // The lowest is all that matters.
            let attribute = &self.attribute;
            let lowest = run
                .candidates
                .iter()
                .copied()
                .min_by_key(|&it| (attribute.rank(it), it));
            run.candidates.clear();
            run.candidates.extend(lowest);
        }
    }

    /// Appoints whom the answers speak for, if there are enough of them.
    pub(crate) fn evaluate(&mut self, cx: &mut Context<'_, Self>) {
        let (needed, protocol) = (self.config.needed(), self.config.protocol);
        let Some(run) = &mut self.run else {
            return;
        };
        let enough = run.answers() >= needed;
        let spoken_for = |it: &&Member| !run.unhealthy.contains(it) && !run.exclude.contains(it);
        let best = run
            .candidates
            .iter()
            .filter(spoken_for)
            .min_by_key(|&&it| (self.attribute.rank(it), it))
            .copied();
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
            return;
        };
        run.last = run.last.next();
        let ballot = run.last;
        run.named = Some(Named {
            member,
            ballot,
            attempts: 1,
            heard: member == self.me,
        });
        if member == self.me {
            self.lead(ballot, None, cx);
        } else {
            let life = member.incarnation.0;
            cx.send(member, Message::Notify { ballot, life });
            cx.arm(Timer::Answer, self.config.timeout);
        }
    }

    /// Somebody leads by this ballot.
    pub(crate) fn confirm(&mut self, ballot: Ballot) {
        if let Some(named) = self.run.as_mut().and_then(|run| run.named.as_mut()) {
            named.heard |= named.ballot == ballot;
        }
    }

    /// Ends the run if whom it appointed leads.
    pub(crate) fn finish(&mut self, cx: &mut Context<'_, Self>) {
        let needed = self.config.needed();
        let is_done =
            |run: &Run| run.answers() >= needed && run.named.is_some_and(|named| named.heard);
        if self.run.as_ref().is_some_and(is_done) {
            self.run = None;
            cx.disarm(Timer::Answer);
            // It was lost while the run went on, and so nothing was begun then.
            if self.leader.is_some_and(|leader| leader.lost)
                && self.config.reelect
                && !self.rules.lowest_wins()
            {
                self.begin_soon(cx);
            }
        }
    }

    /// Answers are overdue, or whom we appointed is.
    pub(crate) fn overdue(&mut self, cx: &mut Context<'_, Self>) {
        let needed = self.config.needed();
        let Some(run) = &mut self.run else {
            return;
        };
        cx.arm(Timer::Answer, self.config.timeout);
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
        let (member, ballot) = (named.member, named.ballot);
        if named.attempts < self.config.attempts || self.rules.retries_the_dead() {
            named.attempts = named.attempts.saturating_add(1).min(self.config.attempts);
            let life = member.incarnation.0;
            cx.send(member, Message::Notify { ballot, life });
            return;
        }
        self.pass_over(member, cx);
    }

    fn ask_more(&mut self, cx: &mut Context<'_, Self>) {
        let needed = self.config.needed();
        let (wanted, lean) = self.wanted();
        let mut pool = self.pool();
        let Some(run) = &mut self.run else {
            return;
        };
        if !run.own && pool.len() < wanted && !self.rules.no_discovery() {
            // Those whom we knew when the round began have become too few.
            run.own = true;
            self.answer_ourselves(cx);
            return;
        }
        let known = pool.len() + usize::from(run.own || lean);
        if known < needed && !self.rules.no_discovery() {
            if !run.starved {
                run.starved = true;
                let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
                cx.event(Event::TooFew {
                    ballot: run.ballot,
                    known: count(known),
                    needed: count(needed),
                });
            }
        } else {
            pool.retain(|it| run.answered.binary_search(it).is_err());
        }
        let missing = wanted.saturating_sub(run.answered.len());
        self.ask(pool, missing, cx);
    }

    /// Whom we appointed is dead, as far as can be told: asks anew without it.
    fn pass_over(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        let limit = usize::from(self.config.exclude_limit);
        let Some(run) = &mut self.run else {
            return;
        };
        if run.exclude.len() >= limit {
            run.exclude.remove(0);
        }
        run.exclude.push(member);
        // All of them have to be named, or answers name them again.
        let budget = self.config.list_budget(FIXED_MAX_LEN);
        while cut(run.exclude.iter().copied(), &mut budget.clone()).len() < run.exclude.len() {
            run.exclude.remove(0);
        }
        if self.rules.skips_locally() {
            run.named = None;
            self.evaluate(cx);
            return;
        }
        run.last = run.last.next();
        self.counters.rounds += 1;
        self.round(cx);
    }

    /// Whom we appointed is over for certain: there is nothing to wait for.
    pub(crate) fn drop_from_run(&mut self, cx: &mut Context<'_, Self>) {
        let named = self.run.as_ref().and_then(|run| run.named);
        if let Some(named) = named
            && !named.heard
            && self.peers.is_over(named.member)
            && !self.rules.retries_the_dead()
        {
            self.pass_over(named.member, cx);
        }
    }

    /// What members are ordered by.
    pub(crate) fn key(&self, member: Member) -> (Rank, Member) {
        (self.attribute.rank(member), member)
    }
}
