//! A node's requests to maps, on any node.

use alloc::boxed::Box;
use alloc::vec::Vec;

use selvedge_core::{BoundedMap, BoundedQueue};

use crate::GroupId;
use crate::store::{
    ClientEffect, Key, Operation, StoreAnswer, StoreCommand, StoreConfig, StoreEvent, StoreReject,
    StoreRequest,
};

/// The number of ticks after which a watch is requested again, also where nothing is missing.
const RENEWAL: u8 = 8;

/// The most bytes around a change in a frame, while a group decides it: header, sender and site (29
/// bytes), group and replica (80), proposal (40).
const AROUND: usize = 149;

type Out = Vec<ClientEffect>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Waiting {
    ticket: u64,
    operation: Operation,
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
struct Asking {
    /// The number of the change at the front.
    number: u64,
    changes: BoundedQueue<Waiting>,
    /// The number of the last question.
    last: u64,
    questions: BoundedMap<u64, (u64, Key)>,
    watches: BoundedMap<Key, Watching>,
    ticks: u8,
}

impl Asking {
    const fn new(limit: usize) -> Self {
        Self {
            number: 1,
            changes: BoundedQueue::new(limit),
            last: 0,
            questions: BoundedMap::new(limit),
            watches: BoundedMap::new(limit),
            ticks: 0,
        }
    }

    fn is_idle(&self) -> bool {
        self.changes.is_empty()
            && self.questions.iter().next().is_none()
            && self.watches.iter().next().is_none()
    }

    fn ask_change(&self, map: GroupId, out: &mut Out) {
        if let Some(first) = self.changes.iter().next() {
            let request = StoreRequest::Change {
                number: self.number,
                operation: Box::new(first.operation.clone()),
            };
            ask(map, request, out);
        }
    }
}

/// This node's requests to all maps, in its present life.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StoreClient {
    config: StoreConfig,
    /// The longest operation, in bytes.
    room: usize,
    /// Numbers go on as long as the node lives, so a map is never forgotten.
    maps: BoundedMap<GroupId, Asking>,
}

impl StoreClient {
    /// A client without requests. Frames have this limit in bytes.
    #[must_use]
    pub fn new(config: StoreConfig, frame_budget: u16) -> Self {
        Self {
            config,
            room: usize::from(frame_budget).saturating_sub(AROUND),
            maps: BoundedMap::new(config.pending.into()),
        }
    }

    /// Handles a command of the application.
    ///
    /// # Errors
    /// The command has no room. Nothing changed.
    pub fn on_command(
        &mut self,
        map: GroupId,
        command: StoreCommand,
        out: &mut Out,
    ) -> Result<(), StoreReject> {
        let limit = self.config.pending;
        let full = StoreReject::Full { limit };
        let (len, room) = (command.encoded_len(), self.room);
        if len > room {
            return Err(StoreReject::TooLong { len, room });
        }
        if !self.maps.contains(&map) {
            let asking = Asking::new(limit.into());
            let maps = StoreReject::Maps { limit };
            self.maps.insert(map, asking).map_err(|_| maps)?;
        }
        let asking = self.maps.get_mut(&map).ok_or(full)?;
        let was_idle = asking.is_idle();
        match command {
            StoreCommand::Change { ticket, operation } => {
                let is_first = asking.changes.is_empty();
                let waiting = Waiting { ticket, operation };
                asking.changes.push(waiting).map_err(|_| full)?;
                if is_first {
                    asking.ask_change(map, out);
                }
            }
            StoreCommand::Get { ticket, key } => {
                let number = asking.last + 1;
                let question = (ticket, key.clone());
                asking
                    .questions
                    .insert(number, question)
                    .map_err(|_| full)?;
                asking.last = number;
                ask(map, StoreRequest::Get { number, key }, out);
            }
            StoreCommand::Watch(key) => {
                let watching = Watching::default();
                asking
                    .watches
                    .insert(key.clone(), watching)
                    .map_err(|_| full)?;
                ask(
                    map,
                    StoreRequest::Watch {
                        key,
                        known: UNKNOWN,
                    },
                    out,
                );
            }
            StoreCommand::Unwatch(key) => {
                if asking.watches.remove(&key).is_some() {
                    ask(map, StoreRequest::Unwatch { key }, out);
                }
            }
        }
        if was_idle && !asking.is_idle() {
            self.arm(map, out);
        }
        Ok(())
    }

