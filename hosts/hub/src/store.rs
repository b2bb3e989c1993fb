//! What a hub must not forget, in an embedded database: the hub's state, the steps since, and the runs.

#![allow(
    clippy::result_large_err,
    reason = "the database's error is large, and ends the process"
)]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::panic::{self, UnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::thread;

use redb::{
    Database, Durability, ReadableTable, TableDefinition, TableHandle as _, WriteTransaction,
};
use rustix::fs::{FlockOperation, flock};
use selvedge_core::NodeId;
use selvedge_routine::{Catalogue, State};
use selvedge_safehome::{RoutineId, Saved};
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::house::{Changes, Memory, Record};

/// The version of what is stored. It changes with the layout of the hub's state, and of routines, which are
/// in the runs as well.
const FORMAT: u16 = 2;
/// One entry: the version, and then the hub in whole.
const BASE: TableDefinition<'_, (), &[u8]> = TableDefinition::new("selvedge hub: base");
const STEPS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("selvedge hub: steps");
const DEVICES: TableDefinition<'_, &str, u64> = TableDefinition::new("selvedge hub: devices");
const RUNS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("selvedge hub: runs");
/// After so many steps the hub in whole takes their place.
const STEPS_LIMIT: u64 = 1_000;

/// Why what is stored cannot be used. Nothing was changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The folder cannot be used.
    #[error(
        "the folder {dir}: {source}: see whether its disk has room, or name another one with --state"
    )]
    Folder {
        /// Which one.
        dir: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another process has it.
    #[error("another hub runs with the folder {0}: stop it, or name another folder with --state")]
    InUse(PathBuf),
    /// The database cannot do what it is asked.
    #[error("the database in {dir}: {source}: see whether the disk is full")]
    Database {
        /// In which folder.
        dir: PathBuf,
        /// Why.
        source: Box<redb::Error>,
    },
    /// What is stored is damaged.
    #[error("{0} is damaged, and was left as it is: put it aside, and begin without it")]
    Damaged(PathBuf),
    /// An entry is damaged though its checksums are right.
    #[error("an entry in {0} cannot be read ({1}): put the folder aside, and begin without it")]
    Entry(PathBuf, postcard::Error),
    /// It was written by a later version.
    #[error(
        "{dir} has format {found}, and this program knows up to {FORMAT}: run a later version of it"
    )]
    Newer {
        /// In which folder.
        dir: PathBuf,
        /// Which format.
        found: u16,
    },
    /// It was written by an earlier version, whose entries would be misread.
    #[error(
        "{dir} has format {found}, of an earlier version, and this program reads {FORMAT}: let all runs end \
         under the earlier version, put the folder aside, and begin without it"
    )]
    Older {
        /// In which folder.
        dir: PathBuf,
        /// Which format.
        found: u16,
    },
    /// It was written by another program.
    #[error("{0} is the database of another program: name another folder with --state")]
    Foreign(PathBuf),
}

/// A folder with the state of one home.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
    database: Database,
    steps: u64,
    /// While it is open, no other process uses the folder.
    _lock: File,
}

/// What was found in a folder.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The devices and their ids.
    pub catalogue: Catalogue,
    /// What the house remembers, if it was ever stored.
    pub memory: Option<Memory>,
}

