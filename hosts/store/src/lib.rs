//! Facts of a [`Durable`] machine on a disk, in an embedded database (redb).
//!
//! A [`Store`] is a folder with one database. The database holds a *base*, which stands for all
//! facts up to one moment, and the facts since. [`Store::open`] returns both; a host makes the
//! machine from the base and folds the facts. After [`Schema::limit`] facts a new base takes their
//! place. A program may have tables of its own in the same database, which are written
//! together with facts or by themselves.
//!
//! ```
//! use chacha20::{ChaCha8Rng, rand_core::SeedableRng};
//! use core::convert::Infallible;
//! use selvedge_core::durable::{Barrier, Durable};
//! use selvedge_core::{Context, Driver, Effect, Input, Machine, Member, Time};
//! use selvedge_store::{Schema, Store};
//!
//! /// Gives out numbers, each once.
//! #[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
//! struct Counter { last: u32 }
//!
//! impl Machine for Counter {
//!     type Message = u32;
//!     type Timer = ();
//!     type Command = Member;
//!     type Event = u32;
//!     type Reject = ();
//!
//!     fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), ()> {
//!         let Input::Command(asker) = input else { return Err(()) };
//!         self.last += 1;
//!         cx.event(self.last); // the fact, and behind it
//!         cx.send(asker, self.last); // an effect that depends on it
//!         Ok(())
//!     }
//! }
//!
//! impl Durable for Counter {
//!     type Fact = u32;
//!     type Damage = Infallible;
//!
//!     fn fact(event: &u32) -> Option<&u32> {
//!         Some(event)
//!     }
//!
//!     fn fold(&mut self, last: &u32) -> Result<(), Infallible> {
//!         self.last = *last;
//!         Ok(())
//!     }
//! }
//!
//! const SCHEMA: Schema = Schema {
//!     file: "counter.redb",
//!     base: "example counter: base",
//!     facts: "example counter: facts",
//!     format: 1,
//!     limit: 1_000,
//! };
//!
//! # let dir = std::env::temp_dir().join(format!("selvedge-store-doc-{}", std::process::id()));
//! # let folder = dir.clone();
//! let start = || -> Result<(Store<u32, u32>, Counter), Box<dyn std::error::Error>> {
//!     let (mut store, found) = Store::<u32, u32>::open(&folder, SCHEMA)?;
//!     let mut counter = Counter::default();
//!     if let Some(found) = found {
//!         counter.last = found.base;
//!         for fact in &found.facts {
//!             counter.fold(fact)?;
//!         }
//!     }
//!     store.rebase(&counter.last, |_| Ok(()))?;
//!     Ok((store, counter))
//! };
//!
//! let (mut store, counter) = start()?;
//! let (mut driver, mut barrier) = (Driver::new(counter), Barrier::new(100));
//! let mut rng = ChaCha8Rng::seed_from_u64(7);
//! let mut sent = Vec::new();
//! let mut carry_out = |effect: Effect<Counter>| {
//!     if let Effect::Send { to, message } = effect {
//!         sent.push((to.id.0, message));
//!     }
//! };
//! for asker in [Member::new(1, 0), Member::new(2, 0)] {
//!     let input = Input::Command(asker);
//!     let taken = driver.step(Time::ZERO, &mut rng, input, |it| barrier.take(it, &mut carry_out));
//!     taken.map_err(|()| "refused")?;
//! }
//! // Both are on the disk before one answer is sent.
//! let last = driver.machine().last;
//! assert!(store.store(&mut barrier, || last, &mut carry_out)?);
//! assert_eq!(sent, [(1, 1), (2, 2)]);
//!
//! drop(store);
//! let (_store, counter) = start()?;
//! assert_eq!(counter.last, 2);
//! # std::fs::remove_dir_all(dir)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Promises
//!
//! | promise | assumption |
//! |---|---|
//! | the content of a call is on the disk when the call returns, and survives a crash at any later moment | the disk keeps writes that it reports as synchronised |
//! | a crash keeps a prefix of the calls, each with its whole content | the disk keeps all synchronised writes, and any part of the others |
//! | an effect is released when the facts before it are stored ([`Store::store`]) | it goes through a [`Barrier`] |
//! | a disk that is full or fails is reported ([`StoreError::Database`]); the next start finds all earlier calls | |
//! | a file that is damaged, of another program or of another version is refused with [`Damage`], and not one byte of it changes | the damage is not in the last write before a crash: it looks like a write that was cut off, and the database goes back by one call |
//! | no panic: the start catches panics of the database at damaged pages, and reports them as [`Damage`] | panics unwind |
//! | one process uses a folder at a time ([`StoreError::InUse`]) | the system has locks of files |
//! | memory is bounded: the base, [`Schema::limit`] facts, the facts of one call, and 32 MiB for pages of the database | |
//!
//! A host of a node with a life of its own in each start opens its folder by [`Memory::open`], which
//! compares the folder with the user's statement.
//!
//! A call that failed is not tried again: the host ends, and begins again from the stored facts. Effects
//! that wait in its barrier have not happened then.

