//! The modules that a gateway keeps, in the order of their removal.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_pcm::Library;
use selvedge_store::Failed;
use selvedge_store::redb::{self, ReadTransaction, ReadableTable as _, ReadableTableMetadata as _};

use super::{MODULES, NUMBERS, Room};

/// The length in bytes and the age of each kept module. The disk has only the order of arrival, so
/// after a start a module that was put again has its first age.
#[derive(Debug, Default)]
pub(super) struct Kept {
    modules: BTreeMap<Library, Entry>,
    /// Modules by age, the oldest first.
    ages: BTreeMap<u64, Library>,
    bytes: u64,
    next: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    age: u64,
    bytes: u64,
}

impl Kept {
    /// Reads the database. O(n) for n bytes of modules.
    pub(super) fn read(txn: &ReadTransaction) -> Result<Self, Failed> {
        let mut kept = Self::default();
        let numbers = match txn.open_table(NUMBERS) {
            Ok(it) => it,
            Err(redb::TableError::TableDoesNotExist(_)) => return Ok(kept),
            Err(error) => return Err(error.into()),
        };
        let modules = txn.open_table(MODULES)?;
        let mut lengths = BTreeMap::new();
        for entry in modules.iter()? {
            let (number, module) = entry?;
            lengths.insert(number.value(), module.value().len());
        }
        let mut all = Vec::new();
        for entry in numbers.iter()? {
            let (library, number) = entry?;
            all.push((number.value(), Library(library.value())));
        }
        all.sort_unstable();
        for (number, library) in all {
            kept.add(library, lengths.get(&number).copied().unwrap_or_default());
        }
        debug_assert_eq!(modules.len()?, kept.modules.len() as u64);
        Ok(kept)
    }

    /// Makes a module that is put again the youngest. Returns true if it is kept.
    pub(super) fn renew(&mut self, library: Library) -> bool {
        let Some(entry) = self.modules.get_mut(&library) else {
            return false;
        };
        self.ages.remove(&entry.age);
        entry.age = self.next;
        self.ages.insert(entry.age, library);
        self.next += 1;
        true
    }

    pub(super) fn add(&mut self, library: Library, len: usize) {
        let (age, bytes) = (self.next, len as u64);
        self.modules.insert(library, Entry { age, bytes });
        self.ages.insert(age, library);
        self.bytes += bytes;
        self.next += 1;
    }

    pub(super) fn remove(&mut self, library: Library) {
        if let Some(entry) = self.modules.remove(&library) {
            self.ages.remove(&entry.age);
            self.bytes -= entry.bytes;
        }
    }

    /// The oldest modules to remove for a new one of this length, none of them needed; `None` if
    /// the needed ones leave no room.
    pub(super) fn oldest(
        &self,
        len: usize,
        room: Room,
        needed: &BTreeSet<Library>,
    ) -> Option<Vec<Library>> {
        let mut bytes = self.bytes + len as u64;
        let mut count = self.modules.len() as u64 + 1;
        let mut free = self.ages.values().filter(|it| !needed.contains(it));
        let mut ended = Vec::new();
        while bytes > room.bytes || count > room.modules.into() {
            let library = free.next()?;
            let entry = self.modules.get(library)?;
            bytes -= entry.bytes;
            count -= 1;
            ended.push(*library);
        }
        Some(ended)
    }

    pub(super) fn len(&self) -> u64 {
        self.modules.len() as u64
    }
}
