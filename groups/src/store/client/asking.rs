//! A node's requests to one map.

use alloc::boxed::Box;
use alloc::vec::Vec;

use selvedge_core::{BoundedMap, BoundedQueue, Time};

use super::following::PrefixWatches;
use super::keeping::Sessions;
use super::{ask, report};
use crate::GroupId;
use crate::store::{
    ClientEffect, Entry, Key, Operation, SessionId, StoreAnswer, StoreCommand, StoreEvent,
    StoreReject, StoreRequest, Stored,
};

/// The number of ticks after which a watch is requested again, also where nothing is missing.
const RENEWAL: u8 = 8;

/// A version that no entry has: the node knows nothing yet, and wants a report.
const UNKNOWN: u64 = u64::MAX;

type Out = Vec<ClientEffect>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Waiting {
    ticket: u64,
    operation: Operation,
}

/// A question that waits for its answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Question {
    Get { key: Key },
    List { prefix: Key, after: Option<Key> },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
struct Watching {
    /// The version of the map at the last report of the entry.
    at: u64,
    /// The entry's version then; 0 for no entry.
    known: u64,
    /// True if the application got a report.
    is_notified: bool,
}

/// This node's requests to one map.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Asking {
    map: GroupId,
    limit: u16,
    /// The number of the change at the front.
    number: u64,
    changes: BoundedQueue<Waiting>,
    /// The time at which the change at the front was asked first, if it begins a session.
    asked: Time,
    /// The number of the last question.
    last: u64,
    questions: BoundedMap<u64, (u64, Question)>,
    watches: BoundedMap<Key, Watching>,
    prefixes: PrefixWatches,
    sessions: Sessions,
    ticks: u8,
}

