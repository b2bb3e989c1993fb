//! What a gateway must not forget, in an embedded database: a base, the facts since, and modules.

#![allow(
    clippy::result_large_err,
    reason = "the database's error is large, and ends the process"
)]

mod kept;

use core::time::Duration;
use std::collections::BTreeSet;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use std::{fs, io};

use redb::{Database, Durability, ReadableTable, TableDefinition, TableHandle as _};
use selvedge_core::durable::Durable as _;
use selvedge_core::{Member, NodeId};
use selvedge_pcm::gateway::{Config, Gateway, Reject};
use selvedge_pcm::{Library, Limits, Tables};
use selvedge_replica::{Configuration, Stored};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use self::kept::Kept;
use crate::shelf;

/// The version of what is stored.
const FORMAT: u16 = 1;
/// One entry: the version, and then the present life and all that the gateway held when it was written.
const BASE: TableDefinition<'_, (), &[u8]> = TableDefinition::new("selvedge faas: base");
const FACTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("selvedge faas: facts");
/// By the number of their coming.
const MODULES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("selvedge faas: modules");
const NUMBERS: TableDefinition<'_, u64, u64> =
    TableDefinition::new("selvedge faas: numbers of modules");
/// After so many facts a new base takes their place; the tests do not wait for so many.
const FACTS_LIMIT: u64 = if cfg!(test) { 20 } else { 1_000 };

/// 2026, in time since 1970.
const EPOCH: Duration = Duration::from_secs(1_767_225_600);

/// What the directory of a gateway holds, as its user says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// That of its former life.
    Kept,
    /// None: the gateway was never started.
    None,
    /// None: it is lost. The gateway decides again when the others have named it anew, which they do with
    /// [`Voting::Dynamic`](selvedge_pcm::gateway::Voting::Dynamic).
    Lost,
}

/// Why a gateway cannot go on with what is stored.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StorageError {
    /// The directory cannot be used.
    #[error("the directory of the data: {0}: name another one with --data")]
    Directory(#[from] io::Error),
    /// The database cannot do what it is asked, or another process has it.
    #[error(
        "the database: {0}: see whether the disk is full, or another gateway has this directory"
    )]
    Database(#[source] Box<redb::Error>),
    /// What is stored is damaged.
    #[error(
        "{0} is damaged, and was put aside as .damaged: begin without it, with --forgot; never with --first"
    )]
    Damaged(PathBuf),
    /// An entry is damaged though its checksums are right.
    #[error(
        "an entry of the database cannot be read ({0}): put the directory aside, and begin with --forgot"
    )]
    Entry(#[from] postcard::Error),
    /// It was written by a later version.
    #[error(
        "the data has format {0}, and this program knows up to {FORMAT}: run a later version of it"
    )]
    Newer(u16),
    /// It was written by another program.
    #[error(
        "the database is that of another program: name another directory with --data; or its first start was \
         cut off: remove the file, and say --first"
    )]
    Foreign,
    /// It was written by another gateway.
    #[error("this is the directory of gateway {found}, and not of {asked}: give each its own")]
    Other {
        /// The gateway that was to start.
        asked: NodeId,
        /// The one whose directory it is.
        found: NodeId,
    },
    /// Nothing is stored.
    #[error(
        "nothing is stored here: say --first if this gateway was never started, and --forgot if its data is lost"
    )]
    Nothing,
    /// Something is stored.
    #[error("the directory holds a gateway's memory: start it without --first and --forgot")]
    Something,
    /// The machine does not take it.
    #[error(transparent)]
    Machine(#[from] Reject),
}

impl From<redb::Error> for StorageError {
    fn from(error: redb::Error) -> Self {
        Self::Database(Box::new(error))
    }
}

/// With what a gateway begins that remembers nothing.
#[derive(Clone, Debug)]
pub(crate) struct Beginning {
    pub(crate) id: NodeId,
    pub(crate) config: Config,
    pub(crate) first: Configuration,
    pub(crate) limits: Limits,
    pub(crate) memory: Memory,
}

/// How many modules are kept, and how many bytes of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// How many modules: from 1.
    pub modules: u32,
    /// How many bytes altogether: at least as many as one module has.
    pub bytes: u64,
}