impl Store {
    /// Opens the folder, or makes it.
    ///
    /// # Errors
    /// When the folder is used by another process, damaged, or of another version. Nothing was changed then.
    pub fn open(dir: &Path) -> Result<(Self, Found), StoreError> {
        let folder = |source| StoreError::Folder {
            dir: dir.into(),
            source,
        };
        fs::create_dir_all(dir).map_err(folder)?;
        let lock = File::create(dir.join("lock")).map_err(folder)?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(StoreError::InUse(dir.into()));
        }
        let path = dir.join("hub.redb");
        if path.exists() {
            look_at_copy(dir, &path)?;
        }
        let failed = |source: redb::Error| StoreError::Database {
            dir: dir.into(),
            source: Box::new(source),
        };
        if !path.exists() {
            // A database that is half made is not told from another program's file, so it has another name.
            let new = dir.join("hub.redb.new");
            fs::remove_file(&new)
                .or_else(unless_missing)
                .map_err(folder)?;
            make(&new).map_err(failed)?;
            fs::rename(&new, &path).map_err(folder)?;
            // The name is in the folder, which is stored by itself.
            let dir = File::open(dir).map_err(folder)?;
            dir.sync_all().map_err(folder)?;
        }
        let database = Database::open(&path).map_err(|it| failed(it.into()))?;
        let found = read(&database, dir)?;
        let steps = found.memory.as_ref().map_or(0, |it| it.steps.len() as u64);
        let store = Self {
            dir: dir.into(),
            database,
            steps,
            _lock: lock,
        };
        Ok((store, found))
    }

    /// Stores which devices there are, the hub in whole, and runs that changed before it was as it is. It is on
    /// the disk when this returns.
    ///
    /// # Errors
    /// When the disk or the database fails.
    pub fn begin(
        &mut self,
        catalogue: &Catalogue,
        changes: &Changes,
        whole: &Saved<State>,
    ) -> Result<(), StoreError> {
        let base = self.entry(&(FORMAT, whole))?;
        let runs = self.runs(changes)?;
        let stored = || {
            let mut txn = self.database.begin_write()?;
            txn.set_durability(Durability::Immediate);
            txn.delete_table(DEVICES)?;
            let mut devices = txn.open_table(DEVICES)?;
            for (id, name) in catalogue.iter() {
                devices.insert(name, id.0)?;
            }
            drop(devices);
            txn.open_table(BASE)?.insert((), base.as_slice())?;
            put_runs(&txn, &runs, changes)?;
            txn.delete_table(STEPS)?;
            Ok::<_, redb::Error>(txn.commit()?)
        };
        let stored = stored();
        stored.map_err(|it| self.failed(it))?;
        self.steps = 0;
        Ok(())
    }

    /// Stores what changed, and now and then the hub in whole in place of all steps. It is on the disk when
    /// this returns.
    ///
    /// # Errors
    /// When the disk or the database fails.
    pub fn write(&mut self, changes: &Changes, whole: &Saved<State>) -> Result<(), StoreError> {
        let steps = changes.steps.iter().map(|it| self.entry(it));
        let steps = steps.collect::<Result<Vec<_>, _>>()?;
        let runs = self.runs(changes)?;
        let rebase = self.steps + steps.len() as u64 > STEPS_LIMIT;
        let base = if rebase {
            Some(self.entry(&(FORMAT, whole))?)
        } else {
            None
        };
        let stored = || {
            let mut txn = self.database.begin_write()?;
            txn.set_durability(Durability::Immediate);
            put_runs(&txn, &runs, changes)?;
            if let Some(base) = &base {
                txn.open_table(BASE)?.insert((), base.as_slice())?;
                txn.delete_table(STEPS)?;
            } else {
                let mut table = txn.open_table(STEPS)?;
                for (nth, step) in (self.steps..).zip(&steps) {
                    table.insert(nth, step.as_slice())?;
                }
            }
            Ok::<_, redb::Error>(txn.commit()?)
        };
        let stored = stored();
        stored.map_err(|it| self.failed(it))?;
        self.steps = if rebase {
            0
        } else {
            self.steps + steps.len() as u64
        };
        Ok(())
    }

    fn runs(&self, changes: &Changes) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
        let runs = changes.runs.iter();
        runs.map(|(id, it)| Ok((id.0, self.entry(it)?))).collect()
    }

    fn entry(&self, it: &impl Serialize) -> Result<Vec<u8>, StoreError> {
        postcard::to_allocvec(it).map_err(|it| StoreError::Entry(self.dir.clone(), it))
    }

    fn failed(&self, source: redb::Error) -> StoreError {
        StoreError::Database {
            dir: self.dir.clone(),
            source: Box::new(source),
        }
    }
}

fn put_runs(
    txn: &WriteTransaction,
    runs: &[(u64, Vec<u8>)],
    changes: &Changes,
) -> Result<(), redb::Error> {
    let mut table = txn.open_table(RUNS)?;
    for (id, run) in runs {
        table.insert(id, run.as_slice())?;
    }
    for id in &changes.forgotten {
        table.remove(id.0)?;
    }
    Ok(())
}

fn unless_missing(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound {
        return Ok(());
    }
    Err(error)
}

/// Makes a database in which nothing is stored. It is on the disk when this returns.
fn make(path: &Path) -> Result<(), redb::Error> {
    let database = Database::create(path)?;
    let mut txn = database.begin_write()?;
    txn.set_durability(Durability::Immediate);
    txn.open_table(BASE)?;
    Ok(txn.commit()?)
}