#![forbid(unsafe_code)]
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]
mod copy;
mod error;
mod lives;
mod look;

use core::borrow::Borrow;
use core::marker::PhantomData;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::backends::FileBackend;
use redb::{
    Builder, Database, DatabaseError, Durability, ReadTransaction, StorageBackend, TableDefinition,
    WriteTransaction,
};
use selvedge_core::Effect;
use selvedge_core::durable::{Barrier, Durable};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use error::{Damage, Failed, StoreError};
pub use lives::{Beginning, Memory, NodeStore, Opened};
/// The database, for tables of a program's own.
pub use redb;

use crate::copy::Shared;

/// The limit of pages that the database keeps in memory, in bytes; its own default is 1 GiB.
const CACHE: usize = 32 << 20;

/// The file of a program, and the tables in it that a [`Store`] keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schema {
    /// The name of the file.
    pub file: &'static str,
    /// The name of the table with the base. It marks the file as this program's.
    pub base: &'static str,
    /// The name of the table with facts.
    pub facts: &'static str,
    /// The version of the stored data; a file of another version is refused. It changes with the
    /// encoding of a base or a fact.
    pub format: u16,
    /// The number of facts after which a new base takes their place: enough to make bases rare, and
    /// few enough to be folded at a start.
    pub limit: u64,
}

impl Schema {
    /// Checks the names: with one name for both tables a base would replace the facts and itself.
    fn check(&self) -> Result<(), StoreError> {
        let file = Path::new(self.file);
        let is_name = file.file_name() == Some(file.as_os_str());
        let wrong = [
            ("file", !is_name || self.file == "lock"),
            ("base", self.base.is_empty()),
            ("facts", self.facts.is_empty() || self.facts == self.base),
        ];
        let found = wrong.iter().find(|it| it.1);
        found.map_or(Ok(()), |it| Err(StoreError::Schema(it.0)))
    }

    /// A table with one entry: the format, and then the base.
    const fn base(&self) -> TableDefinition<'static, (), &'static [u8]> {
        TableDefinition::new(self.base)
    }

    const fn facts(&self) -> TableDefinition<'static, u64, &'static [u8]> {
        TableDefinition::new(self.facts)
    }
}

/// The stored data of a former life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found<B, F> {
    /// The base.
    pub base: B,
    /// The facts since, in their order.
    pub facts: Vec<F>,
}

/// A base and facts in a database, and tables of the program beside them. Each base is a `B` and each
/// fact an `F`: what is stored as another type could not be read at the next start.
#[derive(Debug)]
pub struct Store<B, F> {
    schema: Schema,
    file: PathBuf,
    database: Database,
    facts: u64,
    /// Facts are found again with a base alone.
    has_base: bool,
    /// While it is open, no other process uses the folder.
    _lock: Option<FileBackend>,
    stored: PhantomData<fn(B, F)>,
}

