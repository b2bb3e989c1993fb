//! The leader of a map's group.

mod expiry;
mod prefixes;

use alloc::vec::Vec;

use selvedge_core::wire::Room;
use selvedge_core::{BoundedMap, Member, NodeId, Span};

use crate::store::page::fill;
use crate::store::{
    AROUND, Change, Decided, Key, LeaderEffect, Outcome, Page, SessionId, Store, StoreAnswer,
    StoreRequest, StoreTimer,
};
use expiry::Expiry;
use prefixes::PrefixWatchers;

/// The most watches, watches of prefixes, and questions, that a leader has at once.
const LIMIT: usize = 1_024;

/// The number of ticks for which a watch lasts that is not requested again.
const PATIENCE: u8 = 32;

type Out = Vec<LeaderEffect>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Watch {
    /// The node, in the life that asked last.
    member: Member,
    /// The entry's version that the node knows; 0 for no entry.
    known: u64,
    /// The number of ticks since the node's last request.
    silent: u8,
}

/// A request that is answered when the state is up to date.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Question {
    Get(Key),
    List { prefix: Key, after: Option<Key> },
    KeepAlive(SessionId),
}

/// The leader's memory. Another leader begins without it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StoreLeader {
    resend: Span,
    frame_budget: u16,
    watches: BoundedMap<(NodeId, Key), Watch>,
    prefixes: PrefixWatchers,
    questions: BoundedMap<u64, (Member, u64, Question)>,
    /// The number of the last question.
    last: u64,
    expiry: Expiry,
    is_armed: bool,
}

impl StoreLeader {
    /// A leader, this node, without requests. It sends unacknowledged reports again after `resend`. Frames have this
    /// limit in bytes.
    #[must_use]
    pub const fn new(me: Member, resend: Span, frame_budget: u16) -> Self {
        Self {
            resend,
            frame_budget,
            watches: BoundedMap::new(LIMIT),
            prefixes: PrefixWatchers::new(frame_budget),
            questions: BoundedMap::new(LIMIT),
            last: 0,
            expiry: Expiry::new(me, resend),
            is_armed: false,
        }
    }

    /// The same, with numbers of reads after this one: a read of a former leader on this node may be answered later.
    #[must_use]
    pub const fn reading_from(mut self, last: u64) -> Self {
        self.last = last;
        self
    }

    /// Begins to lead, with this state.
    pub fn on_leads(&mut self, state: &Store, out: &mut Out) {
        self.expiry.on_leads(state, out);
        self.arm(state, out);
    }

    /// Handles a node's request.
    pub fn on_asked(&mut self, state: &Store, from: Member, request: StoreRequest, out: &mut Out) {
        match request {
            StoreRequest::Get { number, key } => self.read(from, number, Question::Get(key), out),
            StoreRequest::List {
                number,
                prefix,
                after,
            } => self.read(from, number, Question::List { prefix, after }, out),
            StoreRequest::KeepAlive { number, session } => {
                self.read(from, number, Question::KeepAlive(session), out);
            }
            StoreRequest::Change { number, operation } => match state.former(from, number) {
                Some(stored) => notify(from, StoreAnswer::Changed { number, stored }, out),
                None => out.push(LeaderEffect::Propose(Change::Asked {
                    by: from,
                    number,
                    operation: *operation,
                })),
            },
            StoreRequest::Watch { key, known } => self.on_watch(state, from, key, known, out),
            StoreRequest::Unwatch { key } => {
                let place = (from.id, key);
                if self.watches.get(&place).is_some_and(|it| it.member == from) {
                    self.watches.remove(&place);
                }
            }
            StoreRequest::WatchPrefix {
                watch,
                number,
                prefix,
                since,
            } => {
                let request = (number, prefix, since);
                self.prefixes.on_watch(state, (from, watch), request, out);
                self.arm(state, out);
            }
            StoreRequest::UnwatchPrefix { watch } => self.prefixes.on_unwatch(from, watch),
        }
    }

    fn read(&mut self, from: Member, number: u64, question: Question, out: &mut Out) {
        if self.questions.len() >= LIMIT {
            // A node with many questions takes its own room first. It asks again, if it still waits.
            let own = self.questions.iter().find(|it| it.1.0 == from);
            let oldest = own.or_else(|| self.questions.nth(0));
            if let Some(oldest) = oldest.map(|it| *it.0) {
                self.questions.remove(&oldest);
            }
        }
        self.last += 1;
        let inserted = self.questions.insert(self.last, (from, number, question));
        debug_assert!(inserted.is_ok(), "there is room");
        out.push(LeaderEffect::Read(self.last));
    }

