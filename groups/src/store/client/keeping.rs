//! Sessions that a node keeps alive.

use alloc::vec::Vec;

use selvedge_core::{BoundedMap, Span, Time};

use crate::store::{SessionId, StoreRequest, TTL_MAX, TTL_MIN};

/// The share of a time to live by which the speeds of clocks may differ: one in this number.
const DRIFT: u64 = 8;

/// The number of requests within a time to live.
const REQUESTS: u64 = 3;

/// The longest time between requests: a leader that receives nothing for longer has that decided.
const LONGEST: Span = Span::secs(15);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Keeping {
    /// Its time to live; `None` before an answer.
    ttl: Option<Span>,
    /// The number of the last request.
    number: u64,
    /// The time of the first request of that number.
    sent: Time,
    /// True if it was answered.
    is_answered: bool,
}

/// The sessions of one map that a node keeps alive.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Sessions {
    kept: BoundedMap<SessionId, Keeping>,
    /// The number of the last request. It is not used again, so no late answer is taken for that to a later one.
    last: u64,
}

impl Sessions {
    pub(super) const fn new(limit: usize) -> Self {
        Self {
            kept: BoundedMap::new(limit),
            last: 0,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.kept.len()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Keeps a session alive that was asked for at this time. Returns the time until which it lives.
    pub(super) fn begin(&mut self, session: SessionId, asked: Time, ttl: Span) -> Option<Time> {
        let keeping = Keeping {
            ttl: Some(ttl),
            number: 0,
            sent: asked,
            is_answered: true,
        };
        self.kept.insert(session, keeping).ok()?;
        Some(lives_until(asked, ttl))
    }

    /// Keeps a session alive that began elsewhere. Returns the first request, if it is not kept alive already.
    pub(super) fn keep(&mut self, now: Time, session: SessionId) -> Option<StoreRequest> {
        if self.kept.contains(&session) {
            return None;
        }
        let number = self.last + 1;
        let keeping = Keeping {
            ttl: None,
            number,
            sent: now,
            is_answered: false,
        };
        self.kept.insert(session, keeping).ok()?;
        self.last = number;
        Some(StoreRequest::KeepAlive { number, session })
    }

    pub(super) fn contains(&self, session: SessionId) -> bool {
        self.kept.contains(&session)
    }

    pub(super) fn stop(&mut self, session: SessionId) {
        self.kept.remove(&session);
    }

    /// Handles an answer, and returns the time until which the session lives; `None` if it is late.
    pub(super) fn on_kept(&mut self, session: SessionId, number: u64, ttl: Span) -> Option<Time> {
        let keeping = self.kept.get_mut(&session)?;
        // A session has one time to live: another one is a lie.
        let is_other = keeping.ttl.is_some_and(|it| it != ttl);
        if keeping.number != number || keeping.is_answered || is_other {
            return None;
        }
        let ttl = ttl.clamp(TTL_MIN, TTL_MAX);
        keeping.is_answered = true;
        keeping.ttl = Some(ttl);
        Some(lives_until(keeping.sent, ttl))
    }

    /// Handles the end of a session. Returns true if it is kept alive here.
    pub(super) fn on_over(&mut self, session: SessionId) -> bool {
        self.kept.remove(&session).is_some()
    }

    /// The requests that are due.
    pub(super) fn on_tick(&mut self, now: Time) -> Vec<StoreRequest> {
        let (mut due, mut last) = (Vec::new(), self.last);
        self.kept.retain(|&session, it| {
            let is_due = |ttl: Span| now.since(it.sent) >= LONGEST.min(Span(ttl.0 / REQUESTS));
            if it.is_answered && it.ttl.is_some_and(is_due) {
                last += 1;
                (it.number, it.sent, it.is_answered) = (last, now, false);
            }
            if !it.is_answered {
                let number = it.number;
                due.push(StoreRequest::KeepAlive { number, session });
            }
            true
        });
        self.last = last;
        due
    }
}

fn lives_until(asked: Time, ttl: Span) -> Time {
    asked + Span(ttl.0 - ttl.0 / DRIFT)
}