impl<B: Serialize + DeserializeOwned, F: Serialize + DeserializeOwned> Store<B, F> {
    /// Opens the folder, or creates it. Reads the whole database and compares it with its checksums, before
    /// anything in it changes.
    ///
    /// If nothing is found, a base must come first ([`rebase`](Self::rebase)): facts without a base are not
    /// found again.
    ///
    /// # Errors
    /// When the folder is in use or its database cannot be used. Nothing was changed then.
    pub fn open(dir: &Path, schema: Schema) -> Result<(Self, Option<Found<B, F>>), StoreError> {
        let folder = |source| {
            let dir = dir.into();
            StoreError::Folder { dir, source }
        };
        let open = |path: &Path| OpenOptions::new().read(true).write(true).open(path);
        let locked = |it| match FileBackend::new(it) {
            Err(DatabaseError::DatabaseAlreadyOpen) => Err(StoreError::InUse(dir.into())),
            other => other.map_err(|it| folder(io::Error::other(it))),
        };
        schema.check()?;
        make_folder(dir).map_err(folder)?;
        // A file of its own: another process may be about to create the database.
        let mut lock = OpenOptions::new();
        let lock = lock.write(true).create(true).truncate(false);
        let lock = locked(lock.open(dir.join("lock")).map_err(folder)?)?;
        let file = dir.join(schema.file);
        // A link to a file on an absent disk is no first start.
        if !file.is_symlink() && !file.try_exists().map_err(folder)? {
            // A half-made database looks like another program's file, so it has another name until it is
            // complete.
            let new = dir.join(format!("{}.new", schema.file));
            fs::remove_file(&new)
                .or_else(unless_missing)
                .map_err(folder)?;
            make(&new, schema).map_err(|it| failed(&file, it))?;
            fs::rename(&new, &file).map_err(folder)?;
            sync(dir).map_err(folder)?;
        }
        let medium = locked(open(&file).map_err(folder)?)?;
        if medium.len().map_err(folder)? == 0 {
            // A crash of the system may leave an empty file: it is not a database in which nothing was
            // stored.
            return Err(Damage::Foreign(file).into());
        }
        let (mut store, found) = Self::at(file, Shared(Arc::new(medium)), schema)?;
        store._lock = Some(lock);
        Ok((store, found))
    }

    /// Does as [`open`](Self::open) with a medium other than a file, which is empty or has a database. A
    /// crash while the first database is made can leave a medium that is neither, and is refused as
    /// [`Damage::Foreign`]: nothing was stored on it then.
    ///
    /// # Errors
    /// When the medium fails or its database cannot be used.
    pub fn on(
        medium: impl StorageBackend,
        schema: Schema,
    ) -> Result<(Self, Option<Found<B, F>>), StoreError> {
        Self::at(schema.file.into(), Shared(Arc::new(medium)), schema)
    }

    fn at(
        file: PathBuf,
        medium: Shared,
        schema: Schema,
    ) -> Result<(Self, Option<Found<B, F>>), StoreError> {
        schema.check()?;
        let looked = look::look(medium.clone(), schema, &file)?;
        let found = looked.raw.map(|it| it.decode(schema, &file)).transpose()?;
        let open = || -> Result<_, Failed> {
            let mut database = Builder::new()
                .set_cache_size(CACHE)
                .create_with_backend(medium)?;
            if looked.is_repaired {
                database.check_integrity()?;
            }
            Ok(database)
        };
        let database = open().map_err(|it| failed(&file, it))?;
        let facts = found.as_ref().map_or(0, |it| it.facts.len() as u64);
        let store = Self {
            schema,
            file,
            database,
            facts,
            has_base: found.is_some(),
            _lock: None,
            stored: PhantomData,
        };
        Ok((store, found))
    }

    /// Stores the facts that wait in a barrier, in one write, and releases the effects behind them. After
    /// [`Schema::limit`] facts `base` takes their place: the whole durable state of the machine, after these
    /// facts. Returns false if no fact waited.
    ///
    /// # Errors
    /// When the disk fails. Nothing is released then.
    pub fn store<M: Durable<Fact = F>>(
        &mut self,
        barrier: &mut Barrier<Effect<M>>,
        base: impl FnOnce() -> B,
        out: impl FnMut(Effect<M>),
    ) -> Result<bool, StoreError> {
        let mut facts = Vec::new();
        let Some(mark) = barrier.write_facts(|it| facts.push(postcard::to_allocvec(it))) else {
            return Ok(false);
        };
        if self.is_due(facts.len()) {
            self.rebase(&base(), |_| Ok(()))?;
        } else {
            self.put(facts.into_iter().collect(), |_| Ok(()))?;
        }
        barrier.stored(mark, out);
        Ok(true)
    }

