//! The ends of sessions of which the leader receives nothing.
//!
//! A node counts the time to live from the moment at which it asked, and the leader from a later one. So the
//! node knows first that its session may have ended, if
//!
//! - the leader answers as the one that a quorum follows: it reads the state after the request;
//! - no leader but the one that answers ends sessions. A leader takes the sessions over by a decided change, and
//!   counts each anew from there. What a former one proposes is void from then on.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use selvedge_core::{Member, Span};

use crate::store::{Change, Decided, LeaderEffect, Outcome, SessionId, Store, Stored};

type Out = Vec<LeaderEffect>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Alive {
    /// The time that is left.
    left: Span,
    /// The number of ticks since it ran out.
    overdue: u8,
    /// The node that kept it alive last.
    by: Option<Member>,
}

/// The number of ticks after which a proposal is repeated that was refused or lost.
const REPEAT: u8 = 8;

/// The sessions of a leader.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Expiry {
    me: Member,
    /// The time between ticks.
    tick: Span,
    /// The number of the change by which this leader took the sessions over.
    term: Option<u64>,
    /// All sessions, where it did so.
    alive: BTreeMap<SessionId, Alive>,
    /// The number of ticks since it wanted to.
    waiting: u8,
}

impl Expiry {
    pub(super) const fn new(me: Member, tick: Span) -> Self {
        Self {
            me,
            tick,
            term: None,
            alive: BTreeMap::new(),
            waiting: 0,
        }
    }

    /// Takes the sessions over, if there are any.
    pub(super) fn take_over(&mut self, state: &Store, out: &mut Out) {
        if self.term.is_some() || state.sessions().next().is_none() {
            return;
        }
        if self.waiting == 0 {
            out.push(LeaderEffect::Propose(Change::TakeOver { by: self.me }));
        }
        self.waiting = (self.waiting + 1) % REPEAT;
    }

    fn alive(&self, ttl: Span, by: Option<Member>) -> Alive {
        Alive {
            // The present tick is no whole one.
            left: ttl + self.tick,
            overdue: 0,
            by,
        }
    }

    pub(super) fn on_applied(&mut self, state: &Store, decided: &Decided, out: &mut Out) {
        match decided.outcome {
            Outcome::TakenOver { by, term } if by == self.me => {
                self.term = Some(term);
                let all = state.sessions();
                self.alive = all.map(|(id, ttl)| (id, self.alive(ttl, None))).collect();
            }
            Outcome::TakenOver { .. } => {
                (self.term, self.waiting) = (None, 0);
                self.alive.clear();
                self.take_over(state, out);
            }
            Outcome::Asked {
                stored: Stored::Begun { session },
                by,
                ..
            } => self.on_begun(state, session, by, out),
            Outcome::Asked { .. } | Outcome::Expired => {
                self.alive.retain(|&it, _| state.session(it).is_some());
            }
        }
    }

    fn on_begun(&mut self, state: &Store, session: SessionId, by: Member, out: &mut Out) {
        // A change that is decided again may name a session that has ended.
        let Some(ttl) = state.session(session) else {
            return;
        };
        if self.term.is_some() {
            let alive = self.alive(ttl, Some(by));
            self.alive.entry(session).or_insert(alive);
        }
        self.take_over(state, out);
    }

    /// Handles a request for a session, once the state is up to date. Returns the time to live, or the end; `None` where
    /// this leader cannot answer yet.
    pub(super) fn keep(
        &mut self,
        state: &Store,
        session: SessionId,
        by: Member,
    ) -> Option<Option<Span>> {
        let Some(ttl) = state.session(session) else {
            return Some(None);
        };
        self.term.filter(|it| *it == state.term())?;
        let renewed = self.alive(ttl, Some(by));
        let alive = self.alive.get_mut(&session)?;
        if alive.left == Span(0) {
            return None; // Its end may be decided.
        }
        *alive = renewed;
        Some(Some(ttl))
    }

    /// Ends the sessions of which nothing was received for their time to live.
    pub(super) fn on_tick(&mut self, state: &Store, out: &mut Out) {
        self.take_over(state, out);
        for alive in self.alive.values_mut() {
            alive.left = Span(alive.left.0.saturating_sub(self.tick.0));
        }
        self.expire(out);
    }

    /// Ends the sessions that this node, which has left, kept alive.
    pub(super) fn on_left(&mut self, left: Member, out: &mut Out) {
        let is_its = |by: Member| by == left || left.supersedes(by);
        for alive in self.alive.values_mut() {
            if alive.by.is_some_and(is_its) {
                alive.left = Span(0);
            }
        }
        self.expire(out);
    }

    fn expire(&mut self, out: &mut Out) {
        let Some(term) = self.term else {
            return;
        };
        let overdue = self.alive.iter_mut().filter(|it| it.1.left == Span(0));
        for (&session, alive) in overdue {
            if alive.overdue == 0 {
                out.push(LeaderEffect::Propose(Change::Expire { session, term }));
            }
            alive.overdue = (alive.overdue + 1) % REPEAT;
        }
    }
}
