//! What applications asked, and were answered.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_kgroup::store::{Expected, Key, Operation, StoreEvent, Stored};
use selvedge_kgroup::{GroupId, TriggerId};

use crate::oracle::Oracle;

#[derive(Clone, Debug)]
pub(crate) enum Question {
    Change(Operation),
    /// With the version of the group when it was asked.
    Get(Key, u64),
}

#[derive(Default)]
pub(crate) struct Asked {
    pub(crate) maps: Vec<GroupId>,
    /// By node, map and ticket.
    pub(crate) waiting: BTreeMap<(usize, GroupId, u64), Question>,
    pub(crate) watched: BTreeMap<(usize, GroupId, Key), Option<u64>>,
    pub(crate) watches: BTreeSet<(usize, GroupId, Key)>,
    pub(crate) triggers: BTreeSet<(GroupId, TriggerId)>,
    pub(crate) runs: BTreeSet<(usize, GroupId, TriggerId)>,
    pub(crate) stored: u64,
    pub(crate) found: u64,
    pub(crate) tickets: u64,
}

impl Asked {
    pub(crate) fn maps(&self) -> impl Iterator<Item = GroupId> {
        self.maps.clone().into_iter()
    }

    /// A node has lost what it asked.
    pub(crate) fn forget(&mut self, at: usize) {
        self.waiting.retain(|it, _| it.0 != at);
        self.watched.retain(|it, _| it.0 != at);
        self.watches.retain(|it| it.0 != at);
        self.runs.retain(|it| it.0 != at);
    }

    pub(crate) fn on_triggered(&mut self, at: usize, routine: GroupId, id: TriggerId) {
        assert!(self.triggers.contains(&(routine, id)), "nobody asked");
        self.runs.remove(&(at, routine, id));
    }

    pub(crate) fn on_map(&mut self, at: usize, map: GroupId, event: StoreEvent, oracle: &Oracle) {
        match event {
            StoreEvent::Changed { ticket, stored } => {
                let question = self.waiting.remove(&(at, map, ticket));
                let Some(Question::Change(operation)) = question else {
                    panic!("{at} is told of {ticket}, which it did not ask: {question:?}");
                };
                self.on_changed(map, &operation, stored, oracle);
            }
            StoreEvent::Found { ticket, entry } => {
                let question = self.waiting.remove(&(at, map, ticket));
                let Some(Question::Get(key, since)) = question else {
                    panic!("{at} is told of {ticket}, which it did not ask: {question:?}");
                };
                self.found += 1;
                let entry = entry.map(|it| (it.version, it.value.iter().copied().collect()));
                let all = oracle.entries.get(&(map, key));
                let all = all.map_or(&[][..], |it| &it[..]);
                // What it was when it was asked, and all since.
                let first = all.iter().rposition(|it| it.0 <= since);
                let fits = first.is_none() && entry.is_none()
                    || all[first.unwrap_or(0)..].iter().any(|it| it.1 == entry);
                assert!(fits, "{at} reads {entry:?} since {since}: {all:?}");
            }
            StoreEvent::Watched { key, entry } => {
                let entry = entry.map(|it| it.version);
                self.watched.insert((at, map, key), entry);
            }
            _ => {}
        }
    }

    fn on_changed(&mut self, map: GroupId, operation: &Operation, stored: Stored, oracle: &Oracle) {
        let all = oracle.entries.get(&(map, operation.key.clone()));
        let all = all.map_or(&[][..], |it| &it[..]);
        match stored {
            Stored::Done { version } => {
                self.stored += 1;
                let Some(value) = &operation.value else {
                    return;
                };
                let value: Vec<u8> = value.iter().copied().collect();
                let entry = Some((version, value));
                let at = all.iter().position(|it| it.1 == entry);
                let Some(at) = at else {
                    return; // Another change followed in the same step.
                };
                let before = at.checked_sub(1).and_then(|it| all[it].1.as_ref());
                let before = before.map(|it| it.0);
                match operation.expected {
                    Expected::Any => {}
                    Expected::Absent => assert_eq!(before, None, "{operation:?}"),
                    Expected::Version(it) => assert_eq!(before, Some(it), "{operation:?}"),
                }
            }
            Stored::Mismatch { found } => {
                let is_other = match operation.expected {
                    Expected::Any => false,
                    Expected::Absent => found.is_some(),
                    Expected::Version(it) => found != Some(it),
                };
                assert!(is_other, "{operation:?} {stored:?}");
            }
            Stored::Full | Stored::Over => panic!("{operation:?} {stored:?}"),
        }
    }
}