/// Looks whether a database is whole, ours and of a known version. Opening one may mend it, so a copy is
/// looked at, and one that cannot be used stays as it is.
fn look_at_copy(dir: &Path, path: &Path) -> Result<(), StoreError> {
    let copy = dir.join("hub.redb.copy");
    let folder = |source| StoreError::Folder {
        dir: dir.into(),
        source,
    };
    if let Err(why) = fs::copy(path, &copy) {
        // The part that is there takes the last room of a disk that is full.
        fs::remove_file(&copy).ok();
        return Err(folder(why));
    }
    // The database asserts some of what it finds in a file: a panic is damage as well, and is told as that.
    let looked = quietly(|| {
        let mut database = Database::open(&copy)?;
        if !database.check_integrity()? {
            return Err(redb::Error::Corrupted("its checksums differ".into()));
        }
        Ok(read(&database, dir))
    });
    let looked = match looked {
        Ok(Ok(found)) => found.map(drop),
        Ok(Err(redb::Error::Io(error))) if error.kind() == io::ErrorKind::InvalidData => {
            Err(StoreError::Foreign(path.into()))
        }
        Ok(Err(redb::Error::Corrupted(_))) | Err(_) => Err(StoreError::Damaged(path.into())),
        // The disk is full, or the file cannot be read: nothing is known of the database.
        Ok(Err(source)) => Err(StoreError::Database {
            dir: dir.into(),
            source: Box::new(source),
        }),
    };
    fs::remove_file(&copy).map_err(folder)?;
    looked
}

/// Does what may panic, of which nothing is said. What other threads say meanwhile stays said.
fn quietly<T>(work: impl FnOnce() -> T + UnwindSafe) -> thread::Result<T> {
    static HOOK: Once = Once::new();
    thread_local! {
        static IS_QUIET: Cell<bool> = const { Cell::new(false) };
    }
    // Once: what two threads put in its place in turn would not be what they find afterwards.
    HOOK.call_once(|| {
        let loud = panic::take_hook();
        panic::set_hook(Box::new(move |it| {
            if !IS_QUIET.get() {
                loud(it);
            }
        }));
    });
    IS_QUIET.set(true);
    let done = catch_unwind(work);
    IS_QUIET.set(false);
    done
}

fn read(database: &Database, dir: &Path) -> Result<Found, StoreError> {
    let raw = raw(database).map_err(|source| StoreError::Database {
        dir: dir.into(),
        source: Box::new(source),
    })?;
    let Some(raw) = raw else {
        return Err(StoreError::Foreign(dir.into()));
    };
    let Some(base) = raw.base else {
        return Ok(Found::default());
    };
    let entry = |it| StoreError::Entry(dir.into(), it);
    let (found, base) = postcard::take_from_bytes::<u16>(&base).map_err(entry)?;
    if found > FORMAT {
        let dir = dir.into();
        return Err(StoreError::Newer { dir, found });
    }
    if found < FORMAT {
        let dir = dir.into();
        return Err(StoreError::Older { dir, found });
    }
    let mut catalogue = Catalogue::new();
    for (name, id) in raw.devices {
        let taken = catalogue.assign(&name, NodeId(id));
        taken.map_err(|_| StoreError::Damaged(dir.into()))?;
    }
    let mut runs: BTreeMap<RoutineId, Record> = BTreeMap::new();
    for (id, run) in raw.runs {
        runs.insert(RoutineId(id), parse(&run, dir)?);
    }
    let steps = raw.steps.iter().map(|it| parse(it, dir));
    let memory = Memory {
        base: parse(base, dir)?,
        steps: steps.collect::<Result<_, _>>()?,
        runs,
    };
    let memory = Some(memory);
    Ok(Found { catalogue, memory })
}

fn parse<T: DeserializeOwned>(bytes: &[u8], dir: &Path) -> Result<T, StoreError> {
    postcard::from_bytes(bytes).map_err(|it| StoreError::Entry(dir.into(), it))
}

#[derive(Default)]
struct Raw {
    base: Option<Vec<u8>>,
    steps: Vec<Vec<u8>>,
    devices: Vec<(String, u64)>,
    runs: Vec<(u64, Vec<u8>)>,
}

/// What the tables hold; `None` if they are another program's.
fn raw(database: &Database) -> Result<Option<Raw>, redb::Error> {
    let txn = database.begin_read()?;
    let names: Vec<String> = txn.list_tables()?.map(|it| it.name().into()).collect();
    let mut raw = Raw::default();
    if names.is_empty() {
        return Ok(Some(raw));
    }
    let has = |name: &str| names.iter().any(|it| it == name);
    if !has(BASE.name()) {
        return Ok(None);
    }
    raw.base = txn.open_table(BASE)?.get(())?.map(|it| it.value().to_vec());
    if has(STEPS.name()) {
        for entry in txn.open_table(STEPS)?.iter()? {
            raw.steps.push(entry?.1.value().to_vec());
        }
    }
    if has(DEVICES.name()) {
        for entry in txn.open_table(DEVICES)?.iter()? {
            let (name, id) = entry?;
            raw.devices.push((name.value().into(), id.value()));
        }
    }
    if has(RUNS.name()) {
        for entry in txn.open_table(RUNS)?.iter()? {
            let (id, run) = entry?;
            raw.runs.push((id.value(), run.value().to_vec()));
        }
    }
    Ok(Some(raw))
}
