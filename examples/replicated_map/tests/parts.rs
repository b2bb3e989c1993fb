//! The map and the storage by themselves.

use std::fs;
use std::path::Path;

use chacha20::ChaCha12Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::durable::Barrier;
use selvedge_core::{Driver, Effect, Input, Member, NodeId, Time};
use selvedge_replica::{Command, Configuration, Replica, State};
use selvedge_store::redb::{Database, TableDefinition};
use selvedge_store::{Damage, StoreError};

use super::running::Folder;
use crate::map::{Expected, Map, Outcome, Slot, Update};
use crate::storage::{self, Memories, Memory, StorageError};

fn update(key: &str, expected: Expected, value: &str) -> Update {
    let (key, value) = (key.into(), value.into());
    Update {
        key,
        expected,
        value,
    }
}

fn slot(value: &str, revision: u64) -> Slot {
    let value = value.into();
    Slot { value, revision }
}

#[test]
fn a_key_is_set_where_it_holds_what_is_expected() {
    let mut map = Map::default();
    let steps = [
        ("a", Expected::Value("1".into()), "2", Err(None)),
        ("a", Expected::Revision(0), "2", Err(None)),
        ("a", Expected::Absent, "1", Ok(1)),
        ("a", Expected::Absent, "2", Err(Some(slot("1", 1)))),
        ("b", Expected::Anything, "1", Ok(2)),
        (
            "a",
            Expected::Value("2".into()),
            "3",
            Err(Some(slot("1", 1))),
        ),
        ("a", Expected::Value("1".into()), "1", Ok(3)),
        // The value is the same again, and the revision is not.
        ("a", Expected::Revision(1), "4", Err(Some(slot("1", 3)))),
        ("a", Expected::Revision(3), "4", Ok(4)),
        ("b", Expected::Revision(2), "5", Ok(5)),
    ];
    for (key, expected, value, wanted) in steps {
        let (before, update) = (map.clone(), update(key, expected, value));
        let outcome = map.apply(&update);
        match wanted {
            Ok(revision) => {
                let (key, slot) = (key.to_owned(), slot(value, revision));
                assert_eq!(map.get(&key), Some(&slot), "{update:?}");
                assert_eq!(outcome, Outcome::Changed { key, slot });
            }
            Err(found) => {
                assert_eq!(outcome, Outcome::Differs { found }, "{update:?}");
                assert_eq!(map, before);
            }
        }
    }
}

#[test]
fn a_full_map_refuses_and_still_replaces_and_fits_into_what_members_receive() {
    let mut map = Map::default();
    let value = "v".repeat(1_000);
    let mut keys = 0;
    while map.apply(&update(&keys.to_string(), Expected::Anything, &value)) != Outcome::Full {
        keys += 1;
    }
    assert!(keys > 200, "{keys}");
    let replaced = map.apply(&update("0", Expected::Anything, "less"));
    assert!(matches!(replaced, Outcome::Changed { .. }), "{replaced:?}");
    // The shortest slots have the most overhead beside their texts.
    let mut map = Map::default();
    let mut keys = 0;
    while map.apply(&update(&keys.to_string(), Expected::Anything, "")) != Outcome::Full {
        keys += 1;
    }
    let len = postcard::to_allocvec(&map).unwrap().len();
    assert!(len <= Map::LIMIT, "{len}");
}

fn first() -> Configuration {
    Configuration::of([Member::new(1, 0)])
}

fn open(dir: &Path, memory: Memory) -> Result<(Memories, Replica<Map>), StorageError> {
    storage::open(dir, NodeId(1), memory, first())
}

/// A group of one that sets `count` to each of `numbers`, and stores each fact.
fn count_to(dir: &Path, memory: Memory, numbers: core::ops::RangeInclusive<u64>) {
    let (mut store, replica) = open(dir, memory).unwrap();
    let (mut driver, mut barrier) = (Driver::new(replica), Barrier::new(0));
    let mut rng = ChaCha12Rng::seed_from_u64(1);
    for number in numbers {
        let update = update("count", Expected::Anything, &number.to_string());
        let input = Input::Command(Command::Propose(update));
        let drop = |_: Effect<Replica<Map>>| {};
        let step = driver.step(Time::ZERO, &mut rng, input, |it| barrier.take(it, drop));
        step.unwrap();
        let base = || storage::base(driver.machine());
        assert!(store.store(&mut barrier, base, drop).unwrap());
    }
}

