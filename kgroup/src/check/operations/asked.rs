//! Requests of applications to the map and to routines, and their answers.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use selvedge_groups::{
    GroupId,
    store::{Entry, Expected, Key, Operation, StoreEvent, Stored},
};

use super::history::MapHistory;
use crate::TriggerId;

#[derive(Clone, Debug)]
pub(super) enum Question {
    Change(Operation),
    /// A read, with the version of the map when it was asked.
    Get(Key, u64),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    /// Questions without an answer, by seat and ticket.
    pub(super) waiting: BTreeMap<(usize, u64), Question>,
    pub(super) watches: BTreeSet<(usize, Key)>,
    watched: BTreeMap<(usize, Key), Option<u64>>,
    pub(super) triggers: BTreeSet<(GroupId, TriggerId)>,
    pub(super) runs: BTreeSet<(usize, GroupId, TriggerId)>,
    /// All changes, by the value that they put; each puts its own ticket.
    pub(super) puts: BTreeMap<Vec<u8>, Operation>,
    /// The values of refused changes: they are never seen.
    refused: BTreeSet<Vec<u8>>,
    pub(super) tickets: u64,
    pub(super) stored: u64,
    pub(super) found: u64,
}

impl Asked {
    /// A node has lost its requests.
    pub(super) fn forget(&mut self, at: usize) {
        self.waiting.retain(|it, _| it.0 != at);
        self.watched.retain(|it, _| it.0 != at);
        self.watches.retain(|it| it.0 != at);
        self.runs.retain(|it| it.0 != at);
    }

    /// A node watches, from now on: it receives the present entry again.
    pub(super) fn watch(&mut self, at: usize, key: &str) {
        self.watches.insert((at, key.into()));
        self.watched.remove(&(at, key.into()));
    }

    pub(super) fn on_triggered(
        &mut self,
        at: usize,
        routine: GroupId,
        id: TriggerId,
    ) -> Result<(), String> {
        match self.runs.remove(&(at, routine, id)) {
            true => Ok(()),
            false => Err(format!(
                "{at} is notified of {id:?} of {routine:?}, and asked for none"
            )),
        }
    }

    pub(super) fn on_map(
        &mut self,
        at: usize,
        event: &StoreEvent,
        map: &MapHistory,
    ) -> Result<(), String> {
        match event {
            StoreEvent::Changed { ticket, stored } => {
                let question = self.waiting.remove(&(at, *ticket));
                let Some(Question::Change(operation)) = question else {
                    return Err(format!("{at} is notified of {ticket}: {question:?}"));
                };
                self.on_changed(&operation, *stored, map)
            }
            StoreEvent::Found { ticket, entry } => {
                let question = self.waiting.remove(&(at, *ticket));
                let Some(Question::Get(key, since)) = question else {
                    return Err(format!("{at} is notified of {ticket}: {question:?}"));
                };
                self.found += 1;
                match map.was(&key, entry.as_ref(), since) {
                    Some(false) => Err(format!("{at} reads {entry:?} of {key} since {since}")),
                    Some(true) | None => Ok(()),
                }
            }
            StoreEvent::Watched { key, entry } => {
                if map.was(key, entry.as_ref(), 0) == Some(false) {
                    return Err(format!("{at} watches {entry:?} of {key}"));
                }
                let version = entry.as_ref().map(|it| it.version);
                let before = self.watched.insert((at, key.clone()), version);
                let is_back = before.flatten() > version && version.is_some();
                match is_back {
                    true => Err(format!("{at} watches {key}, and receives {version:?} late")),
                    false => Ok(()),
                }
            }
            StoreEvent::Listed { .. }
            | StoreEvent::PrefixChanged { .. }
            | StoreEvent::Compacted { .. }
            | StoreEvent::SessionKept { .. }
            | StoreEvent::SessionOver { .. } => Err(format!("{at} did not ask for {event:?}")),
            other => Err(format!("{at} receives an unknown event: {other:?}")),
        }
    }

    fn on_changed(
        &mut self,
        operation: &Operation,
        stored: Stored,
        map: &MapHistory,
    ) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("{what}: {operation:?} {stored:?}"));
        let Operation::Set {
            key,
            expected,
            value,
        } = operation
        else {
            return wrong("it is not asked here");
        };
        match stored {
            Stored::Done { version } => {
                self.stored += 1;
                if let Some(after) = map.at(version, key)
                    && after.map(|it| &it.value) != value.as_ref()
                {
                    return wrong("another value is there");
                }
                let is_certain = matches!(*expected, Expected::Version(_));
                if value.is_none() && !is_certain {
                    return Ok(()); // Perhaps no entry: then the version is older.
                }
                let Some(before) = map.at(version.saturating_sub(1), key) else {
                    return Ok(()); // No node was seen at that version.
                };
                match is_as_expected(*expected, before.map(|it| it.version)) {
                    true => Ok(()),
                    false => wrong("it was not as expected"),
                }
            }
            Stored::Mismatch { found } => {
                if value.as_ref().is_some_and(|it| map.has(it)) {
                    return wrong("it was done");
                }
                self.refused.extend(value_of(operation));
                match is_as_expected(*expected, found) {
                    true => wrong("it was as expected"),
                    false => Ok(()),
                }
            }
            Stored::Full | Stored::Over => wrong("there is room, and no later change"),
            Stored::Otherwise { .. } | Stored::Begun { .. } | Stored::NoSession => {
                wrong("it is the answer to another change")
            }
        }
    }

    /// An entry was seen: a change put it there, at once this version, and was not refused.
    pub(super) fn on_put(&self, key: &str, entry: &Entry) -> Result<(), String> {
        let value: Vec<u8> = entry.value.iter().copied().collect();
        let is_it = |it: &Operation| matches!(it, Operation::Set { key: put, .. } if put == key);
        let put = self.puts.get(&value).is_some_and(is_it);
        match put && !self.refused.contains(&value) {
            true => Ok(()),
            false => Err(format!("nothing put {entry:?} as {key}")),
        }
    }

    /// The first request without an answer, or the first watch without the latest version of its entry.
    pub(super) fn what_is_missing(&self, map: &MapHistory) -> Option<String> {
        if let Some(question) = self.waiting.first_key_value() {
            return Some(format!("no node answers {question:?}"));
        }
        if let Some(run) = self.runs.first() {
            return Some(format!("no node answers {run:?}"));
        }
        self.watches.iter().find_map(|it| {
            let present = map.present(&it.1).map(|it| it.version);
            let watched = self.watched.get(it);
            (watched != Some(&present))
                .then(|| format!("{it:?} is {present:?}, received {watched:?}"))
        })
    }
}

/// The value that a change puts.
pub(super) fn value_of(operation: &Operation) -> Option<Vec<u8>> {
    let Operation::Set { value, .. } = operation else {
        return None;
    };
    let value = value.as_ref()?;
    Some(value.iter().copied().collect())
}

fn is_as_expected(expected: Expected, found: Option<u64>) -> bool {
    match expected {
        Expected::Any => true,
        Expected::Absent => found.is_none(),
        Expected::Version(it) => found == Some(it),
    }
}
