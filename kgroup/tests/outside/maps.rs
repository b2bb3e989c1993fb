//! Operations on maps, and the check that each key is one register.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_core::NodeId;
use selvedge_groups::GroupId;
use selvedge_groups::store::{Bytes, Expected, Operation, StoreCommand, StoreEvent, Stored};

/// A change of one entry.
#[derive(Clone, Debug)]
pub(crate) struct Set {
    key: String,
    expected: Expected,
    value: Option<Bytes>,
}

impl Set {
    fn of(operation: &Operation) -> Self {
        let Operation::Set {
            key,
            expected,
            value,
        } = operation.clone()
        else {
            panic!("{operation:?} is not asked here");
        };
        Self {
            key,
            expected,
            value,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) node: NodeId,
    pub(crate) life: u32,
    pub(crate) at: u64,
    pub(crate) change: Option<Set>,
    pub(crate) key: String,
}

/// A value of a key, with its version: when it was there, as far as is known.
#[derive(Clone, Debug)]
struct Written {
    asked: u64,
    answered: u64,
    expected: Option<Expected>,
}

#[derive(Default)]
pub(crate) struct Maps {
    pub(crate) pending: BTreeMap<(GroupId, u64), Asked>,
    /// By map and key: the version, with the value.
    versions: BTreeMap<(GroupId, String), BTreeMap<u64, u64>>,
    /// Each unique value, with its change.
    values: BTreeMap<u64, Written>,
    /// By map and key: the time of an answer, and the version that was present at the answer or before it.
    floor: BTreeMap<(GroupId, String), Vec<(u64, u64)>>,
    /// Reads: map, key, asked, answered, version.
    reads: Vec<(GroupId, String, u64, u64, u64)>,
    pub(crate) watched: BTreeMap<(NodeId, u32, GroupId, String), Option<u64>>,
    lost: BTreeSet<GroupId>,
    pub(crate) answered: u64,
    pub(crate) unanswered: u64,
}

impl Maps {
    pub(crate) fn ask(
        &mut self,
        at: u64,
        node: NodeId,
        life: u32,
        map: GroupId,
        command: &StoreCommand,
    ) {
        let (ticket, change, key) = match command {
            StoreCommand::Change { ticket, operation } => {
                let set = Set::of(operation);
                let key = set.key.clone();
                (*ticket, Some(set), key)
            }
            StoreCommand::Get { ticket, key } => (*ticket, None, key.clone()),
            StoreCommand::Watch(key) => {
                self.watched.insert((node, life, map, key.clone()), None);
                return;
            }
            StoreCommand::Unwatch(_) => return,
            other => panic!("{other:?} is not asked here"),
        };
        if let Some(value) = change.as_ref().and_then(|it| it.value.as_ref()) {
            let expected = change.as_ref().map(|it| it.expected);
            let written = Written {
                asked: at,
                answered: u64::MAX,
                expected,
            };
            self.values.insert(number_of(value), written);
        }
        self.pending.insert(
            (map, ticket),
            Asked {
                node,
                life,
                at,
                change,
                key,
            },
        );
    }

    pub(crate) fn stopped(&mut self, node: NodeId, life: u32) {
        let before = self.pending.len();
        self.pending
            .retain(|_, it| it.node != node || it.life != life);
        self.unanswered += (before - self.pending.len()) as u64;
        self.watched.retain(|it, _| it.0 != node);
    }

    /// The map begins anew: nothing more is checked of it.
    pub(crate) fn lost(&mut self, map: GroupId) {
        if map.is_map() {
            self.lost.insert(map);
        }
    }

    pub(crate) fn is_lost(&self, map: GroupId) -> bool {
        self.lost.contains(&map)
    }