    /// Handles an answer of the leader of a map's group.
    pub fn on_answered(&mut self, map: GroupId, answer: StoreAnswer, out: &mut Out) {
        let Some(asking) = self.maps.get_mut(&map) else {
            return; // Nothing was asked.
        };
        match answer {
            StoreAnswer::Found { number, entry } => {
                if let Some((ticket, _)) = asking.questions.remove(&number) {
                    let found = StoreEvent::Found { ticket, entry };
                    out.push(ClientEffect::Event { map, event: found });
                }
            }
            StoreAnswer::Changed { number, stored } if number == asking.number => {
                let Some(done) = asking.changes.pop() else {
                    return; // A liar answers without a question.
                };
                asking.number += 1;
                let ticket = done.ticket;
                let changed = StoreEvent::Changed { ticket, stored };
                out.push(ClientEffect::Event {
                    map,
                    event: changed,
                });
                asking.ask_change(map, out);
            }
            StoreAnswer::Changed { .. } => {} // Reported before.
            StoreAnswer::Watched {
                key,
                version,
                entry,
            } => {
                let Some(watching) = asking.watches.get_mut(&key) else {
                    return; // It is watched no longer.
                };
                let is_late = watching.is_notified && version < watching.at;
                let present = entry.as_ref().map_or(0, |it| it.version);
                if is_late {
                    return;
                }
                let is_news = !watching.is_notified || present != watching.known;
                *watching = Watching {
                    at: version,
                    known: present,
                    is_notified: true,
                };
                let known = present;
                let watch = StoreRequest::Watch {
                    key: key.clone(),
                    known,
                };
                ask(map, watch, out);
                if is_news {
                    let watched = StoreEvent::Watched { key, entry };
                    out.push(ClientEffect::Event {
                        map,
                        event: watched,
                    });
                }
            }
            StoreAnswer::Known | StoreAnswer::Refused => {} // Waiting requests are sent again.
        }
    }

    /// Sends unanswered requests again.
    pub fn on_tick(&mut self, map: GroupId, out: &mut Out) {
        let Some(asking) = self.maps.get_mut(&map) else {
            return; // It never asked.
        };
        asking.ticks = (asking.ticks + 1) % RENEWAL;
        asking.ask_change(map, out);
        let questions: Vec<_> = asking.questions.iter().collect();
        for (&number, (_, key)) in questions {
            let key = key.clone();
            ask(map, StoreRequest::Get { number, key }, out);
        }
        let is_renewal = asking.ticks == 0;
        for (key, watching) in asking.watches.iter() {
            if is_renewal || !watching.is_notified {
                let known = watching.known_to_leader();
                let key = key.clone();
                ask(map, StoreRequest::Watch { key, known }, out);
            }
        }
        if !asking.is_idle() {
            self.arm(map, out);
        }
    }

    fn arm(&self, map: GroupId, out: &mut Out) {
        let after = self.config.resend;
        out.push(ClientEffect::Arm { map, after });
    }
}

/// A version that no entry has: the node knows nothing yet, and wants a report.
const UNKNOWN: u64 = u64::MAX;

impl Watching {
    const fn known_to_leader(&self) -> u64 {
        match self.is_notified {
            true => self.known,
            false => UNKNOWN,
        }
    }
}

fn ask(map: GroupId, request: StoreRequest, out: &mut Out) {
    out.push(ClientEffect::Ask { map, request });
}
