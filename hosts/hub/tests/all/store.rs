//! The folder of a home: a fault in it is reported, and it stays unchanged.

use core::time::Duration;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use std::{fs, thread};

use chacha20::ChaCha12Rng;
use chacha20::rand_core::SeedableRng as _;
use selvedge_core::{Span, Time};
use selvedge_hub::device::Report;
use selvedge_hub::house::{Happening, House, Moment};
use selvedge_hub::store::{Found, Store, StoreError};
use selvedge_routine::file::Home;
use selvedge_safehome::Config;
use selvedge_store::Damage;
use selvedge_store::redb::{Database, TableDefinition};

use crate::program::Hub;
use crate::support::{Dir, HOME};

const NOW: Moment = Moment {
    now: Time::ZERO,
    wall: 5,
};

fn house(home: &Home) -> House {
    let rng = ChaCha12Rng::seed_from_u64(7);
    House::new(home, Config::default(), |_| Span::ZERO, &[], None, rng, NOW).unwrap()
}

/// A process that another test is about to start may hold the lock for a moment more.
fn open_again(dir: &Path) -> (Store, Found) {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        match Store::open(dir) {
            Err(StoreError::InUse(_)) if Instant::now() < until => {
                thread::sleep(Duration::from_millis(10));
            }
            opened => return opened.unwrap(),
        }
    }
}

#[test]
fn what_is_stored_is_found_again_however_many_steps_there_are() {
    let dir = Dir::new("steps");
    let home = Home::read(HOME.as_bytes()).unwrap();
    let mut house = house(&home);
    let (mut store, found) = Store::open(dir.path()).unwrap();
    assert!(found.memory.is_none());
    store
        .begin(&home.catalogue, &house.take_changes(), house.saved())
        .unwrap();
    let mut runs = BTreeMap::new();
    for nth in 0..1_100 {
        let id = house.run("light", NOW).unwrap();
        house.cancel(id, NOW).unwrap();
        let changes = house.take_changes();
        runs.extend(changes.runs.clone());
        changes
            .forgotten
            .iter()
            .for_each(|it| drop(runs.remove(it)));
        store.write(&changes, house.saved()).unwrap();
        if nth % 275 != 0 {
            continue;
        }
        drop(store);
        let found;
        (store, found) = open_again(dir.path());
        assert_eq!(found.catalogue, home.catalogue);
        let memory = found.memory.unwrap();
        let folded = memory
            .steps
            .into_iter()
            .try_fold(memory.base, selvedge_safehome::Saved::apply);
        assert_eq!(folded.unwrap(), *house.saved());
        assert_eq!(memory.runs, runs);
    }
}

#[test]
fn a_folder_is_used_by_one_process() {
    let dir = Dir::new("one");
    let _first = Store::open(dir.path()).unwrap();
    assert!(matches!(Store::open(dir.path()), Err(StoreError::InUse(_))));
}