impl Asking {
    pub(super) fn new(map: GroupId, limit: u16) -> Self {
        let room = usize::from(limit);
        Self {
            map,
            limit,
            number: 1,
            changes: BoundedQueue::new(room),
            asked: Time::ZERO,
            last: 0,
            questions: BoundedMap::new(room),
            watches: BoundedMap::new(room),
            prefixes: PrefixWatches::new(room),
            sessions: Sessions::new(room),
            ticks: 0,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.changes.is_empty()
            && self.questions.is_empty()
            && self.watches.is_empty()
            && self.prefixes.is_empty()
            && self.sessions.is_empty()
    }

    const fn full(&self) -> StoreReject {
        StoreReject::Full { limit: self.limit }
    }

    pub(super) fn on_command(
        &mut self,
        now: Time,
        command: StoreCommand,
        out: &mut Out,
    ) -> Result<(), StoreReject> {
        let full = self.full();
        match command {
            StoreCommand::Change { ticket, operation } => {
                self.change(now, Waiting { ticket, operation }, out)?;
            }
            StoreCommand::Get { ticket, key } => {
                self.question(ticket, Question::Get { key }, out)?;
            }
            StoreCommand::List {
                ticket,
                prefix,
                after,
            } => {
                self.question(ticket, Question::List { prefix, after }, out)?;
            }
            StoreCommand::Watch(key) => {
                // A late answer to the former watch would go back.
                let at = self.watches.get(&key).map_or(0, |it| it.at);
                let watching = Watching {
                    at,
                    ..Watching::default()
                };
                self.watches
                    .insert(key.clone(), watching)
                    .map_err(|_| full)?;
                let known = UNKNOWN;
                self.ask(StoreRequest::Watch { key, known }, out);
            }
            StoreCommand::Unwatch(key) => {
                if self.watches.remove(&key).is_some() {
                    self.ask(StoreRequest::Unwatch { key }, out);
                }
            }
            StoreCommand::WatchPrefix {
                ticket,
                prefix,
                since,
            } => {
                let request = self.prefixes.watch(ticket, (prefix, since), full)?;
                self.ask(request, out);
            }
            StoreCommand::UnwatchPrefix { ticket } => {
                if self.prefixes.unwatch(ticket) {
                    self.ask(StoreRequest::UnwatchPrefix { watch: ticket }, out);
                }
            }
            StoreCommand::KeepAlive(session) => {
                let is_new = !self.sessions.contains(session);
                if is_new && self.sessions() >= usize::from(self.limit) {
                    return Err(full);
                }
                if let Some(request) = self.sessions.keep(now, session) {
                    self.ask(request, out);
                }
            }
            StoreCommand::StopKeepAlive(session) => self.sessions.stop(session),
        }
        Ok(())
    }

    /// The number of sessions, also of those that are to begin.
    fn sessions(&self) -> usize {
        let begins = self.changes.iter().filter(|it| it.begins());
        self.sessions.len() + begins.count()
    }

    fn change(&mut self, now: Time, waiting: Waiting, out: &mut Out) -> Result<(), StoreReject> {
        let full = self.full();
        if waiting.begins() && self.sessions() >= usize::from(self.limit) {
            return Err(full);
        }
        let is_first = self.changes.is_empty();
        self.changes.push(waiting).map_err(|_| full)?;
        if is_first {
            self.ask_first(now, out);
        }
        Ok(())
    }

    fn question(
        &mut self,
        ticket: u64,
        question: Question,
        out: &mut Out,
    ) -> Result<(), StoreReject> {
        let full = self.full();
        let number = self.last + 1;
        let request = question.request(number);
        self.questions
            .insert(number, (ticket, question))
            .map_err(|_| full)?;
        self.last = number;
        self.ask(request, out);
        Ok(())
    }

    fn ask(&self, request: StoreRequest, out: &mut Out) {
        ask(self.map, request, out);
    }

    /// Asks the change at the front for the first time.
    fn ask_first(&mut self, now: Time, out: &mut Out) {
        if self.changes.iter().next().is_some_and(Waiting::begins) {
            self.asked = now;
        }
        self.ask_change(out);
    }

    fn ask_change(&self, out: &mut Out) {
        if let Some(first) = self.changes.iter().next() {
            let number = self.number;
            let operation = Box::new(first.operation.clone());
            self.ask(StoreRequest::Change { number, operation }, out);
        }
    }

    pub(super) fn on_answered(&mut self, now: Time, answer: StoreAnswer, out: &mut Out) {
        match answer {
            StoreAnswer::Found { number, entry } => {
                if let Some((ticket, _)) = self.questions.remove(&number) {
                    report(self.map, StoreEvent::Found { ticket, entry }, out);
                }
            }
            StoreAnswer::Listed { number, page } => {
                if let Some((ticket, _)) = self.questions.remove(&number) {
                    report(self.map, StoreEvent::Listed { ticket, page }, out);
                }
            }
            StoreAnswer::Changed { number, stored } if number == self.number => {
                self.on_changed(now, stored, out);
            }
            StoreAnswer::Changed { .. } => {} // Reported before.
            StoreAnswer::Watched {
                key,
                version,
                entry,
            } => self.on_watched(key, version, entry, out),
            StoreAnswer::PrefixChanged {
                watch: ticket,
                number,
                found,
            } => {
                let changed = self.prefixes.on_changed(ticket, number, found);
                if let Some(((changes, version), request)) = changed {
                    self.ask(request, out);
                    let changed = StoreEvent::PrefixChanged {
                        ticket,
                        changes,
                        version,
                    };
                    report(self.map, changed, out);
                }
            }
            StoreAnswer::Compacted {
                watch: ticket,
                number,
            } => {
                if self.prefixes.on_compacted(ticket, number) {
                    self.ask(StoreRequest::UnwatchPrefix { watch: ticket }, out);
                    report(self.map, StoreEvent::Compacted { ticket }, out);
                }
            }
            StoreAnswer::KeptAlive {
                number,
                session,
                ttl: Some(ttl),
            } => {
                if let Some(until) = self.sessions.on_kept(session, number, ttl) {
                    report(self.map, StoreEvent::SessionKept { session, until }, out);
                }
            }
            StoreAnswer::KeptAlive {
                session, ttl: None, ..
            } => self.on_over(session, out),
            StoreAnswer::Known | StoreAnswer::Refused => {} // Waiting requests are sent again.
        }
    }

    fn on_changed(&mut self, now: Time, stored: Stored, out: &mut Out) {
        let Some(done) = self.changes.pop() else {
            return; // A liar answers without a question.
        };
        self.number += 1;
        // A member that lies names a session where none was to begin.
        let is_untrue = matches!(stored, Stored::Begun { .. }) && !done.begins();
        let stored = if is_untrue { Stored::Over } else { stored };
        let ticket = done.ticket;
        report(self.map, StoreEvent::Changed { ticket, stored }, out);
        match (done.operation, stored) {
            (Operation::BeginSession { ttl, .. }, Stored::Begun { session, .. }) => {
                if let Some(until) = self.sessions.begin(session, self.asked, ttl) {
                    report(self.map, StoreEvent::SessionKept { session, until }, out);
                }
            }
            (Operation::EndSession(session), Stored::Done { .. }) => self.on_over(session, out),
            _ => {}
        }
        self.ask_first(now, out);
    }

    fn on_over(&mut self, session: SessionId, out: &mut Out) {
        if self.sessions.on_over(session) {
            report(self.map, StoreEvent::SessionOver { session }, out);
        }
    }

    fn on_watched(&mut self, key: Key, version: u64, entry: Option<Entry>, out: &mut Out) {
        let Some(watching) = self.watches.get_mut(&key) else {
            return; // It is watched no longer.
        };
        if version < watching.at {
            return; // It is late.
        }
        let known = entry.as_ref().map_or(0, |it| it.version);
        let is_news = !watching.is_notified || known != watching.known;
        *watching = Watching {
            at: version,
            known,
            is_notified: true,
        };
        let watch = StoreRequest::Watch {
            key: key.clone(),
            known,
        };
        self.ask(watch, out);
        if is_news {
            report(self.map, StoreEvent::Watched { key, entry }, out);
        }
    }

    pub(super) fn on_tick(&mut self, now: Time, out: &mut Out) {
        self.ticks = (self.ticks + 1) % RENEWAL;
        let is_renewal = self.ticks == 0;
        self.ask_change(out);
        for (&number, (_, question)) in self.questions.iter() {
            self.ask(question.request(number), out);
        }
        for (key, watching) in self.watches.iter() {
            if is_renewal || !watching.is_notified {
                let known = watching.known_to_leader();
                let key = key.clone();
                self.ask(StoreRequest::Watch { key, known }, out);
            }
        }
        let due = self.prefixes.on_tick(is_renewal);
        for request in due.into_iter().chain(self.sessions.on_tick(now)) {
            ask(self.map, request, out);
        }
    }
}

impl Waiting {
    const fn begins(&self) -> bool {
        matches!(self.operation, Operation::BeginSession { .. })
    }
}

impl Question {
    fn request(&self, number: u64) -> StoreRequest {
        match self {
            Self::Get { key } => StoreRequest::Get {
                number,
                key: key.clone(),
            },
            Self::List { prefix, after } => StoreRequest::List {
                number,
                prefix: prefix.clone(),
                after: after.clone(),
            },
        }
    }
}

impl Watching {
    const fn known_to_leader(&self) -> u64 {
        match self.is_notified {
            true => self.known,
            false => UNKNOWN,
        }
    }
}
