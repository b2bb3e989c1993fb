//! Damaged files.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng as _, SeedableRng as _};
use selvedge_core::NodeId;
use selvedge_store::redb::TableDefinition;
use selvedge_store::{Damage, Memory, Schema, Store, StoreError};

use crate::disk::Disk;
use crate::log::{Log, SCHEMA, begin, open, write};

const BLOCK: usize = 4_096;

/// A database with 10 numbers, as it is after a last call that stored two of them: closed, or
/// after a crash.
fn database(is_closed: bool) -> Vec<u8> {
    let disk = Disk::default();
    let (mut store, _) = open(disk.clone()).unwrap();
    begin(&mut store, 3).unwrap();
    for numbers in [3..6, 6..8, 8..10] {
        write(&mut store, numbers).unwrap();
    }
    if is_closed {
        drop(store);
    }
    disk.bytes()
}

/// Opens it. A refused medium does not change.
fn look(bytes: &[u8], what: &str) -> Option<Log> {
    let disk = Disk::of(bytes);
    match open(disk.clone()) {
        Ok((_, found)) => Some(found),
        Err(StoreError::Damage(damage)) => {
            let notified = damage.to_string();
            assert!(notified.contains("test.redb"), "{notified}");
            let is_same = disk.bytes() == bytes;
            assert!(is_same, "{what}: it was changed, {damage}");
            None
        }
        Err(other) => panic!("{what}: {other}"),
    }
}

/// A wrong byte, or a missing end, in each block.
fn each_block(bytes: &[u8], mut check: impl FnMut(&[u8], &str)) {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for start in (0..bytes.len()).step_by(BLOCK) {
        let end = bytes.len().min(start + BLOCK);
        let used: Vec<usize> = (start..end).filter(|&at| bytes[at] != 0).collect();
        let mut places = Vec::new();
        // Most blocks are free.
        if used.is_empty() && rng.next_u32().is_multiple_of(8) {
            places.push(start + rng.next_u32() as usize % (end - start));
        }
        if !used.is_empty() {
            places.extend((0..2).map(|_| used[rng.next_u32() as usize % used.len()]));
        }
        for &at in &places {
            let mut flipped = bytes.to_vec();
            flipped[at] ^= 1 << (rng.next_u32() % 8);
            check(&flipped, &format!("byte {at}"));
        }
        if !places.is_empty() {
            check(&bytes[..start], &format!("cut at {start}"));
        }
    }
}

#[test]
fn a_closed_database_with_damage_anywhere_is_refused_or_holds_all() {
    let bytes = database(true);
    assert_eq!(look(&bytes, "whole"), Some(Some(10)));
    let mut refused = 0;
    each_block(&bytes, |damaged, what| match look(damaged, what) {
        None => refused += 1,
        // Nothing was ever stored on an empty medium; an empty file is refused, see `folder`.
        Some(None) if damaged.is_empty() => {}
        Some(found) => assert_eq!(found, Some(10), "{what}"),
    });
    assert!(refused > 20, "{refused}");
}

/// A damaged last call cannot be distinguished from a call that a crash has cut off.
#[test]
fn after_a_crash_a_database_with_damage_anywhere_is_refused_or_holds_all_but_the_last_call() {
    let bytes = database(false);
    assert_eq!(look(&bytes, "whole"), Some(Some(10)));
    let mut refused = 0;
    each_block(&bytes, |damaged, what| match look(damaged, what) {
        None => refused += 1,
        Some(None) if damaged.is_empty() => {}
        Some(found) => assert!(found == Some(10) || found == Some(8), "{what}: {found:?}"),
    });
    assert!(refused > 20, "{refused}");
}

#[test]
fn a_medium_without_a_database_is_foreign() {
    for bytes in [b"a text that somebody needs".as_slice(), &[0; 8_192]] {
        let refused = open(Disk::of(bytes)).map(drop).unwrap_err();
        assert!(
            matches!(refused, StoreError::Damage(Damage::Foreign(_))),
            "{refused}"
        );
    }
}

/// The database would make lists for that many pages before it compares a checksum.
#[test]
fn a_header_with_larger_regions_than_there_are_is_refused_at_once() {
    for is_closed in [true, false] {
        let mut bytes = database(is_closed);
        let pages = u32::from_le_bytes(bytes[20..24].try_into().unwrap());
        assert_eq!(pages, 1 << 20);
        for bit in [0, 21, 25, 31] {
            bytes[20..24].copy_from_slice(&(pages | 1 << bit).to_le_bytes());
            assert_eq!(look(&bytes, "pages of a region"), None);
        }
    }
}

/// Without a base nothing is found, and the medium still belongs to its program.
#[test]
fn writes_before_the_first_base_leave_a_database_of_the_program() {
    for appends in [false, true] {
        let medium = Disk::default();
        let (mut store, _) = Store::<Vec<u64>, u64>::on(medium.clone(), SCHEMA).unwrap();
        if appends {
            store.append(&[0]).unwrap();
        } else {
            let beside = TableDefinition::<u64, u64>::new("selvedge test: beside");
            let done = store.transact(|txn| {
                txn.open_table(beside)?.insert(0, 7)?;
                Ok(())
            });
            done.unwrap();
        }
        drop(store);
        let (_, found) = Store::<Vec<u64>, u64>::on(medium, SCHEMA).unwrap();
        assert_eq!(found, None);
    }
}

/// A schema under which a base or facts would be lost, or the lock of the folder would be the database.
#[test]
fn a_schema_that_cannot_work_is_refused() {
    for (schema, why) in [
        (Schema { base: "", ..SCHEMA }, "base"),
        (
            Schema {
                facts: "",
                ..SCHEMA
            },
            "facts",
        ),
        (
            Schema {
                facts: SCHEMA.base,
                ..SCHEMA
            },
            "facts",
        ),
        (Schema { file: "", ..SCHEMA }, "file"),
        (
            Schema {
                file: "lock",
                ..SCHEMA
            },
            "file",
        ),
        (
            Schema {
                file: "../other",
                ..SCHEMA
            },
            "file",
        ),
    ] {
        let refused = Store::<Vec<u64>, u64>::on(Disk::default(), schema).unwrap_err();
        assert!(
            matches!(refused, StoreError::Schema(it) if it == why),
            "{refused}"
        );
        let dir = std::env::temp_dir().join("selvedge-store-no-schema");
        let opened = Memory::Kept.open::<u64, u64>(&dir, schema, NodeId(1));
        assert!(matches!(opened, Err(StoreError::Schema(it)) if it == why));
    }
}