    /// Stores facts, or in place of all facts a base that has these facts, together with the writes of `more`
    /// into tables of the program.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn write<R: Borrow<B>>(
        &mut self,
        facts: &[F],
        base: impl FnOnce() -> R,
        more: impl FnOnce(&WriteTransaction) -> Result<(), Failed>,
    ) -> Result<(), StoreError> {
        if self.is_due(facts.len()) {
            return self.rebase(base().borrow(), more);
        }
        self.put(facts.iter().map(postcard::to_allocvec).collect(), more)
    }

    /// Stores any number of facts: for a host that checks by itself whether a base
    /// [is due](Self::is_due). Facts without a base before them are not found again.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn append(&mut self, facts: &[F]) -> Result<(), StoreError> {
        let facts = facts.iter().map(postcard::to_allocvec);
        self.put(facts.collect(), |_| Ok(()))
    }

    fn put(
        &mut self,
        facts: postcard::Result<Vec<Vec<u8>>>,
        more: impl FnOnce(&WriteTransaction) -> Result<(), Failed>,
    ) -> Result<(), StoreError> {
        let facts = facts.map_err(|it| self.entry(it))?;
        let (definition, first) = (self.schema.facts(), self.facts);
        self.transact(|txn| {
            let mut table = txn.open_table(definition)?;
            for (nth, fact) in (first..).zip(&facts) {
                table.insert(nth, fact.as_slice())?;
            }
            drop(table);
            more(txn)
        })?;
        self.facts += facts.len() as u64;
        Ok(())
    }

    /// Returns true if a base should take the place of facts when this number of them is added, and
    /// while no base was ever stored.
    #[must_use]
    pub const fn is_due(&self, facts: usize) -> bool {
        !self.has_base || self.facts + facts as u64 > self.schema.limit
    }

    /// Stores a base in place of all facts, together with the writes of `more` into tables of the
    /// program.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn rebase(
        &mut self,
        base: &B,
        more: impl FnOnce(&WriteTransaction) -> Result<(), Failed>,
    ) -> Result<(), StoreError> {
        let base = postcard::to_allocvec(&(self.schema.format, base));
        let base = base.map_err(|it| self.entry(it))?;
        let schema = self.schema;
        self.transact(|txn| {
            txn.open_table(schema.base())?.insert((), base.as_slice())?;
            txn.delete_table(schema.facts())?;
            more(txn)
        })?;
        (self.facts, self.has_base) = (0, true);
        Ok(())
    }

    /// Writes into tables of the program, in one transaction. It is on the disk when this returns.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn transact<T>(
        &mut self,
        work: impl FnOnce(&WriteTransaction) -> Result<T, Failed>,
    ) -> Result<T, StoreError> {
        let done = || -> Result<T, Failed> {
            let mut txn = self.database.begin_write()?;
            txn.set_durability(Durability::Immediate);
            if !self.has_base {
                // The table of the base marks the database as this program's.
                txn.open_table(self.schema.base())?;
            }
            let done = work(&txn)?;
            txn.commit()?;
            Ok(done)
        };
        done().map_err(|it| failed(&self.file, it))
    }

    /// Reads tables of the program.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn read<T>(
        &self,
        work: impl FnOnce(&ReadTransaction) -> Result<T, Failed>,
    ) -> Result<T, StoreError> {
        let done = || work(&self.database.begin_read()?);
        done().map_err(|it| failed(&self.file, it))
    }

    /// The file, to name it in errors.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    fn entry(&self, source: postcard::Error) -> StoreError {
        let file = self.file.clone();
        Damage::Entry { file, source }.into()
    }
}

/// Makes a database in which nothing is stored. It is on the disk when this returns.
fn make(file: &Path, schema: Schema) -> Result<(), Failed> {
    let database = Database::create(file)?;
    let mut txn = database.begin_write()?;
    txn.set_durability(Durability::Immediate);
    txn.open_table(schema.base())?;
    Ok(txn.commit()?)
}

/// Creates the folder and its parents, if they are missing. A folder that loses its name in a crash would look
/// like a first start.
fn make_folder(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let above = dir.parent().filter(|it| !it.as_os_str().is_empty());
    let above = above.unwrap_or(Path::new("."));
    make_folder(above)?;
    match fs::create_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => {}
        made => made?,
    }
    sync(above)
}

/// The name of a file is in its folder, which is synchronised by itself, if the system supports that.
fn sync(dir: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(dir)?.sync_all()?;
    }
    Ok(())
}

fn unless_missing(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound {
        return Ok(());
    }
    Err(error)
}

fn failed(file: &Path, Failed(source): Failed) -> StoreError {
    let file = file.into();
    StoreError::Database { file, source }
}

/// The example of the README runs with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
