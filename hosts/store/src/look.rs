//! A look at a database before it is opened, which may change it.

use core::cell::Cell;
use std::io::ErrorKind;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Once;

use redb::{Builder, Database, ReadableTable as _, StorageBackend as _, TableHandle as _};
use serde::de::DeserializeOwned;

use crate::copy::{Copy, Shared};
use crate::{CACHE, Damage, Failed, Found, Schema, StoreError, failed};

/// The content of a medium.
pub(crate) struct Looked {
    /// A base and facts, if a base was ever stored.
    pub(crate) raw: Option<Raw>,
    /// True if the database has repaired its list of free pages. The medium needs the same.
    pub(crate) is_repaired: bool,
}

/// A base and facts that are not decoded.
pub(crate) struct Raw {
    base: Vec<u8>,
    facts: Vec<Vec<u8>>,
}

impl Raw {
    pub(crate) fn decode<B: DeserializeOwned, F: DeserializeOwned>(
        &self,
        schema: Schema,
        file: &Path,
    ) -> Result<Found<B, F>, Damage> {
        let entry = |source| {
            let file = file.into();
            Damage::Entry { file, source }
        };
        let (found, base) = postcard::take_from_bytes::<u16>(&self.base).map_err(entry)?;
        let (file, known) = (file.into(), schema.format);
        if found > known {
            return Err(Damage::Newer { file, found, known });
        }
        if found < known {
            return Err(Damage::Older { file, found, known });
        }
        let facts = self.facts.iter().map(|it| postcard::from_bytes(it));
        Ok(Found {
            base: postcard::from_bytes(base).map_err(entry)?,
            facts: facts.collect::<Result<_, _>>().map_err(entry)?,
        })
    }
}

/// Reads a medium without changing it.
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "nothing follows from the other errors about the stored data"
)]
pub(crate) fn look(medium: Shared, schema: Schema, file: &Path) -> Result<Looked, StoreError> {
    // The database asserts some properties of a file: a panic is damage as well.
    let looked = quietly(|| -> Result<_, Failed> {
        check_regions(&medium)?;
        let copy = Copy::new(medium)?;
        let mut database = Builder::new()
            .set_cache_size(CACHE)
            .create_with_backend(copy)?;
        // All pages in use are right by their checksums, or this fails. A crash while the database was
        // being closed may leave a list of free pages that differs from the pages in use.
        let is_repaired = !database.check_integrity()?;
        if is_repaired && !database.check_integrity()? {
            return Err(redb::Error::Corrupted("it cannot be repaired".into()).into());
        }
        let raw = read(&database, schema)?;
        Ok(raw.map(|raw| Looked { raw, is_repaired }))
    });
    let file = file.to_path_buf();
    let source = match looked {
        Ok(Ok(Some(looked))) => return Ok(looked),
        Ok(Ok(None)) => return Err(Damage::Foreign(file).into()),
        Ok(Err(Failed(source))) => source,
        Err(found) => return Err(Damage::Contents { file, found }.into()),
    };
    match *source {
        redb::Error::TableTypeMismatch { .. }
        | redb::Error::TableIsMultimap(_)
        | redb::Error::TypeDefinitionChanged { .. } => Err(Damage::Foreign(file).into()),
        redb::Error::Io(error) if error.kind() == ErrorKind::InvalidData => {
            Err(Damage::Foreign(file).into())
        }
        redb::Error::Io(error) if error.kind() == ErrorKind::UnexpectedEof => {
            let found = "its end is missing".into();
            Err(Damage::Contents { file, found }.into())
        }
        redb::Error::Corrupted(found) => Err(Damage::Contents { file, found }.into()),
        source => Err(failed(&file, source.into())),
    }
}

/// Refuses a header with more pages in a region than the database ever has. No checksum covers
/// the number, and the database makes lists for that many pages, for minutes or until memory is full.
fn check_regions(medium: &Shared) -> Result<(), Failed> {
    let (at, most): (u64, u32) = (20, 1 << 20);
    if medium.len()? < at + 4 {
        return Ok(());
    }
    let pages = medium.read(at, 4)?.try_into().map_or(0, u32::from_le_bytes);
    let is_database = medium.read(0, 4)? == b"redb";
    if is_database && pages > most {
        let found = format!("a region of {pages} pages");
        return Err(redb::Error::Corrupted(found).into());
    }
    Ok(())
}

/// The content of the tables; `None` if they belong to another program.
fn read(database: &Database, schema: Schema) -> Result<Option<Option<Raw>>, Failed> {
    let txn = database.begin_read()?;
    let names: Vec<String> = txn.list_tables()?.map(|it| it.name().into()).collect();
    if names.is_empty() {
        return Ok(Some(None));
    }
    let has = |name: &str| names.iter().any(|it| it == name);
    if !has(schema.base) {
        return Ok(None);
    }
    let base = txn.open_table(schema.base())?;
    let Some(base) = base.get(())?.map(|it| it.value().to_vec()) else {
        return Ok(Some(None));
    };
    let mut facts = Vec::new();
    if has(schema.facts) {
        for entry in txn.open_table(schema.facts())?.iter()? {
            facts.push(entry?.1.value().to_vec());
        }
    }
    Ok(Some(Some(Raw { base, facts })))
}

/// Does work that may panic, and returns the panic's message. It is not printed; messages of other
/// threads are.
fn quietly<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    thread_local! {
        static IS_QUIET: Cell<bool> = const { Cell::new(false) };
    }
    // Once: two threads that replace the hook in turn would not restore it.
    HOOK.call_once(|| {
        let loud = panic::take_hook();
        panic::set_hook(Box::new(move |it| {
            if !IS_QUIET.get() {
                loud(it);
            }
        }));
    });
    IS_QUIET.set(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_QUIET.set(false);
    done.map_err(|panic| {
        let message = panic.downcast_ref::<String>().cloned();
        let message = message.or_else(|| panic.downcast_ref::<&str>().map(|it| (*it).into()));
        message.unwrap_or_else(|| "the database panics".into())
    })
}