#[derive(Serialize, Deserialize)]
struct Base {
    life: Member,
    stored: Stored<Tables>,
}

#[derive(Debug)]
pub(crate) struct Storage {
    database: Database,
    kept: Kept,
    facts: u64,
    room: Room,
    /// How many modules were not what their names say. They are gone.
    pub(crate) damaged: u64,
}

impl Storage {
    /// Opens the directory and begins a life that this gateway never had before. The life is stored when
    /// this returns, so before any peer hears of it.
    pub(crate) fn open(
        dir: &Path,
        room: Room,
        beginning: &Beginning,
    ) -> Result<(Self, Gateway), StorageError> {
        fs::create_dir_all(dir)?;
        let path = dir.join("gateway.redb");
        // The database asserts some of what it finds in a file: a panic is damage as well.
        let (database, read) = match catch_unwind(|| read(&path)) {
            Ok(Ok(it)) => it,
            Ok(Err(redb::Error::Corrupted(_))) | Err(_) => {
                fs::rename(&path, path.with_extension("damaged"))?;
                return Err(StorageError::Damaged(path));
            }
            Ok(Err(redb::Error::Io(error))) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(StorageError::Foreign);
            }
            Ok(Err(error)) => return Err(error.into()),
        };
        let mut storage = Self {
            kept: Kept::read(&database)?,
            database,
            facts: 0,
            room,
            damaged: 0,
        };
        let gateway = begin(read, beginning)?;
        storage.rebase(&gateway)?;
        Ok((storage, gateway))
    }

    /// Stores facts, and now and then all that the gateway holds in place of all facts. It is on the disk
    /// when this returns.
    pub(crate) fn store(
        &mut self,
        facts: &[Vec<u8>],
        gateway: &Gateway,
    ) -> Result<(), StorageError> {
        if self.facts >= FACTS_LIMIT {
            return self.rebase(gateway); // It has these facts as well.
        }
        Ok(self.append(facts)?)
    }

    fn append(&mut self, facts: &[Vec<u8>]) -> Result<(), redb::Error> {
        let mut txn = self.database.begin_write()?;
        txn.set_durability(Durability::Immediate);
        {
            let mut table = txn.open_table(FACTS)?;
            for fact in facts {
                table.insert(self.facts, fact.as_slice())?;
                self.facts += 1;
            }
        }
        Ok(txn.commit()?)
    }

    fn rebase(&mut self, gateway: &Gateway) -> Result<(), StorageError> {
        let base = Base {
            life: gateway.me(),
            stored: gateway.replica().stored(),
        };
        let base = postcard::to_allocvec(&(FORMAT, base))?;
        Ok(self.replace(&base)?)
    }

    fn replace(&mut self, base: &[u8]) -> Result<(), redb::Error> {
        let mut txn = self.database.begin_write()?;
        txn.set_durability(Durability::Immediate);
        txn.open_table(BASE)?.insert((), base)?;
        txn.delete_table(FACTS)?;
        txn.commit()?;
        self.facts = 0;
        Ok(())
    }

    /// Keeps a module, but those that are needed, the oldest make room. It is on the disk when this returns;
    /// unless it says that the needed ones leave no room.
    pub(crate) fn keep(
        &mut self,
        module: &[u8],
        needed: &BTreeSet<Library>,
    ) -> Result<bool, StorageError> {
        Ok(self.insert(shelf::library(module), module, needed)?)
    }

    pub(super) fn insert(
        &mut self,
        library: Library,
        module: &[u8],
        needed: &BTreeSet<Library>,
    ) -> Result<bool, redb::Error> {
        if self.kept.renew(library) {
            return Ok(true);
        }
        let Some(oldest) = self.kept.oldest(module.len(), self.room, needed) else {
            return Ok(false);
        };
        let mut txn = self.database.begin_write()?;
        txn.set_durability(Durability::Immediate);
        {
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
        }
        txn.commit()?;
        oldest.into_iter().for_each(|it| self.kept.remove(it));
        self.kept.add(library, module.len());
        Ok(true)
    }

    /// A module, if it is kept and undamaged.
    pub(crate) fn module(&mut self, library: Library) -> Result<Option<Vec<u8>>, StorageError> {
        let module = self.get(library)?;
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

    fn remove(&mut self, library: Library) -> Result<(), redb::Error> {
        let mut txn = self.database.begin_write()?;
        txn.set_durability(Durability::Immediate);
        {
            let mut numbers = txn.open_table(NUMBERS)?;
            let number = numbers.remove(library.0)?.map(|it| it.value());
            if let Some(number) = number {
                txn.open_table(MODULES)?.remove(number)?;
            }
        }
        txn.commit()?;
        self.kept.remove(library);
        Ok(())
    }

    fn get(&self, library: Library) -> Result<Option<Vec<u8>>, redb::Error> {
        let txn = self.database.begin_read()?;
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

    /// How many modules are kept.
    pub(crate) fn modules(&self) -> u64 {
        self.kept.len()
    }
}

enum Read {
    Nothing,
    Foreign,
    Memory { base: Vec<u8>, facts: Vec<Vec<u8>> },
}

/// Opens the database, and has it compare all of itself with its checksums.
fn read(path: &Path) -> Result<(Database, Read), redb::Error> {
    let mut database = Database::create(path)?;
    if !database.check_integrity()? {
        return Err(redb::Error::Corrupted("its checksums differ".into()));
    }
    let txn = database.begin_write()?;
    let names: Vec<String> = txn.list_tables()?.map(|it| it.name().into()).collect();
    if names.is_empty() {
        return Ok((database, Read::Nothing));
    }
    if !names.iter().any(|it| it == BASE.name()) {
        return Ok((database, Read::Foreign));
    }
    let (mut base, mut facts) = (Vec::new(), Vec::new());
    if let Some(entry) = txn.open_table(BASE)?.get(())? {
        base = entry.value().to_vec();
    }
    for entry in txn.open_table(FACTS)?.iter()? {
        facts.push(entry?.1.value().to_vec());
    }
    txn.abort()?;
    Ok((database, Read::Memory { base, facts }))
}

/// The gateway in a life that it never had before.
fn begin(read: Read, beginning: &Beginning) -> Result<Gateway, StorageError> {
    let Beginning {
        id,
        config,
        ref first,
        limits,
        memory,
    } = *beginning;
    let ids = first.members().map(|it| it.member.id);
    let others: Vec<NodeId> = ids.filter(|it| *it != id).collect();
    match (read, memory) {
        (Read::Foreign, _) => Err(StorageError::Foreign),
        (Read::Nothing, Memory::Kept) => Err(StorageError::Nothing),
        (Read::Memory { .. }, Memory::None | Memory::Lost) => Err(StorageError::Something),
        (Read::Nothing, Memory::None) => {
            let me = Member::new(id.0, 0); // As `first` names it.
            Ok(Gateway::new(me, config, first.clone(), limits)?)
        }
        (Read::Nothing, Memory::Lost) => Ok(Gateway::newcomer(after_a_loss(id), config, others)?),
        (Read::Memory { base, facts }, Memory::Kept) => {
            let (format, base) = postcard::take_from_bytes::<u16>(&base)?;
            if format > FORMAT {
                return Err(StorageError::Newer(format));
            }
            let Base { life, stored } = postcard::from_bytes(base)?;
            if life.id != id {
                let (asked, found) = (id, life.id);
                return Err(StorageError::Other { asked, found });
            }
            let incarnation = life.incarnation.next();
            let me = Member { id, incarnation };
            let mut gateway = Gateway::restore(me, config, stored, others)?;
            for fact in facts {
                let folded = gateway.fold(&postcard::from_bytes(&fact)?);
                folded.map_err(|why| Reject::Replica(selvedge_replica::Reject::Damaged(why)))?;
            }
            Ok(gateway)
        }
    }
}

/// The life of a gateway that does not know its former ones. Those are numbered one by one from 0 or from
/// a number as this one, so it is later than they are, as long as a gateway starts less often than once a
/// second and its clock is right.
fn after_a_loss(id: NodeId) -> Member {
    let since_1970 = UNIX_EPOCH.elapsed().unwrap_or_default();
    let since_2026 = since_1970.saturating_sub(EPOCH).as_secs();
    Member::new(id.0, u32::try_from(since_2026).unwrap_or(u32::MAX))
}
