//! Devices, and their messages to and from the host.

use std::collections::VecDeque;

use selvedge_core::{NodeId, Span, Time};
use selvedge_safehome::{Outcome, RoutineId, Urgency};

/// A command in flight to a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) token: u64,
    pub(crate) value: u8,
    pub(crate) is_done: bool,
    /// It does not act from then on, if that is settled.
    pub(crate) until: Option<Time>,
}

/// The reports of a device, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Report {
    Outcome(u64, Outcome),
    State(u8),
    /// A manual change to this state, with its urgency.
    Hand(u8, Urgency),
}

/// A command with an outcome for which the hub waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub(crate) token: u64,
    pub(crate) value: u8,
    pub(crate) whose: Option<(RoutineId, usize)>,
    pub(crate) issued: Time,
    pub(crate) timeout: Span,
    /// The hub restarted while it was in flight.
    pub(crate) is_old: bool,
    pub(crate) is_asked: bool,
    /// The device was in its state before the outcome was known, and had reported that.
    pub(crate) is_reported: bool,
}

/// A device as it is.
#[derive(Clone, Debug)]
pub(crate) struct Thing {
    pub(crate) id: NodeId,
    pub(crate) state: u8,
    /// Its state was known from the beginning.
    pub(crate) is_known: bool,
    pub(crate) is_up: bool,
    /// The last report of that to the hub.
    pub(crate) is_notified_up: bool,
    pub(crate) lateness: Span,
    pub(crate) sent: Vec<Sent>,
    pub(crate) reports: VecDeque<Report>,
    pub(crate) open: Option<Open>,
    /// A command with this token and for this state may act until then; its outcome is unknown.
    pub(crate) doubt: Option<(u64, u8, Time)>,
    pub(crate) is_stuck: bool,
    /// A rollback was reported as begun, and not yet as finished.
    pub(crate) is_begun: bool,
    /// It is restored before any command touches it.
    pub(crate) is_barred: bool,
    /// The number of failed rollbacks since the last one that was done.
    pub(crate) refusals: u32,
}

impl Thing {
    pub(crate) fn new(id: NodeId, state: u8, is_known: bool) -> Self {
        Self {
            id,
            state,
            is_known,
            is_up: true,
            is_notified_up: true,
            lateness: Span::ZERO,
            sent: Vec::new(),
            reports: VecDeque::new(),
            open: None,
            doubt: None,
            is_stuck: false,
            is_begun: false,
            is_barred: false,
            refusals: 0,
        }
    }

    /// Does its command, for the first time or again, and reports that. Returns true if there was
    /// one.
    pub(crate) fn does(&mut self, now: Time, again: bool) -> bool {
        self.expire(now);
        let mut sent = self.sent.iter_mut();
        let Some(sent) = sent.find(|it| again || !it.is_done) else {
            return false;
        };
        let token = sent.token;
        let is_its = |it: &Report| matches!(it, Report::Outcome(of, _) if *of == token);
        if self.reports.iter().any(is_its) {
            return false;
        }
        sent.is_done = true;
        self.state = sent.value;
        self.reports
            .push_back(Report::Outcome(token, Outcome::Done));
        true
    }

    pub(crate) fn refuses(&mut self) {
        if let Some(at) = self.sent.iter().position(|it| !it.is_done) {
            let token = self.sent.remove(at).token;
            self.reports
                .push_back(Report::Outcome(token, Outcome::Refused));
        }
    }

    /// Removes commands that cannot act any more.
    pub(crate) fn expire(&mut self, now: Time) {
        self.sent
            .retain(|it| it.until.is_none_or(|until| now < until));
        if self.doubt.is_some_and(|it| it.2 <= now) {
            self.doubt = None;
        }
    }

    /// The outcome of its command is unknown from now on.
    pub(crate) fn is_doubted(&mut self, now: Time) -> Option<Open> {
        let open = self.open.take()?;
        let until = now + self.lateness;
        for sent in self.sent.iter_mut().filter(|it| it.token == open.token) {
            sent.until = Some(sent.until.map_or(until, |it| it.min(until)));
        }
        self.doubt = (self.lateness > Span::ZERO).then_some((open.token, open.value, until));
        self.expire(now);
        Some(open)
    }

    /// It is restored, or left as it is.
    pub(crate) fn ends(&mut self, is_stuck: bool) {
        (self.is_begun, self.is_barred, self.is_stuck) = (false, false, is_stuck);
        self.refusals = 0;
    }

    /// Loses all outcomes that are in flight.
    pub(crate) fn loses_outcomes(&mut self) {
        self.reports
            .retain(|it| matches!(it, Report::State(_) | Report::Hand(..)));
    }
}
