//! An election, at its initiator; and what others answer it.

use alloc::vec::Vec;

use selvedge_core::{Context, Member, Rank, Ratio};

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
    met: Vec<Member>,
    asked: Vec<Member>,
    answered: Vec<Member>,
    /// Whether our own list is one of the answers.
    own: bool,
    candidates: Vec<Member>,
    unhealthy: Vec<Member>,
    /// Who did not answer when it was appointed, in that order.
    exclude: Vec<Member>,
    x: u8,
    y: u8,
    named: Option<Named>,
    /// Whether the application was told that too few are known.
    starved: bool,
    /// How many lists may lack the lowest, and how often that is too few.
    tolerates: (u16, Option<Ratio>),
    /// How many answers of others named the lowest candidate: counted where that is reported.
    agreed: u16,
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
    const fn new(ballot: Ballot, (x, y): (u8, u8), tolerates: (u16, Option<Ratio>)) -> Self {
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
            tolerates,
            agreed: 0,
        }
    }

    fn answers(&self) -> usize {
        self.answered.len() + usize::from(self.own)
    }

    /// How many lists it must rest on.
    fn needed(&self) -> usize {
        usize::from(self.tolerates.0) + 1
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
        self.run = Some(Run::new(ballot, (x, y), self.tolerates()));
        self.awaited = None;
        cx.disarm(Timer::Watch);
        cx.disarm(Timer::Start);
        cx.event(Event::Electing(ballot));
        self.round(cx);
    }

    /// Asks anew, with all that the run has learned.
    fn round(&mut self, cx: &mut Context<'_, Self>) {
        let tolerates = self.tolerates();
        if let Some(run) = &mut self.run {
            run.tolerates = tolerates;
            run.agreed = 0;
        }
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
        self.absorb(&candidates, &unhealthy, true);
        self.evaluate(cx);
    }

    /// How many others are asked, and whether our own list is counted whatever they are.
    fn wanted(&self) -> (usize, bool) {
        let lean = matches!(self.config.protocol, Protocol::Lean);
        let wanted = self.needed() + usize::from(self.config.f);
        (wanted - usize::from(lean), lean)
    }

    /// How many lists our election must rest on, or one that begins now.
    pub(crate) fn needed(&self) -> usize {
        let next = usize::from(self.tolerates().0) + 1;
        self.run.as_ref().map_or(next, Run::needed)
    }

    /// A run that waits for answers rests on what is known by now. One that has them rests on what
    /// it began with.
    pub(crate) fn rest_on_latest(&mut self) {
        let tolerates = self.tolerates();
        if let Some(run) = &mut self.run
            && run.answers() < run.needed()
            && tolerates.0 != run.tolerates.0
        {
            run.tolerates = tolerates;
        }
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
            let latest = run.exclude.iter().rev().copied();
            let exclude = cut(latest, &mut budget.clone());
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
        let needed = self.needed();
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
        put(&mut run.answered, from);
        let (x, y) = (run.x.into(), run.y.into());
        let first = |list: &[Member], count: usize| -> Members {
            list.iter().copied().take(count).collect()
        };
        if !known.is_empty() {
            self.meet(first(known, wanted), cx);
        }
        self.absorb(&first(candidates, x), &first(unhealthy, y), false);
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

    /// Adds an answer to what is known.
    fn absorb(&mut self, candidates: &[Member], unhealthy: &[Member], own: bool) {
        let reports = self.config.estimation.is_some();
        let prefers = self.config.protocol.prefers() || self.rules.skips_locally();
        let Some(run) = &mut self.run else {
            return;
        };
        let before = run.candidates.first().copied();
        for &member in candidates {
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
            if reports {
                if lowest != before {
                    run.agreed = 0;
                }
                let names_it = lowest.is_some_and(|it| candidates.contains(&it));
                run.agreed += u16::from(names_it && !own);
            }
        }
    }

    /// Appoints whom the answers speak for, if there are enough of them.
    fn evaluate(&mut self, cx: &mut Context<'_, Self>) {
        let (needed, protocol) = (self.needed(), self.config.protocol);
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
        let named = self.run.as_ref().and_then(|run| {
            let is_done = run.answers() >= run.needed();
            run.named.filter(|named| is_done && named.heard)
        });
        let Some(named) = named else {
            return;
        };
        if let Some(run) = self.run.take() {
            cx.disarm(Timer::Answer);
            let Named { member, ballot, .. } = named;
            let (c, miss) = run.tolerates;
            // What was forgotten meanwhile was of another leader, or is too old.
            let miss = miss.filter(|_| self.knows_churn());
            cx.event(Event::Concluded { ballot, c, miss });
            let answers = u16::try_from(run.answered.len()).unwrap_or(u16::MAX);
            let missing = answers.saturating_sub(run.agreed);
            self.report(member, (ballot, answers, missing), cx);
        }
    }

    /// Answers are overdue, or whom we appointed is.
    pub(crate) fn overdue(&mut self, cx: &mut Context<'_, Self>) {
        self.rest_on_latest();
        let needed = self.needed();
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
        let needed = self.needed();
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
