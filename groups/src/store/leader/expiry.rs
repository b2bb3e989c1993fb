//! The ends of sessions of which the leader receives nothing.
//!
//! A node counts the time to live from the moment at which it asked, and the leader from a later one. So the
//! node knows first that its session may have ended, if
//!
//! - the leader answers as the one that a quorum follows: it reads the state after the request;
//! - no leader but the one that answers ends sessions. A leader takes the sessions over by a decided change, and
//!   counts each from there: the time that is left by decision. What a former one proposes is void from then on;
//! - that time is the whole time to live, or the leader does not answer before that is decided again.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use selvedge_core::{Member, Span};

use crate::store::state::Session;
use crate::store::{Change, Decided, LeaderEffect, Outcome, SessionId, Store, Stored, Wait};

type Out = Vec<LeaderEffect>;

/// The number of ticks after which a proposal is repeated that was refused or lost.
const REPEAT: u8 = 8;

/// The most sessions in one decision: they fit into the shortest frame with maps.
const WAITS: usize = 4;

/// The shortest and the longest time without news of a session after which the time that is left is decided.
const SILENCE: (Span, Span) = (Span::secs(5), Span::secs(30));

/// The nodes that keep a session alive, as far as this leader knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Keeper {
    One(Member),
    /// Several nodes, or it is not known which: none of them ends it by leaving.
    Several,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Alive {
    /// The time that is left.
    left: Span,
    /// The time since a request, or since a proposal to note it.
    silent: Span,
    /// The number of renewals in the last proposal to note the time that is left: it may be decided as long as
    /// that is the present number.
    noted: Option<u32>,
    /// The number of ticks since the time ran out.
    overdue: u8,
    by: Keeper,
}

/// The sessions of a leader.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Expiry {
    me: Member,
    /// The time between ticks.
    tick: Span,
    /// The number of the change by which this leader took the sessions over.
    term: Option<u64>,
    /// All sessions, where it did so; before that those that began under this leader.
    alive: BTreeMap<SessionId, Alive>,
    /// The number of ticks since it wanted to.
    waiting: u8,
    /// True if all sessions began under this leader.
    has_all: bool,
}

impl Expiry {
    pub(super) const fn new(me: Member, tick: Span) -> Self {
        Self {
            me,
            tick,
            term: None,
            alive: BTreeMap::new(),
            waiting: 0,
            has_all: false,
        }
    }

    /// Begins to lead, with this state.
    pub(super) fn on_leads(&mut self, state: &Store, out: &mut Out) {
        // A leader that kept one alive has taken the sessions over before.
        self.has_all = state.session_count() == 0 && state.term() == 0;
        self.take_over(state, out);
    }

    /// Takes the sessions over, if there are any.
    fn take_over(&mut self, state: &Store, out: &mut Out) {
        if self.term.is_some() || state.session_count() == 0 {
            return;
        }
        if self.waiting == 0 {
            out.push(LeaderEffect::Propose(Change::TakeOver { by: self.me }));
        }
        self.waiting = (self.waiting + 1) % REPEAT;
    }

    fn alive(&self, left: Span, by: Keeper) -> Alive {
        Alive {
            // The present tick is no whole one.
            left: left + self.tick,
            silent: Span::ZERO,
            noted: None,
            overdue: 0,
            by,
        }
    }

    /// The node that keeps a session alive, if it began under this leader.
    fn keeper(&self, session: SessionId) -> Keeper {
        let known = self.alive.get(&session);
        known.map_or(Keeper::Several, |it| it.by)
    }

    pub(super) fn on_applied(&mut self, state: &Store, decided: &Decided, out: &mut Out) {
        match decided.outcome {
            Outcome::TakenOver { by, term } if by == self.me => {
                self.term = Some(term);
                let all = state.sessions();
                let all = all.map(|(id, it)| (id, self.alive(it.left, self.keeper(id))));
                self.alive = all.collect();
            }
            Outcome::TakenOver { .. } => {
                (self.term, self.waiting, self.has_all) = (None, 0, false);
                self.alive.clear();
                self.take_over(state, out);
            }
            Outcome::Asked {
                stored: Stored::Begun { session, .. },
                by,
                ..
            } => self.on_begun(state, session, by, out),
            Outcome::Asked { .. } | Outcome::Counted => {
                if self.alive.len() > state.session_count() {
                    self.alive.retain(|&it, _| state.session(it).is_some());
                }
            }
        }
    }