#[test]
fn what_cannot_be_used_is_named_and_left_as_it_is() {
    let home = Home::read(HOME.as_bytes()).unwrap();
    let whole = Dir::new("whole");
    let mut house = house(&home);
    let (mut store, _) = Store::open(whole.path()).unwrap();
    store
        .begin(&home.catalogue, &house.take_changes(), house.saved())
        .unwrap();
    drop(store);
    let file = fs::read(whole.path().join("hub.redb")).unwrap();

    let refused = |name: &str, bytes: &[u8]| {
        let dir = Dir::new(name);
        let path = dir.path().join("hub.redb");
        fs::write(&path, bytes).unwrap();
        let why = Store::open(dir.path()).map(|_| ()).unwrap_err();
        assert_eq!(fs::read(&path).unwrap(), bytes, "{name}: {why}");
        why
    };
    let cut = file.get(..file.len() / 2).unwrap();
    assert!(matches!(
        refused("cut", cut),
        StoreError::Damage(Damage::Contents { .. })
    ));
    assert!(matches!(
        refused("text", b"no database"),
        StoreError::Damage(Damage::Foreign(_))
    ));
    let mut turned = 0;
    for at in (0..file.len()).step_by(file.len() / 40) {
        let mut bytes = file.clone();
        bytes[at] ^= 0x55;
        let dir = Dir::new("turned");
        let path = dir.path().join("hub.redb");
        fs::write(&path, &bytes).unwrap();
        match Store::open(dir.path()) {
            // A byte without a meaning may differ.
            Ok((_, found)) => {
                let memory = found.memory.unwrap();
                assert_eq!(memory.base, *house.saved(), "byte {at}");
                assert_eq!(found.catalogue, home.catalogue, "byte {at}");
            }
            Err(_) => {
                turned += 1;
                assert_eq!(fs::read(&path).unwrap(), bytes, "byte {at}");
            }
        }
    }
    assert!(turned > 0);

    let other = Dir::new("other");
    let path = other.path().join("hub.redb");
    for (name, entry, notified) in [
        ("somebody's", 1_u16, "another program"),
        (
            "selvedge hub: base",
            3,
            "format 3, and this program knows up to 2",
        ),
        (
            "selvedge hub: base",
            1,
            "format 1, of an earlier version, and this program reads 2",
        ),
    ] {
        fs::remove_file(&path).ok();
        let database = Database::create(&path).unwrap();
        let txn = database.begin_write().unwrap();
        let bytes = postcard::to_allocvec(&entry).unwrap();
        let table: TableDefinition<'_, (), &[u8]> = TableDefinition::new(name);
        txn.open_table(table)
            .unwrap()
            .insert((), bytes.as_slice())
            .unwrap();
        txn.commit().unwrap();
        drop(database);
        let before = fs::read(&path).unwrap();
        let why = Store::open(other.path())
            .map(|_| ())
            .unwrap_err()
            .to_string();
        assert!(why.contains(notified), "{why}");
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}

#[test]
fn a_database_that_was_half_made_is_made_anew() {
    let dir = Dir::new("half");
    fs::write(dir.path().join("hub.redb.new"), [0; 100]).unwrap();
    let (_store, found) = Store::open(dir.path()).unwrap();
    assert!(found.memory.is_none());
    assert!(!dir.path().join("hub.redb.new").exists());
}

#[test]
fn the_hub_in_whole_takes_the_place_of_more_than_a_thousand_steps() {
    let dir = Dir::new("thousand");
    let home = Home::read(HOME.as_bytes()).unwrap();
    let mut house = house(&home);
    let (mut store, _) = Store::open(dir.path()).unwrap();
    store
        .begin(&home.catalogue, &house.take_changes(), house.saved())
        .unwrap();
    let lamp = home.catalogue.id("lamp").unwrap();
    let mut nth = 0;
    for (more, stored) in [(1, 1), (998, 999), (1, 1_000), (1, 0), (2, 2)] {
        for _ in 0..more {
            nth += 1;
            let report = Report::Observed(nth.into());
            house.take(Happening::Report(lamp, report), NOW);
        }
        let changes = house.take_changes();
        assert_eq!(changes.steps.len(), more);
        store.write(&changes, house.saved()).unwrap();
        drop(store);
        let found;
        (store, found) = open_again(dir.path());
        let memory = found.memory.unwrap();
        assert_eq!(memory.steps.len(), stored);
        let folded = memory
            .steps
            .into_iter()
            .try_fold(memory.base, selvedge_safehome::Saved::apply);
        assert_eq!(folded.unwrap(), *house.saved());
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let dir = Dir::new("blocked");
    let new = dir.path().join("hub.redb.new");
    fs::create_dir(&new).unwrap();
    let why = Store::open(dir.path()).map(|_| ()).unwrap_err();
    assert!(matches!(why, StoreError::Folder { .. }), "{why}");
    let file = dir.path().join("file");
    fs::write(&file, "no folder").unwrap();
    let why = Store::open(&file).map(|_| ()).unwrap_err();
    assert!(matches!(why, StoreError::Folder { .. }), "{why}");
}

/// A limit to the size of a file stands for a disk without room.
#[test]
fn a_disk_without_room_is_named_and_what_is_stored_stays() {
    let dir = Dir::new("no-room");
    let (home, state) = (dir.path().join("home.json"), dir.path().join("state"));
    fs::write(&home, HOME).unwrap();
    drop(Hub::start(dir.path()));
    let stored = || open_again(&state).1;
    let before = stored().memory.unwrap();
    let limited = r#"trap '' XFSZ; ulimit -f 8; exec "$@""#;
    let output = Command::new("sh")
        .args(["-c", limited, "sh", env!("CARGO_BIN_EXE_selvedge-hub")])
        .arg(&home)
        .arg("--state")
        .arg(&state)
        .args(["--http", "127.0.0.1:0"])
        .output()
        .unwrap();
    let reported = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{reported}");
    assert!(
        reported.contains("see whether the disk is full"),
        "{reported}"
    );
    assert!(reported.contains("--state"), "{reported}");
    let after = stored().memory.unwrap();
    assert_eq!((after.base, after.runs), (before.base, before.runs));
}
