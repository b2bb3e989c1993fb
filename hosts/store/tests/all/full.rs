//! A full disk.

use selvedge_store::StoreError;

use crate::disk::Disk;
use crate::log::{begin, open, write};

/// Stores up to 30 numbers, three at a time, and returns the number of them.
fn fill(disk: &Disk) -> (u64, Option<StoreError>) {
    let mut stored = 0;
    let mut work = || {
        let (mut store, found) = open(disk.clone())?;
        stored = found.unwrap_or_default();
        begin(&mut store, stored)?;
        while stored < 30 {
            write(&mut store, stored..stored + 3)?;
            stored += 3;
        }
        Ok(())
    };
    let ended = work();
    (stored, ended.err())
}

#[test]
fn a_full_disk_is_reported_and_loses_nothing() {
    let (mut reported, mut room) = (0, 0);
    loop {
        let disk = Disk::default();
        drop(open(disk.clone()).unwrap());
        disk.fill_after(Some(room));
        let (stored, why) = fill(&disk);
        disk.fill_after(None);
        let Some(why) = why else { break };
        assert!(matches!(why, StoreError::Database { .. }), "{why}");
        assert!(why.to_string().contains("see whether the disk is full"));
        reported += 1;
        // At least the stored numbers; the last write may be there, too.
        let (_, found) = open(disk.clone()).unwrap();
        let found = found.unwrap_or_default();
        assert!(
            (stored..=stored + 3).contains(&found),
            "room {room}: {stored}, {found}"
        );
        assert_eq!(fill(&disk).0, 30, "room {room}");
        room += 1;
    }
    assert!(reported > 20, "{reported}");
}

#[test]
fn after_a_failure_nothing_is_reported_as_stored() {
    let disk = Disk::default();
    let (mut store, _) = open(disk.clone()).unwrap();
    begin(&mut store, 0).unwrap();
    write(&mut store, 0..2).unwrap();
    disk.fill_after(Some(0));
    write(&mut store, 2..4).unwrap_err();
    disk.fill_after(None);
    let later = write(&mut store, 2..4);
    drop(store);
    let (_, found) = open(disk).unwrap();
    let found = found.unwrap();
    assert!(
        found == 4 || later.is_err() && found == 2,
        "{found}: {later:?}"
    );
}
