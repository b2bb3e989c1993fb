//! A gateway's base, the facts since, and modules, on a disk.

mod kept;

use std::collections::BTreeSet;
use std::path::Path;

use selvedge_core::durable::{Barrier, Durable as _};
use selvedge_core::{Effect, Member, NodeId};
use selvedge_pcm::gateway::{Config, Gateway, Reject};
use selvedge_pcm::{Library, Limits, Tables};
use selvedge_replica::{Configuration, Fact, Stored};
use selvedge_store::redb::{self, ReadTransaction, ReadableTable as _, TableDefinition};
use selvedge_store::{Beginning as Life, Failed, NodeStore, Schema, StoreError};
use thiserror::Error;

pub use selvedge_store::Memory;

use self::kept::Kept;
use crate::shelf;

const SCHEMA: Schema = Schema {
    file: "gateway.redb",
    base: "selvedge faas: base",
    facts: "selvedge faas: facts",
    format: 1,
    // Lower in tests.
    limit: if cfg!(test) { 20 } else { 1_000 },
};
/// Modules by their order of arrival.
const MODULES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("selvedge faas: modules");
const NUMBERS: TableDefinition<'_, u64, u64> =
    TableDefinition::new("selvedge faas: numbers of modules");

/// An error that prevents a gateway from continuing with the stored data.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StorageError {
    /// The directory or its database cannot be used, or differs from the user's statement.
    #[error(
        "{0} (--data names the folder; --first: the gateway was never started; --forgot: its data is lost)"
    )]
    Store(#[from] StoreError),
    /// The machine refuses the data.
    #[error(transparent)]
    Machine(#[from] Reject),
}

/// The beginning of a gateway without stored data.
#[derive(Clone, Debug)]
pub(crate) struct Beginning {
    pub(crate) id: NodeId,
    pub(crate) config: Config,
    pub(crate) first: Configuration,
    pub(crate) limits: Limits,
    pub(crate) memory: Memory,
}

/// The number of modules that are kept, and their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// The number of modules: from 1.
    pub modules: u32,
    /// The number of bytes altogether: at least the length of one module.
    pub bytes: u64,
}

#[derive(Debug)]
pub(crate) struct Storage {
    store: NodeStore<Stored<Tables>, Fact<Tables>>,
    kept: Kept,
    room: Room,
    /// The number of modules that did not match their names. They were removed.
    pub(crate) damaged: u64,
}

/// A gateway's life, and the promises of its replica.
fn base(gateway: &Gateway) -> (Member, Stored<Tables>) {
    (gateway.me(), gateway.replica().stored())
}

impl Storage {
    /// Opens the directory and begins a life that this gateway never had before. The life is stored
    /// when this returns, so before any peer learns of it.
    pub(crate) fn open(
        dir: &Path,
        room: Room,
        beginning: &Beginning,
    ) -> Result<(Self, Gateway), StorageError> {
        let (mut store, life) = beginning.memory.open(dir, SCHEMA, beginning.id)?;
        let kept = store.read(Kept::read)?;
        let gateway = begin(life, beginning)?;
        store.rebase(&base(&gateway), |_| Ok(()))?;
        let storage = Self {
            store,
            kept,
            room,
            damaged: 0,
        };
        Ok((storage, gateway))
    }

    /// Stores the facts in the barrier, and releases the effects behind them. Returns true if there
    /// were any.
    pub(crate) fn store(
        &mut self,
        barrier: &mut Barrier<Effect<Gateway>>,
        gateway: &Gateway,
        out: impl FnMut(Effect<Gateway>),
    ) -> Result<bool, StorageError> {
        Ok(self.store.store(barrier, || base(gateway), out)?)
    }

    /// Keeps a module; the oldest modules that are not needed make room. It is on the disk when
    /// this returns true; false means that the needed ones leave no room.
    pub(crate) fn keep(
        &mut self,
        module: &[u8],
        needed: &BTreeSet<Library>,
    ) -> Result<bool, StorageError> {
        self.insert(shelf::library(module), module, needed)
    }

    pub(super) fn insert(
        &mut self,
        library: Library,
        module: &[u8],
        needed: &BTreeSet<Library>,
    ) -> Result<bool, StorageError> {
        if self.kept.renew(library) {
            return Ok(true);
        }
        let Some(oldest) = self.kept.oldest(module.len(), self.room, needed) else {
            return Ok(false);
        };
        self.store.transact(|txn| {
            let mut numbers = txn.open_table(NUMBERS)?;
            let mut modules = txn.open_table(MODULES)?;
            for library in &oldest {
                if let Some(number) = numbers.remove(library.0)?.map(|it| it.value()) {
                    modules.remove(number)?;
                }
            }
            let number = modules.last()?.map_or(0, |it| it.0.value() + 1);
            modules.insert(number, module)?;
            numbers.insert(library.0, number)?;
            Ok(())
        })?;
        oldest.into_iter().for_each(|it| self.kept.remove(it));
        self.kept.add(library, module.len());
        Ok(true)
    }

    /// A module, if it is kept and undamaged.
    pub(crate) fn module(&mut self, library: Library) -> Result<Option<Vec<u8>>, StorageError> {
        let module = self.store.read(|txn| get(txn, library))?;
        if module
            .as_ref()
            .is_some_and(|it| shelf::library(it) != library)
        {
            self.damaged += 1;
            self.remove(library)?;
            return Ok(None);
        }
        Ok(module)
    }

    fn remove(&mut self, library: Library) -> Result<(), StorageError> {
        self.store.transact(|txn| {
            let mut numbers = txn.open_table(NUMBERS)?;
            if let Some(number) = numbers.remove(library.0)?.map(|it| it.value()) {
                txn.open_table(MODULES)?.remove(number)?;
            }
            Ok(())
        })?;
        self.kept.remove(library);
        Ok(())
    }

    /// The number of kept modules.
    pub(crate) fn modules(&self) -> u64 {
        self.kept.len()
    }
}

fn get(txn: &ReadTransaction, library: Library) -> Result<Option<Vec<u8>>, Failed> {
    let numbers = match txn.open_table(NUMBERS) {
        Ok(it) => it,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let Some(number) = numbers.get(library.0)? else {
        return Ok(None);
    };
    let modules = txn.open_table(MODULES)?;
    let module = modules.get(number.value())?;
    Ok(module.map(|it| it.value().to_vec()))
}

/// The gateway in a life that it never had before.
fn begin(
    life: Life<Stored<Tables>, Fact<Tables>>,
    beginning: &Beginning,
) -> Result<Gateway, StorageError> {
    let (id, config) = (beginning.id, beginning.config);
    let ids = beginning.first.members().map(|it| it.member.id);
    let others: Vec<NodeId> = ids.filter(|it| *it != id).collect();
    match life {
        // The life is the one that `first` names.
        Life::First(me) => Ok(Gateway::new(
            me,
            config,
            beginning.first.clone(),
            beginning.limits,
        )?),
        Life::Lost(me) => Ok(Gateway::newcomer(me, config, others)?),
        Life::Later(me, found) => {
            let mut gateway = Gateway::restore(me, config, found.base, others)?;
            for fact in &found.facts {
                let folded = gateway.fold(fact);
                folded.map_err(|why| Reject::Replica(selvedge_replica::Reject::Damaged(why)))?;
            }
            Ok(gateway)
        }
    }
}
