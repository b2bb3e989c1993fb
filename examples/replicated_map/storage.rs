//! What a member must not forget, in an embedded database: a base, and the facts since.

use core::time::Duration;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use std::{fs, io};

use redb::{Database, Durability, ReadableTable, TableDefinition, TableHandle};
use selvedge_core::durable::Durable;
use selvedge_core::{Incarnation, Member, NodeId};
use selvedge_replica::{Config, Configuration, Reject, Replica, Stored};
use thiserror::Error;

use crate::map::Map;

/// One entry: the present life, and all that the member held when it was written.
const BASE: TableDefinition<'_, (), &[u8]> = TableDefinition::new("selvedge replicated map: base");
const FACTS: TableDefinition<'_, u64, &[u8]> =
    TableDefinition::new("selvedge replicated map: facts");
/// After so many facts a new base takes their place; the tests do not wait for so many.
const FACTS_LIMIT: u64 = if cfg!(test) { 20 } else { 1_000 };
/// 2026, in time since 1970.
const EPOCH: Duration = Duration::from_secs(1_767_225_600);

/// What the directory holds, as the user says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// That of the node's former life.
    Kept,
    /// None: the node was never started.
    None,
    /// None: it is lost.
    Lost,
}

#[derive(Debug, Error)]
pub(crate) enum StorageError {
    #[error("the directory of the data: {0}")]
    Directory(#[from] io::Error),
    #[error("the database: {0}")]
    Database(#[from] redb::Error),
    #[error("{0} is damaged, and was put aside: begin anew with --forgot")]
    Damaged(PathBuf),
    #[error(
        "an entry of the database cannot be decoded ({0}): begin anew in another directory, with --forgot"
    )]
    Entry(#[from] postcard::Error),
    #[error("the database is that of another program: name another directory")]
    Foreign,
    #[error("this is the directory of node {found}, and not of {asked}: give each node its own")]
    OtherNode { asked: NodeId, found: NodeId },
    #[error(
        "nothing is stored here: say --first if the node was never started, and --forgot if its data is lost"
    )]
    Nothing,
    #[error("the directory holds a node's memory: start it without --first and --forgot")]
    Something,
    #[error(transparent)]
    Replica(#[from] Reject),
}

pub(crate) struct Storage {
    database: Database,
    facts: u64,
}

impl Storage {
    /// Opens the directory and begins a life that this node never had before. The life is stored
    /// when this returns, so before any peer hears of it.
    pub(crate) fn open(
        dir: &Path,
        id: NodeId,
        memory: Memory,
        first: Configuration,
    ) -> Result<(Self, Replica<Map>), StorageError> {
        fs::create_dir_all(dir)?;
        let path = dir.join("map.redb");
        // The database asserts some of what it finds in a file: a panic is damage as well.
        let (database, read) = match catch_unwind(|| read(&path)) {
            Ok(Ok(it)) => it,
            Ok(Err(redb::Error::Corrupted(_))) | Err(_) => {
                fs::rename(&path, path.with_extension("damaged"))?;
                return Err(StorageError::Damaged(path));
            }
            Ok(Err(error)) => return Err(error.into()),
        };
        let mut storage = Self { database, facts: 0 };
        let replica = match (read, memory) {
            (Read::Foreign, _) => return Err(StorageError::Foreign),
            (Read::Nothing, Memory::Kept) => return Err(StorageError::Nothing),
            (Read::Memory { .. }, Memory::None | Memory::Lost) => {
                return Err(StorageError::Something);
            }
            (Read::Nothing, Memory::None | Memory::Lost) => {
                let incarnation = match memory {
                    Memory::Lost => after_a_loss(),
                    Memory::None | Memory::Kept => Incarnation(0),
                };
                let me = Member { id, incarnation };
                Replica::new(me, Config::new(), first, Map::default())?
            }
            (Read::Memory { base, facts }, Memory::Kept) => {
                let (former, stored): (Member, Stored<Map>) = postcard::from_bytes(&base)?;
                if former.id != id {
                    let (asked, found) = (id, former.id);
                    return Err(StorageError::OtherNode { asked, found });
                }
                let incarnation = former.incarnation.next();
                let me = Member { id, incarnation };
                let mut replica = Replica::restore(me, Config::new(), stored)?;
                for fact in facts {
                    let folded = replica.fold(&postcard::from_bytes(&fact)?);
                    folded.map_err(Reject::Damaged)?;
                }
                replica
            }
        };
        storage.rebase(&replica)?;
        Ok((storage, replica))
    }

    /// Stores facts, and now and then all that the member holds in place of all facts. It is on the
    /// disk when this returns.
    pub(crate) fn store(
        &mut self,
        facts: &[Vec<u8>],
        replica: &Replica<Map>,
    ) -> Result<(), StorageError> {
        if self.facts >= FACTS_LIMIT {
            return self.rebase(replica); // It has these facts as well.
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

    fn rebase(&mut self, replica: &Replica<Map>) -> Result<(), StorageError> {
        let base = postcard::to_allocvec(&(replica.me(), replica.stored()))?;
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

/// The life of a node that does not know its former ones. Those are numbered one by one from 0 or
/// from a number as this one, so it is later than they are, as long as a node starts less often than
/// once a second and its clock is right.
fn after_a_loss() -> Incarnation {
    let since = UNIX_EPOCH
        .elapsed()
        .unwrap_or_default()
        .saturating_sub(EPOCH);
    Incarnation(u32::try_from(since.as_secs()).unwrap_or(u32::MAX))
}
