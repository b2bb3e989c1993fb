//! Stores in folders.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use selvedge_core::{Member, NodeId};
use selvedge_store::redb::{Database, TableDefinition};
use selvedge_store::{Beginning, Damage, Found, Memory, Opened, Schema, Store, StoreError};

use crate::log::{Log, SCHEMA, begin, count, write};

/// A folder that is removed at the end.
struct Dir(PathBuf);

impl Dir {
    fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("selvedge-store-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn open(&self) -> Result<(Store<Vec<u64>, u64>, Log), StoreError> {
        self.open_as(SCHEMA)
    }

    fn open_as(&self, schema: Schema) -> Result<(Store<Vec<u64>, u64>, Log), StoreError> {
        let (store, found) = Store::open(&self.0, schema)?;
        Ok((store, found.map(count)))
    }

    fn file(&self) -> PathBuf {
        self.0.join(SCHEMA.file)
    }

    /// The place of a database while it is created.
    fn new_file(&self) -> PathBuf {
        self.0.join("test.redb.new")
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

fn damage(opened: Result<(Store<Vec<u64>, u64>, Log), StoreError>) -> Damage {
    match opened {
        Err(StoreError::Damage(damage)) => damage,
        other => panic!("{:?}", other.map(|it| it.1)),
    }
}

#[test]
fn what_is_stored_is_found_again_and_facts_give_way_to_a_base_beyond_the_limit() {
    let dir = Dir::new();
    let (mut store, found) = dir.open().unwrap();
    assert_eq!(found, None);
    begin(&mut store, 0).unwrap();
    let mut stored = 0;
    for (more, facts) in [(1, 1), (6, 7), (1, 0), (2, 2), (0, 2), (6, 0), (9, 0)] {
        write(&mut store, stored..stored + more).unwrap();
        stored += more;
        drop(store);
        let (_, found) = Store::<Vec<u64>, u64>::open(&dir.0, SCHEMA).unwrap();
        assert_eq!(found.unwrap().facts.len(), facts, "after {stored}");
        let found;
        (store, found) = dir.open().unwrap();
        assert_eq!(found, Some(stored));
    }
}

#[test]
fn a_folder_is_used_by_one_at_a_time() {
    let dir = Dir::new();
    let first = dir.open().unwrap();
    let second = dir.open().map(drop).unwrap_err();
    assert!(matches!(second, StoreError::InUse(_)), "{second}");
    // Also without the lock file, as with older versions of some programs.
    drop(first);
    let _database = Database::open(dir.file()).unwrap();
    let second = dir.open().map(drop).unwrap_err();
    assert!(matches!(second, StoreError::InUse(_)), "{second}");
}

#[test]
fn a_database_that_was_half_made_is_made_again() {
    let dir = Dir::new();
    fs::create_dir(&dir.0).unwrap();
    let new = dir.new_file();
    fs::write(&new, [0; 100]).unwrap();
    assert_eq!(dir.open().unwrap().1, None);
    assert!(!new.exists());
}

#[test]
fn what_cannot_be_used_is_named_and_left_as_it_is() {
    let dir = Dir::new();
    let (mut store, _) = dir.open().unwrap();
    begin(&mut store, 3).unwrap();
    drop(store);
    let whole = fs::read(dir.file()).unwrap();
    let refused = |bytes: &[u8]| {
        fs::write(dir.file(), bytes).unwrap();
        let why = damage(dir.open());
        assert_eq!(fs::read(dir.file()).unwrap(), bytes, "{why}");
        why
    };
    let cut = refused(&whole[..whole.len() / 2]);
    assert!(matches!(cut, Damage::Contents { .. }), "{cut}");
    for bytes in [b"no database".as_slice(), b""] {
        let foreign = refused(bytes);
        assert!(matches!(foreign, Damage::Foreign(_)), "{foreign}");
    }
    fs::write(dir.file(), &whole).unwrap();
    assert_eq!(dir.open().unwrap().1, Some(3));
    for (format, notified) in [
        (1, "has format 2, and this program knows up to 1"),
        (
            3,
            "has format 2, of an earlier version, and this program reads 3",
        ),
    ] {
        let why = damage(dir.open_as(Schema { format, ..SCHEMA })).to_string();
        assert!(why.contains(notified), "{why}");
    }
    let base = "selvedge other: base";
    let other = damage(dir.open_as(Schema { base, ..SCHEMA }));
    assert_eq!(other, Damage::Foreign(dir.file()));
    // The type of an entry differs from the program's.
    let other = Store::<[u64; 9], u64>::open(&dir.0, SCHEMA);
    let other = other.map(drop).unwrap_err();
    assert!(
        matches!(other, StoreError::Damage(Damage::Entry { .. })),
        "{other}"
    );
    assert_eq!(dir.open().unwrap().1, Some(3));
}

#[test]
fn a_table_of_another_type_under_the_same_name_is_reported() {
    let dir = Dir::new();
    fs::create_dir(&dir.0).unwrap();
    let database = Database::create(dir.file()).unwrap();
    let txn = database.begin_write().unwrap();
    let table = TableDefinition::<u8, u8>::new(SCHEMA.base);
    txn.open_table(table).unwrap();
    txn.commit().unwrap();
    drop(database);
    let why = dir.open().map(drop).unwrap_err();
    assert!(matches!(why, StoreError::Damage(_)), "{why}");
}

/// Opens the folder of node 1.
fn begin_life(dir: &Dir, memory: Memory) -> Result<Opened<u8, u8>, StoreError> {
    memory.open(&dir.0, SCHEMA, NodeId(1))
}

#[test]
fn a_life_begins_as_the_user_says_or_not_at_all() {
    let dir = Dir::new();
    let refused = |memory| begin_life(&dir, memory).map(drop).unwrap_err();
    assert!(matches!(refused(Memory::Kept), StoreError::NothingStored));
    assert!(!dir.0.exists(), "a refused start leaves nothing behind");
    let (mut store, first) = begin_life(&dir, Memory::NeverStarted).unwrap();
    let me = Member::new(1, 0);
    assert_eq!(first, Beginning::First(me));
    store.rebase(&(me, 7_u8), |_| Ok(())).unwrap();
    store.write(&[8_u8], || (me, 7_u8), |_| Ok(())).unwrap();
    drop(store);
    for memory in [Memory::NeverStarted, Memory::Lost] {
        assert!(matches!(refused(memory), StoreError::AlreadyStored));
    }
    let (base, facts) = (7, vec![8]);
    let later = Beginning::Later(Member::new(1, 1), Found { base, facts });
    assert_eq!(begin_life(&dir, Memory::Kept).unwrap().1, later);
    let (asked, found) = (NodeId(2), NodeId(1));
    let other = Memory::Kept.open::<u8, u8>(&dir.0, SCHEMA, asked);
    let other = other.map(drop).unwrap_err();
    assert!(
        matches!(other, StoreError::OtherNode { asked: a, found: f } if (a, f) == (asked, found))
    );
    let Beginning::Lost(me) = begin_life(&Dir::new(), Memory::Lost).unwrap().1 else {
        panic!("its memory is lost");
    };
    assert!(me.supersedes(Member::new(1, 1_000_000)));
}

#[test]
fn a_damaged_file_of_a_node_is_put_aside() {
    let dir = Dir::new();
    let (mut store, _) = begin_life(&dir, Memory::NeverStarted).unwrap();
    store
        .rebase(&(Member::new(1, 0), 7_u8), |_| Ok(()))
        .unwrap();
    drop(store);
    let mut damaged = fs::read(dir.file()).unwrap();
    damaged.iter_mut().skip(4_096).for_each(|it| *it ^= 0x55);
    fs::write(dir.file(), &damaged).unwrap();
    let why = begin_life(&dir, Memory::Kept).map(drop).unwrap_err();
    assert!(matches!(why, StoreError::PutAside { .. }), "{why}");
    assert_eq!(
        fs::read(dir.file().with_extension("damaged")).unwrap(),
        damaged
    );
    let why = begin_life(&dir, Memory::Kept).map(drop).unwrap_err();
    assert!(matches!(why, StoreError::NothingStored), "{why}");
    assert!(begin_life(&dir, Memory::Lost).is_ok());
    // The first one stays where it is.
    damaged.truncate(4_095);
    fs::write(dir.file(), &damaged).unwrap();
    let why = begin_life(&dir, Memory::Kept).map(drop).unwrap_err();
    let second = dir.file().with_extension("damaged-2");
    assert!(why.to_string().contains(second.to_str().unwrap()), "{why}");
    assert_eq!(fs::read(second).unwrap(), damaged);
    assert!(dir.file().with_extension("damaged").exists());
}

#[test]
fn a_folder_is_made_with_those_above_it() {
    let dir = Dir::new();
    let below = dir.0.join("a").join("b");
    drop(Store::<Vec<u64>, u64>::open(&below, SCHEMA).unwrap());
    assert!(below.join(SCHEMA.file).exists());
    assert!(Store::<Vec<u64>, u64>::open(&below.join("."), SCHEMA).is_ok());
}

#[test]
fn a_folder_that_cannot_be_used_is_named() {
    let dir = Dir::new();
    let named = |why: StoreError, path: &Path| {
        assert!(matches!(why, StoreError::Folder { .. }), "{why}");
        assert!(
            why.to_string().contains(&path.display().to_string()),
            "{why}"
        );
    };
    // A folder at the place of the new file.
    fs::create_dir_all(dir.new_file()).unwrap();
    named(dir.open().map(drop).unwrap_err(), &dir.0);
    // A folder at the place of the file.
    fs::create_dir(dir.file()).unwrap();
    named(dir.open().map(drop).unwrap_err(), &dir.0);
    let file = Dir::new();
    fs::write(&file.0, "no folder").unwrap();
    named(file.open().map(drop).unwrap_err(), &file.0);
    fs::remove_file(&file.0).unwrap();
}

/// The machine's base is stored with its first facts, also where the host stored none before.
#[test]
fn facts_before_a_base_are_found_again() {
    let dir = Dir::new();
    let (mut store, found) = dir.open().unwrap();
    assert_eq!(found, None);
    assert!(store.is_due(1));
    store.write(&[0_u64], || vec![0_u64], |_| Ok(())).unwrap();
    store
        .write(&[1_u64], || vec![0_u64, 1], |_| Ok(()))
        .unwrap();
    drop(store);
    assert_eq!(dir.open().unwrap().1, Some(2));
    let (_, found) = Store::<Vec<u64>, u64>::open(&dir.0, SCHEMA).unwrap();
    assert_eq!(found.unwrap().facts, [1]);
}

/// The disk with the database may be absent: this is no first start.
#[cfg(unix)]
#[test]
fn a_link_to_a_file_that_is_absent_is_refused_and_left() {
    let dir = Dir::new();
    fs::create_dir_all(&dir.0).unwrap();
    for target in ["absent/test.redb", SCHEMA.file] {
        std::os::unix::fs::symlink(target, dir.file()).unwrap();
        let refused = dir.open().map(|it| it.1).unwrap_err();
        assert!(matches!(refused, StoreError::Folder { .. }), "{refused}");
        assert_eq!(fs::read_link(dir.file()).unwrap(), Path::new(target));
        fs::remove_file(dir.file()).unwrap();
    }
}

#[test]
fn a_file_in_place_of_the_lock_is_left_as_it_is() {
    let dir = Dir::new();
    fs::create_dir_all(&dir.0).unwrap();
    fs::write(dir.0.join("lock"), "another program's").unwrap();
    drop(dir.open().unwrap());
    let left = fs::read_to_string(dir.0.join("lock")).unwrap();
    assert_eq!(left, "another program's");
}
