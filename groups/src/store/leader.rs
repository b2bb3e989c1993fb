//! The leader of a map's group.

use alloc::vec::Vec;

use selvedge_core::{BoundedMap, Member, NodeId, Span};

use crate::store::{
    Change, Decided, Key, LeaderEffect, Store, StoreAnswer, StoreRequest, StoreTimer,
};

/// The most watches, and the most questions, that a leader has at once.
pub(super) const LIMIT: usize = 1_024;

/// The number of ticks for which a watch lasts that is not requested again.
pub(super) const PATIENCE: u8 = 32;

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

/// The leader's memory. Another leader begins without it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StoreLeader {
    resend: Span,
    watches: BoundedMap<(NodeId, Key), Watch>,
    questions: BoundedMap<u64, (Member, u64, Key)>,
    /// The number of the last question.
    last: u64,
}

impl StoreLeader {
    /// A leader without requests. It sends unacknowledged reports again after `resend`.
    #[must_use]
    pub const fn new(resend: Span) -> Self {
        Self {
            resend,
            watches: BoundedMap::new(LIMIT),
            questions: BoundedMap::new(LIMIT),
            last: 0,
        }
    }

    /// Handles a node's request.
    pub fn on_asked(&mut self, state: &Store, from: Member, request: StoreRequest, out: &mut Out) {
        match request {
            StoreRequest::Get { number, key } => {
                if self.questions.len() >= LIMIT
                    && let Some((&oldest, _)) = self.questions.nth(0)
                {
                    self.questions.remove(&oldest); // It is asked again, if it still waits.
                }
                self.last += 1;
                let question = (from, number, key);
                let inserted = self.questions.insert(self.last, question);
                debug_assert!(inserted.is_ok(), "there is room");
                out.push(LeaderEffect::Read(self.last));
            }
            StoreRequest::Change { number, operation } => match state.former(from, number) {
                Some(stored) => notify(from, StoreAnswer::Changed { number, stored }, out),
                None => out.push(LeaderEffect::Propose(Change {
                    by: from,
                    number,
                    operation: *operation,
                })),
            },
            StoreRequest::Watch { key, known } => self.on_watch(state, from, key, known, out),
            StoreRequest::Unwatch { key } => {
                self.watches.remove(&(from.id, key));
            }
        }
    }

    fn on_watch(&mut self, state: &Store, from: Member, key: Key, known: u64, out: &mut Out) {
        let is_first = self.watches.iter().next().is_none();
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
            tell_watched(state, from, key, out);
        }
        if is_first {
            self.arm(out);
        }
    }

    /// Handles a decided change.
    pub fn on_applied(&mut self, state: &Store, decided: &Decided, out: &mut Out) {
        let Decided {
            by,
            number,
            ref key,
            stored,
        } = *decided;
        notify(by, StoreAnswer::Changed { number, stored }, out);
        let present = version(state, key);
        for ((_, watched), watch) in self.watches.iter() {
            if watched == key && watch.known != present {
                tell_watched(state, watch.member, key.clone(), out);
            }
        }
    }

    /// Answers the questions of a read: the state is up to date.
    pub fn on_readable(&mut self, state: &Store, read: u64, out: &mut Out) {
        if let Some((from, number, key)) = self.questions.remove(&read) {
            let entry = state.get(&key).cloned();
            notify(from, StoreAnswer::Found { number, entry }, out);
        }
    }

    /// Sends the reports again that watching nodes have not acknowledged.
    pub fn on_tick(&mut self, state: &Store, timer: StoreTimer, out: &mut Out) {
        match timer {
            StoreTimer::Resend => {}
        }
        self.watches.retain(|_, watch| {
            watch.silent += 1;
            watch.silent < PATIENCE
        });
        for ((_, key), watch) in self.watches.iter() {
            if version(state, key) != watch.known {
                tell_watched(state, watch.member, key.clone(), out);
            }
        }
        if self.watches.iter().next().is_some() {
            self.arm(out);
        }
    }

    fn arm(&self, out: &mut Out) {
        out.push(LeaderEffect::Arm {
            timer: StoreTimer::Resend,
            after: self.resend,
        });
    }
}

fn version(state: &Store, key: &str) -> u64 {
    state.get(key).map_or(0, |it| it.version)
}

fn tell_watched(state: &Store, to: Member, key: Key, out: &mut Out) {
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
