//! Sessions that a node keeps alive.

use alloc::vec::Vec;

use selvedge_core::{BoundedMap, Span, Time};

use crate::store::{SessionId, StoreRequest};

/// The share of a time to live by which the speeds of clocks may differ: one in this number.
const DRIFT: u64 = 8;

/// The number of requests within a time to live.
const REQUESTS: u64 = 3;

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
pub(super) struct Sessions(BoundedMap<SessionId, Keeping>);

impl Sessions {
    pub(super) const fn new(limit: usize) -> Self {
        Self(BoundedMap::new(limit))
    }

    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keeps a session alive that was asked for at this time. Returns the time until which it lives.
    pub(super) fn begin(&mut self, session: SessionId, asked: Time, ttl: Span) -> Option<Time> {
        let keeping = Keeping {
            ttl: Some(ttl),
            number: 0,
            sent: asked,
            is_answered: true,
        };
        self.0.insert(session, keeping).ok()?;
        Some(lives_until(asked, ttl))
    }

    /// Keeps a session alive that began elsewhere. Returns the first request, if it is not kept alive already.
    pub(super) fn keep(&mut self, now: Time, session: SessionId) -> Option<StoreRequest> {
        if self.0.contains(&session) {
            return None;
        }
        let keeping = Keeping {
            ttl: None,
            number: 1,
            sent: now,
            is_answered: false,
        };
        self.0.insert(session, keeping).ok()?;
        Some(StoreRequest::KeepAlive { number: 1, session })
    }

    pub(super) fn stop(&mut self, session: SessionId) {
        self.0.remove(&session);
    }

    /// Handles an answer, and returns the time until which the session lives; `None` if it is late.
    pub(super) fn on_kept(&mut self, session: SessionId, number: u64, ttl: Span) -> Option<Time> {
        let keeping = self.0.get_mut(&session)?;
        if keeping.number != number || keeping.is_answered {
            return None;
        }
        keeping.is_answered = true;
        keeping.ttl = Some(ttl);
        Some(lives_until(keeping.sent, ttl))
    }

    /// Handles the end of a session. Returns true if it is kept alive here.
    pub(super) fn on_over(&mut self, session: SessionId) -> bool {
        self.0.remove(&session).is_some()
    }

    /// The requests that are due.
    pub(super) fn on_tick(&mut self, now: Time) -> Vec<StoreRequest> {
        let mut due = Vec::new();
        self.0.retain(|&session, it| {
            let is_due = |ttl: Span| now.since(it.sent) >= Span(ttl.0 / REQUESTS);
            if it.is_answered && it.ttl.is_some_and(is_due) {
                it.number += 1;
                (it.sent, it.is_answered) = (now, false);
            }
            if !it.is_answered {
                let number = it.number;
                due.push(StoreRequest::KeepAlive { number, session });
            }
            true
        });
        due
    }
}

fn lives_until(asked: Time, ttl: Span) -> Time {
    asked + Span(ttl.0 - ttl.0 / DRIFT)
}
