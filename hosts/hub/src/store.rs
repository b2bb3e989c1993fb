//! The hub's state, the steps since, and the runs, on a disk.

use std::collections::BTreeMap;
use std::path::Path;

use selvedge_core::NodeId;
use selvedge_routine::{Catalogue, State};
use selvedge_safehome::{Difference, RoutineId, Saved};
use selvedge_store::redb::{
    ReadTransaction, ReadableTable as _, TableDefinition, WriteTransaction,
};
use selvedge_store::{Damage, Failed, Schema};

pub use selvedge_store::StoreError;

use crate::house::{Changes, Memory, Record};

/// The format changes with the layout of the hub's state, and of routines, which are in the runs as well.
const SCHEMA: Schema = Schema {
    file: "hub.redb",
    base: "selvedge hub: base",
    facts: "selvedge hub: steps",
    format: 2,
    limit: 1_000,
};
const DEVICES: TableDefinition<'_, &str, u64> = TableDefinition::new("selvedge hub: devices");
const RUNS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("selvedge hub: runs");

/// A folder with the state of one home.
#[derive(Debug)]
pub struct Store(selvedge_store::Store<Saved<State>, Difference<State>>);

/// The contents of a folder.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The devices and their ids.
    pub catalogue: Catalogue,
    /// The memory of the house, if it was ever stored.
    pub memory: Option<Memory>,
}

impl Store {
    /// Opens the folder, or creates it.
    ///
    /// # Errors
    /// When the folder is used by another process, damaged, or of another version. Nothing is changed then.
    pub fn open(dir: &Path) -> Result<(Self, Found), StoreError> {
        let (store, found) = selvedge_store::Store::open(dir, SCHEMA)?;
        let Some(found) = found else {
            return Ok((Self(store), Found::default()));
        };
        let mut catalogue = Catalogue::new();
        for (name, id) in store.read(devices)? {
            let (file, found) = (
                store.file().into(),
                format!("the device {name:?} or its id is stored twice"),
            );
            let taken = catalogue.assign(&name, NodeId(id));
            taken.map_err(|_| Damage::Contents { file, found })?;
        }
        let mut runs: BTreeMap<RoutineId, Record> = BTreeMap::new();
        for (id, run) in store.read(runs_of)? {
            let file = store.file().into();
            let run =
                postcard::from_bytes(&run).map_err(|source| Damage::Entry { file, source })?;
            runs.insert(RoutineId(id), run);
        }
        let memory = Some(Memory {
            base: found.base,
            steps: found.facts,
            runs,
        });
        Ok((Self(store), Found { catalogue, memory }))
    }

    /// Stores the list of devices, the whole hub, and the runs that have changed. All is on the disk when
    /// this returns.
    ///
    /// # Errors
    /// When the disk or the database fails.
    pub fn begin(
        &mut self,
        catalogue: &Catalogue,
        changes: &Changes,
        whole: &Saved<State>,
    ) -> Result<(), StoreError> {
        let runs = self.runs(changes)?;
        self.0.rebase(whole, |txn| {
            txn.delete_table(DEVICES)?;
            let mut devices = txn.open_table(DEVICES)?;
            for (id, name) in catalogue.iter() {
                devices.insert(name, id.0)?;
            }
            put_runs(txn, &runs, changes)
        })
    }

    /// Stores the changes, and sometimes the whole hub in place of all steps. All is on the disk when this
    /// returns.
    ///
    /// # Errors
    /// When the disk or the database fails.
    pub fn write(&mut self, changes: &Changes, whole: &Saved<State>) -> Result<(), StoreError> {
        let runs = self.runs(changes)?;
        let more = |txn: &WriteTransaction| put_runs(txn, &runs, changes);
        self.0.write(&changes.steps, || whole, more)
    }

    fn runs(&self, changes: &Changes) -> Result<Vec<(u64, Vec<u8>)>, Damage> {
        let runs = changes.runs.iter();
        let runs = runs.map(|(id, it)| Ok((id.0, postcard::to_allocvec(it)?)));
        let file = || self.0.file().into();
        runs.collect::<Result<_, _>>()
            .map_err(|source| Damage::Entry {
                file: file(),
                source,
            })
    }
}

fn put_runs(
    txn: &WriteTransaction,
    runs: &[(u64, Vec<u8>)],
    changes: &Changes,
) -> Result<(), Failed> {
    let mut table = txn.open_table(RUNS)?;
    for (id, run) in runs {
        table.insert(id, run.as_slice())?;
    }
    for id in &changes.forgotten {
        table.remove(id.0)?;
    }
    Ok(())
}

fn devices(txn: &ReadTransaction) -> Result<Vec<(String, u64)>, Failed> {
    let mut devices = Vec::new();
    for entry in txn.open_table(DEVICES)?.iter()? {
        let (name, id) = entry?;
        devices.push((name.value().into(), id.value()));
    }
    Ok(devices)
}

fn runs_of(txn: &ReadTransaction) -> Result<Vec<(u64, Vec<u8>)>, Failed> {
    let mut runs = Vec::new();
    for entry in txn.open_table(RUNS)?.iter()? {
        let (id, run) = entry?;
        runs.push((id.value(), run.value().to_vec()));
    }
    Ok(runs)
}
