//! Requests of nodes to maps.

use selvedge_core::{Input, Member};
use selvedge_groups::{
    GroupId,
    store::{Bytes, Entry, Expected, Operation, StoreCommand, StoreEvent},
};
use selvedge_kgroup::Command;
use selvedge_sim::histories::History;

use crate::oracle::{Asked, Outcome, What};
use crate::world::World;

const KEYS: [&str; 3] = ["a", "b", "c"];

/// A value that is written once only.
pub(crate) fn value(op: u64, pad: usize) -> Bytes {
    let tail = std::iter::repeat_n(op as u8, pad);
    (op as u32).to_le_bytes().into_iter().chain(tail).collect()
}

fn op_of(value: &Bytes) -> u64 {
    let mut four = [0; 4];
    four.copy_from_slice(&value[..4]);
    let op = u64::from(u32::from_le_bytes(four));
    assert!(value[4..].iter().all(|it| *it == op as u8), "a torn value");
    op
}

fn seen(entry: Option<&Entry>) -> Option<(u64, u64)> {
    entry.map(|it| (it.version, op_of(&it.value)))
}

impl World {
    pub(crate) fn a_map(&mut self) -> GroupId {
        let at = self.below(self.maps.len() as u64);
        self.maps[at as usize]
    }

    fn a_key(&mut self) -> String {
        KEYS[self.below(KEYS.len() as u64) as usize].to_owned()
    }

    /// A node changes an entry.
    pub(crate) fn change(&mut self, id: u64) {
        let (map, key) = (self.a_map(), self.a_key());
        let expected = match self.below(6) {
            0..2 => Expected::Any,
            2 => Expected::Absent,
            _ => self.oracle.last(map, &key).map_or(Expected::Absent, |it| {
                let behind = self.now.is_multiple_of(7);
                Expected::Version(it.saturating_sub(u64::from(behind)))
            }),
        };
        self.change_to(id, map, key, expected);
    }

    pub(crate) fn change_to(&mut self, id: u64, map: GroupId, key: String, expected: Expected) {
        if !self.is_awake(id) {
            return;
        }
        let op = self.oracle.next();
        let pad = if self.percent(10) { self.below(30) } else { 0 } as usize;
        let value = (!self.percent(20)).then(|| value(op, pad));
        let what = What::Change {
            key: key.clone(),
            expected,
            puts: value.is_some(),
        };
        let operation = Operation::set(key, expected, value);
        let command = StoreCommand::Change {
            ticket: op,
            operation,
        };
        self.ask(id, map, op, what, command);
    }

    /// A node reads an entry.
    pub(crate) fn read(&mut self, id: u64) {
        let (map, key) = (self.a_map(), self.a_key());
        self.read_of(id, map, key);
    }

    pub(crate) fn read_all(&mut self, id: u64) {
        for map in self.maps.clone() {
            for key in KEYS {
                // A node that stores a fact takes no command.
                for _ in 0..100 {
                    if self.is_awake(id) || self.me(id).is_none() {
                        break;
                    }
                    self.run_for(10_000);
                }
                self.read_of(id, map, key.to_owned());
            }
        }
    }

    fn read_of(&mut self, id: u64, map: GroupId, key: String) {
        if !self.is_awake(id) {
            return;
        }
        let op = self.oracle.next();
        let what = What::Get { key: key.clone() };
        self.ask(id, map, op, what, StoreCommand::Get { ticket: op, key });
    }

    fn ask(&mut self, id: u64, map: GroupId, op: u64, what: What, command: StoreCommand) {
        let by = self.nodes[&id].member();
        let start = self.oracle.tick();
        let asked = Asked {
            map,
            by,
            what,
            start,
            end: None,
        };
        self.oracle.asked.insert(op, asked);
        let input = Input::Command(Command::Map { map, command });
        if self.step(id, Some(input)).is_err() {
            self.oracle.asked.remove(&op);
        }
        // An answer may have come in the same step.
        self.run(id);
    }

    /// A node watches an entry, or does not any more.
    pub(crate) fn watch(&mut self, id: u64, on: bool) {
        if !self.is_awake(id) {
            return;
        }
        let (map, key) = (self.a_map(), self.a_key());
        self.watch_of(id, map, key, on);
    }

    pub(crate) fn unwatch_all(&mut self) {
        for id in self.ids() {
            let host = self.nodes[&id].host.as_ref();
            let watches = host.map(|it| it.own.watches.clone()).unwrap_or_default();
            for (map, key) in watches {
                self.watch_of(id, map, key, false);
            }
        }
    }

    fn watch_of(&mut self, id: u64, map: GroupId, key: String, on: bool) {
        let entry = (map, key.clone());
        let command = match on {
            true => StoreCommand::Watch(key),
            false => StoreCommand::Unwatch(key),
        };
        let host = self.life(id);
        let was = host.watches.contains(&entry);
        if on {
            host.watches.insert(entry.clone());
        } else {
            host.watches.remove(&entry);
            host.shown.remove(&entry);
        }
        let input = Input::Command(Command::Map { map, command });
        let took = self.step(id, Some(input)).is_ok();
        if on && !was && !took {
            self.life(id).watches.remove(&entry);
        }
        self.run(id);
    }

    /// An answer is let out.
    pub(crate) fn answered(&mut self, me: Member, map: GroupId, event: StoreEvent) {
        match event {
            _ if self.liars => {}
            StoreEvent::Changed { ticket, stored } => {
                self.oracle.ends(me, map, ticket, Outcome::Changed(stored));
            }
            StoreEvent::Found { ticket, entry } => {
                let outcome = Outcome::Found(seen(entry.as_ref()));
                self.oracle.ends(me, map, ticket, outcome);
            }
            StoreEvent::Watched { key, entry } => {
                let shown = seen(entry.as_ref());
                self.oracle.shown(map, &key, shown);
                let host = self.life(me.id.0);
                let at = (map, key);
                if host.watches.contains(&at) {
                    let version = shown.map_or(0, |it| it.0);
                    let before = host.shown.insert(at, version);
                    let back = before.is_some_and(|it| version != 0 && version < it);
                    assert!(!back, "a watch goes back at {me:?}: {before:?}, {shown:?}");
                }
            }
            other => panic!("what is {other:?}?"),
        }
    }

    /// Checks the last event of each watch against the map.
    pub(crate) fn watches_are_up_to_date(&self) {
        for node in self.nodes.values() {
            let Some(host) = &node.host else { continue };
            for at in &host.own.watches {
                let now = self.content(at.0, &at.1);
                let shown = host.own.shown.get(at).copied();
                assert_eq!(shown, Some(now), "{:?} watches {at:?}", host.me);
            }
        }
    }

    /// The version of an entry, at the leader; 0 if the map has no entry.
    fn content(&self, map: GroupId, key: &str) -> u64 {
        let store = self.store(map).expect("a map that is asked for");
        store.get(key).map_or(0, |it| it.version)
    }

    pub(crate) fn store(&self, map: GroupId) -> Option<&selvedge_groups::store::Store> {
        let leader = *self.leaders(map).first()?;
        match self.machine(leader)?.held(map)? {
            selvedge_kgroup::GroupState::Map(store) => Some(store),
            other => panic!("{map:?} holds {other:?}"),
        }
    }
}