/// The state in a later life: all accepted updates, once it leads again.
fn count(dir: &Path) -> (u32, Option<Slot>) {
    let (_store, replica) = open(dir, Memory::Kept).unwrap();
    let mut driver = Driver::new(replica);
    let mut rng = ChaCha12Rng::seed_from_u64(1);
    let stand = Input::Command(Command::Campaign);
    driver.step(Time::ZERO, &mut rng, stand, |_| {}).unwrap();
    let replica = driver.machine();
    let state = replica.state().unwrap();
    (replica.me().incarnation.0, state.get("count").cloned())
}

#[test]
fn a_later_life_holds_what_was_stored_also_behind_a_new_base() {
    let folder = Folder::new("lives");
    count_to(&folder.0, Memory::NeverStarted, 1..=3);
    assert_eq!(count(&folder.0), (1, Some(slot("3", 3))));
    assert_eq!(count(&folder.0), (2, Some(slot("3", 3))));
    count_to(&folder.0, Memory::Kept, 4..=130);
    assert_eq!(count(&folder.0), (4, Some(slot("130", 130))));
}

#[test]
fn a_life_begins_as_the_user_says_or_not_at_all() {
    let folder = Folder::new("memory");
    let error = |memory| open(&folder.0, memory).map(|_| ()).unwrap_err();
    assert!(matches!(
        error(Memory::Kept),
        StorageError::Store(StoreError::NothingStored)
    ));
    let (_, replica) = open(&folder.0, Memory::Lost).unwrap();
    // Later than any that was counted, and without a vote.
    assert!(replica.me().supersedes(Member::new(1, 1_000_000)));
    assert!(!replica.votes());
    for memory in [Memory::NeverStarted, Memory::Lost] {
        assert!(matches!(
            error(memory),
            StorageError::Store(StoreError::AlreadyStored)
        ));
    }
    let (_, later) = open(&folder.0, Memory::Kept).unwrap();
    assert!(later.me().supersedes(replica.me()));
    assert_eq!(later.voter(), replica.me());
    let other = storage::open(&folder.0, NodeId(2), Memory::Kept, first());
    let is_other = matches!(
        other,
        Err(StorageError::Store(StoreError::OtherNode {
            found: NodeId(1),
            ..
        }))
    );
    assert!(is_other);
}

#[test]
fn a_database_in_use_or_of_another_program_is_refused() {
    let folder = Folder::new("foreign");
    let path = folder.0.join("map.redb");
    let in_use = open(&folder.0, Memory::NeverStarted).unwrap();
    assert!(matches!(
        open(&folder.0, Memory::Kept).map(|_| ()),
        Err(StorageError::Store(StoreError::InUse(_)))
    ));
    drop(in_use);

    fs::remove_file(&path).unwrap();
    let database = Database::create(&path).unwrap();
    let table = TableDefinition::<u64, u64>::new("of another program");
    let txn = database.begin_write().unwrap();
    txn.open_table(table).unwrap();
    txn.commit().unwrap();
    drop(database);
    for memory in [Memory::Kept, Memory::NeverStarted, Memory::Lost] {
        assert!(matches!(
            open(&folder.0, memory).map(|_| ()),
            Err(StorageError::Store(StoreError::Damage(Damage::Foreign(_))))
        ));
    }

    fs::write(&path, b"no database").unwrap();
    assert!(matches!(
        open(&folder.0, Memory::Kept).map(|_| ()),
        Err(StorageError::Store(StoreError::Damage(Damage::Foreign(_))))
    ));
}

#[test]
fn a_damaged_database_is_refused_or_holds_what_was_stored() {
    let folder = Folder::new("damaged");
    count_to(&folder.0, Memory::NeverStarted, 1..=20);
    let path = folder.0.join("map.redb");
    let bytes = fs::read(&path).unwrap();
    let mut refused = 0;
    // One wrong byte, or a missing end.
    let places = (0..bytes.len()).step_by(bytes.len() / 10);
    let used = (0..bytes.len()).filter(|&at| bytes[at] != 0);
    let used: Vec<usize> = used.collect();
    let used = used.iter().copied().step_by(used.len() / 10);
    for at in places.chain(used) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x55;
        for damaged in [&flipped[..], &bytes[..at]] {
            fs::write(&path, damaged).unwrap();
            match open(&folder.0, Memory::Kept).map(drop) {
                Err(_) => refused += 1,
                Ok(()) => assert_eq!(count(&folder.0).1, Some(slot("20", 20)), "at {at}"),
            }
        }
    }
    assert!(refused > 10, "{refused}");
}