    fn on_watch(&mut self, state: &Store, from: Member, key: Key, known: u64, out: &mut Out) {
        let place = (from.id, key);
        if (self.watches.get(&place)).is_some_and(|it| it.member.supersedes(from)) {
            return; // Late, from a life that has ended.
        }
        let watch = Watch {
            member: from,
            known,
            silent: 0,
        };
        if self.watches.insert(place.clone(), watch).is_err() {
            return refuse(from, out);
        }
        let (_, key) = place;
        if version(state, &key) == known {
            notify(from, StoreAnswer::Known, out);
        } else {
            report_watched(state, from, key, out);
        }
        self.arm(state, out);
    }

    /// Handles a decided change.
    pub fn on_applied(&mut self, state: &Store, decided: &Decided, out: &mut Out) {
        if let Outcome::Asked { by, number, stored } = decided.outcome {
            notify(by, StoreAnswer::Changed { number, stored }, out);
        }
        for ((_, key), watch) in self.watches.iter() {
            if decided.changed.contains(key) && watch.known != version(state, key) {
                report_watched(state, watch.member, key.clone(), out);
            }
        }
        self.prefixes.on_applied(state, decided, out);
        self.expiry.on_applied(state, decided, out);
        self.arm(state, out);
    }

    /// Answers the questions of a read: the state is up to date.
    pub fn on_readable(&mut self, state: &Store, read: u64, out: &mut Out) {
        let Some((from, number, question)) = self.questions.remove(&read) else {
            return;
        };
        let answer = match question {
            Question::Get(key) => {
                let entry = state.get(&key).cloned();
                StoreAnswer::Found { number, entry }
            }
            Question::List { prefix, after } => {
                let page = self.page(state, &prefix, after.as_deref());
                StoreAnswer::Listed { number, page }
            }
            Question::KeepAlive(session) => {
                let Some(ttl) = self.expiry.keep(state, session, from, out) else {
                    return; // It is asked again.
                };
                StoreAnswer::KeptAlive {
                    number,
                    session,
                    ttl,
                }
            }
        };
        notify(from, answer, out);
    }

    fn page(&self, state: &Store, prefix: &str, after: Option<&str>) -> Page {
        let entries = state.range(prefix, after);
        let entries = entries.map(|(key, entry)| (key.clone(), entry.clone()));
        let (entries, is_last) = fill(room(self.frame_budget), entries);
        Page {
            version: state.version(),
            entries,
            is_last,
        }
    }

    /// Handles the departure of a member: ends the sessions that only this member keeps alive.
    pub fn on_left(&mut self, left: Member, out: &mut Out) {
        self.expiry.on_left(left, out);
    }

    /// Sends the reports again that watching nodes have not acknowledged, and ends sessions.
    pub fn on_tick(&mut self, state: &Store, timer: StoreTimer, out: &mut Out) {
        match timer {
            StoreTimer::Resend => self.is_armed = false,
        }
        self.watches.retain(|_, watch| {
            watch.silent += 1;
            watch.silent < PATIENCE
        });
        for ((_, key), watch) in self.watches.iter() {
            if version(state, key) != watch.known {
                report_watched(state, watch.member, key.clone(), out);
            }
        }
        self.prefixes.on_tick(state, out);
        self.expiry.on_tick(state, out);
        self.arm(state, out);
    }

    /// Arms the timer, if it has something to do and is not armed.
    fn arm(&mut self, state: &Store, out: &mut Out) {
        let is_idle = self.watches.is_empty()
            && self.prefixes.is_empty()
            && state.sessions().next().is_none();
        if self.is_armed || is_idle {
            return;
        }
        self.is_armed = true;
        out.push(LeaderEffect::Arm {
            timer: StoreTimer::Resend,
            after: self.resend,
        });
    }
}

/// The room for the entries of an answer.
const fn room(frame_budget: u16) -> Room {
    Room::new(frame_budget, AROUND)
}

fn version(state: &Store, key: &str) -> u64 {
    state.get(key).map_or(0, |it| it.version)
}

fn report_watched(state: &Store, to: Member, key: Key, out: &mut Out) {
    let entry = state.get(&key).cloned();
    let version = state.version();
    notify(
        to,
        StoreAnswer::Watched {
            key,
            version,
            entry,
        },
        out,
    );
}

fn refuse(to: Member, out: &mut Out) {
    notify(to, StoreAnswer::Refused, out);
}

fn notify(to: Member, answer: StoreAnswer, out: &mut Out) {
    out.push(LeaderEffect::Answer { to, answer });
}