    pub(crate) fn event(
        &mut self,
        now: u64,
        node: NodeId,
        life: u32,
        map: GroupId,
        event: &StoreEvent,
    ) -> Result<(), String> {
        match event {
            StoreEvent::Changed { ticket, stored } => {
                let asked = self.taken(map, *ticket)?;
                let Some(change) = asked.change else {
                    return Err(format!("a question {ticket} is answered as a change"));
                };
                self.changed(now, map, asked.at, &change, *stored)
            }
            StoreEvent::Found { ticket, entry } => {
                let asked = self.taken(map, *ticket)?;
                let version = entry.as_ref().map_or(0, |it| it.version);
                if let Some(entry) = entry {
                    self.is_at(map, &asked.key, entry.version, number_of(&entry.value))?;
                }
                self.reads.push((map, asked.key, asked.at, now, version));
                Ok(())
            }
            StoreEvent::Watched { key, entry } => {
                let version = entry.as_ref().map_or(0, |it| it.version);
                self.watched
                    .insert((node, life, map, key.clone()), Some(version));
                match entry {
                    Some(entry) => self.is_at(map, key, version, number_of(&entry.value)),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    fn taken(&mut self, map: GroupId, ticket: u64) -> Result<Asked, String> {
        self.answered += 1;
        let asked = self.pending.remove(&(map, ticket));
        asked.ok_or_else(|| {
            format!("{map:?}: ticket {ticket} is answered twice, or was never asked")
        })
    }

    fn changed(
        &mut self,
        now: u64,
        map: GroupId,
        at: u64,
        change: &Set,
        stored: Stored,
    ) -> Result<(), String> {
        match stored {
            Stored::Done { version } => {
                let Some(value) = change.value.as_ref().map(|it| number_of(it)) else {
                    return Ok(());
                };
                if let Some(written) = self.values.get_mut(&value) {
                    written.answered = now;
                }
                self.is_at(map, &change.key, version, value)
            }
            Stored::Mismatch { found } => {
                let read = (map, change.key.clone(), at, now, found.unwrap_or(0));
                self.reads.push(read);
                match change.expected {
                    Expected::Any => Err(format!("{map:?}: a mismatch of a change of anything")),
                    Expected::Absent if found.is_none() => Err("absent is a mismatch".into()),
                    Expected::Version(version) if found == Some(version) => {
                        Err("the expected version is a mismatch".into())
                    }
                    _ => Ok(()),
                }
            }
            // A change of a life that no later one has followed is never over.
            other => match self.lost.contains(&map) {
                true => Ok(()),
                false => Err(format!("{map:?}: {change:?} is {other:?}")),
            },
        }
    }

    fn is_at(&mut self, map: GroupId, key: &str, version: u64, value: u64) -> Result<(), String> {
        if self.lost.contains(&map) {
            return Ok(());
        }
        let known = self.versions.entry((map, key.to_owned())).or_default();
        let before = *known.entry(version).or_insert(value);
        let others = known.iter().filter(|it| *it.1 == value).count();
        match before == value && others == 1 {
            true => Ok(()),
            false => Err(format!(
                "{map:?} {key}: version {version} is {before} and {value}, which has {others} versions"
            )),
        }
    }

    /// All answers together: one order for each key, which agrees with time.
    pub(crate) fn check(&mut self) -> Result<(), String> {
        for ((map, key), versions) in &self.versions {
            if self.lost.contains(map) {
                continue;
            }
            let mut before = 0;
            // Answered changes and reads show that a version was reached by then.
            let floor = self.floor.entry((*map, key.clone())).or_default();
            for (version, value) in versions {
                let Some(written) = self.values.get(value) else {
                    return Err(format!("{map:?} {key}: the value {value} was never put"));
                };
                match written.expected {
                    Some(Expected::Absent) if before != 0 => {
                        return Err(format!("{map:?} {key}: put if absent over {before}"));
                    }
                    Some(Expected::Version(expected)) if before != expected => {
                        return Err(format!(
                            "{map:?} {key}: {version} expected {expected}, had {before}"
                        ));
                    }
                    _ => {}
                }
                before = *version;
                if written.answered != u64::MAX {
                    floor.push((written.answered, *version));
                }
            }
        }
        for (map, key, _, answered, version) in &self.reads {
            let floor = self.floor.entry((*map, key.clone())).or_default();
            floor.push((*answered, *version));
        }
        for floor in self.floor.values_mut() {
            floor.sort_unstable();
            let mut highest = 0;
            for (_, version) in floor {
                highest = highest.max(*version);
                *version = highest;
            }
        }
        let reached = |map: GroupId, key: &str, asked: u64| {
            let floor = self.floor.get(&(map, key.to_owned()));
            let all = floor.map(Vec::as_slice).unwrap_or_default();
            let count = all.partition_point(|it| it.0 < asked);
            count
                .checked_sub(1)
                .and_then(|it| all.get(it))
                .map_or(0, |it| it.1)
        };
        for (map, key, asked, answered, version) in &self.reads {
            if self.lost.contains(map) {
                continue;
            }
            let least = reached(*map, key, *asked);
            if *version < least {
                return Err(format!(
                    "{map:?} {key}: read {version} after {least} was answered"
                ));
            }
            let value = self
                .versions
                .get(&(*map, key.clone()))
                .and_then(|it| it.get(version));
            let written = value.and_then(|it| self.values.get(it));
            if written.is_some_and(|it| it.asked > *answered) {
                return Err(format!(
                    "{map:?} {key}: {version} is read before it was put"
                ));
            }
        }
        for ((map, key), versions) in &self.versions {
            if self.lost.contains(map) {
                continue;
            }
            for (version, value) in versions {
                let asked = self.values.get(value).map_or(0, |it| it.asked);
                let least = reached(*map, key, asked);
                if *version <= least {
                    return Err(format!(
                        "{map:?} {key}: put {version} after {least} was answered"
                    ));
                }
            }
        }
        Ok(())
    }

    /// The latest version of each key that was seen.
    pub(crate) fn last(&self, map: GroupId, key: &str) -> u64 {
        let known = self.versions.get(&(map, key.to_owned()));
        known
            .and_then(|it| it.last_key_value())
            .map_or(0, |it| *it.0)
    }
}

/// The number that a value of an entry is.
pub(crate) fn number_of(bytes: &[u8]) -> u64 {
    let mut eight = [0; 8];
    for (to, from) in eight.iter_mut().zip(bytes) {
        *to = *from;
    }
    u64::from_le_bytes(eight)
}