    fn on_begun(&mut self, state: &Store, id: SessionId, by: Member, out: &mut Out) {
        // A change that is decided again may name a session that has ended.
        let Some(session) = state.session(id) else {
            return;
        };
        // Before it has taken the sessions over it answers no request, and no leader before it did.
        if self.term.is_some() || self.has_all {
            let alive = self.alive(session.ttl, Keeper::One(by));
            self.alive.entry(id).or_insert(alive);
        }
        self.take_over(state, out);
    }

    /// Handles a request for a session, once the state is up to date. Returns the time to live, or the end; `None` where
    /// this leader cannot answer yet.
    pub(super) fn keep(
        &mut self,
        state: &Store,
        id: SessionId,
        by: Member,
        out: &mut Out,
    ) -> Option<Option<Span>> {
        let Some(session) = state.session(id) else {
            return Some(None);
        };
        let term = self.term.filter(|it| *it == state.term())?;
        let whole = self.alive(session.ttl, Keeper::Several);
        let alive = self.alive.get_mut(&id)?;
        let by = alive.by.with(by)?;
        if alive.left == Span::ZERO {
            return None; // Its end may be decided.
        }
        if session.left < session.ttl || alive.noted == Some(session.renewals) {
            // The next leader would count too little. The node asks again.
            out.push(LeaderEffect::Propose(Change::Renew { session: id, term }));
            return None;
        }
        *alive = Alive { by, ..whole };
        Some(Some(session.ttl))
    }

    /// Ends the sessions of which nothing was received for their time to live, and has the time decided that is left of
    /// others.
    pub(super) fn on_tick(&mut self, state: &Store, out: &mut Out) {
        self.take_over(state, out);
        let Some(term) = self.term else {
            return;
        };
        let tick = self.tick;
        let mut waits = Vec::new();
        for (&session, alive) in &mut self.alive {
            alive.left = Span(alive.left.0.saturating_sub(tick.0));
            alive.silent = alive.silent + tick;
            if alive.left == Span::ZERO {
                alive.expire(session, term, out);
            } else if let Some(found) = state.session(session)
                && alive.silent >= silence(&found)
            {
                let (renewals, left) = (found.renewals, alive.left);
                (alive.silent, alive.noted) = (Span::ZERO, Some(renewals));
                waits.push(Wait {
                    session,
                    renewals,
                    left,
                });
            }
        }
        for some in waits.chunks(WAITS) {
            let waits = some.iter().copied().collect();
            out.push(LeaderEffect::Propose(Change::Wait { waits, term }));
        }
    }

    /// Ends the sessions that only this node, which has left, keeps alive.
    pub(super) fn on_left(&mut self, left: Member, out: &mut Out) {
        let Some(term) = self.term else {
            return;
        };
        let is_its = |by| matches!(by, Keeper::One(by) if by == left || left.supersedes(by));
        for (&session, alive) in self.alive.iter_mut().filter(|it| is_its(it.1.by)) {
            if alive.left > Span::ZERO {
                alive.left = Span::ZERO;
                alive.expire(session, term, out);
            }
        }
    }
}

/// The time without a request after which what is left of a session is decided.
fn silence(session: &Session) -> Span {
    Span(session.ttl.0 / 2).clamp(SILENCE.0, SILENCE.1)
}

impl Keeper {
    /// Adds a node that keeps a session alive; `None` for a life that has ended.
    fn with(self, by: Member) -> Option<Self> {
        match self {
            Self::One(former) if former.supersedes(by) => None,
            Self::One(former) if former.id == by.id => Some(Self::One(by)),
            Self::One(_) | Self::Several => Some(Self::Several),
        }
    }
}

impl Alive {
    fn expire(&mut self, session: SessionId, term: u64, out: &mut Out) {
        if self.overdue == 0 {
            out.push(LeaderEffect::Propose(Change::Expire { session, term }));
        }
        self.overdue = (self.overdue + 1) % REPEAT;
    }
}
