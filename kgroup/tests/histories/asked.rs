//! What applications asked, and were answered.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_groups::{
    GroupId,
    store::{Expected, Key, Operation, StoreEvent, Stored},
};
use selvedge_kgroup::TriggerId;

use crate::oracle::Oracle;

#[derive(Clone, Debug)]
pub(crate) enum Question {
    Change(Operation),
    /// With the version of the map when it was asked.
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
    /// What could not be judged, because nobody was seen at the version in question.
    pub(crate) unseen: u64,
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
                let seen = oracle.map(map);
                let was = seen.and_then(|it| it.was(&key, entry.as_ref(), since));
                assert_ne!(
                    was,
                    Some(false),
                    "{at} reads {entry:?} of {key} since {since}"
                );
                self.unseen += u64::from(was.is_none());
            }
            StoreEvent::Watched { key, entry } => {
                let entry = entry.map(|it| it.version);
                self.watched.insert((at, map, key), entry);
            }
            _ => {}
        }
    }

    fn on_changed(&mut self, map: GroupId, operation: &Operation, stored: Stored, oracle: &Oracle) {
        match stored {
            Stored::Done { version } => {
                self.stored += 1;
                let key = &operation.key;
                let seen = oracle.map(map);
                let at = |version| seen.and_then(|it| it.at(version, key));
                let value = operation.value.as_ref();
                if let Some(after) = at(version) {
                    let value = value.map(|it| (version, it.iter().copied().collect()));
                    assert_eq!(after, value.as_ref(), "{operation:?}");
                }
                let is_certain = matches!(operation.expected, Expected::Version(_));
                if value.is_none() && !is_certain {
                    return; // Perhaps there was nothing to take away, and the version is an older one.
                }
                let Some(before) = at(version - 1) else {
                    self.unseen += 1;
                    return;
                };
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
