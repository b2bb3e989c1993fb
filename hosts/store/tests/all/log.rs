//! Numbers that are stored as facts, and their list as a base.

use core::ops::Range;

use selvedge_store::redb::{self, StorageBackend, TableDefinition};
use selvedge_store::{Found, Schema, Store, StoreError};

pub(crate) const SCHEMA: Schema = Schema {
    file: "test.redb",
    base: "selvedge test: base",
    facts: "selvedge test: facts",
    format: 2,
    limit: 7,
};

/// A table beside the facts, written together with them.
const BESIDE: TableDefinition<'_, u64, u64> = TableDefinition::new("selvedge test: beside");

/// The number of numbers that were stored, from 0; `None` if no base was.
pub(crate) type Log = Option<u64>;

/// Opens a store in which the facts are the numbers from 0.
pub(crate) fn open(medium: impl StorageBackend) -> Result<(Store<Vec<u64>, u64>, Log), StoreError> {
    let (store, found) = Store::<Vec<u64>, u64>::on(medium, SCHEMA)?;
    let stored = found.map(count);
    assert_eq!(beside(&store)?, stored.unwrap_or_default());
    Ok((store, stored))
}

/// The count of all numbers, which must be in order and unique.
pub(crate) fn count(found: Found<Vec<u64>, u64>) -> u64 {
    let all: Vec<u64> = found.base.into_iter().chain(found.facts).collect();
    let count = all.len() as u64;
    assert_eq!(all, (0..count).collect::<Vec<_>>());
    count
}

fn beside(store: &Store<Vec<u64>, u64>) -> Result<u64, StoreError> {
    store.read(|txn| match txn.open_table(BESIDE) {
        Ok(table) => Ok(table.get(0)?.map_or(0, |it| it.value())),
        Err(redb::TableError::TableDoesNotExist(_)) => Ok(0),
        Err(error) => Err(error.into()),
    })
}

/// Stores these numbers; the earlier ones are stored already.
pub(crate) fn write(
    store: &mut Store<Vec<u64>, u64>,
    numbers: Range<u64>,
) -> Result<(), StoreError> {
    let facts: Vec<u64> = numbers.clone().collect();
    let base = || (0..numbers.end).collect::<Vec<_>>();
    store.write(&facts, base, |txn| {
        txn.open_table(BESIDE)?.insert(0, numbers.end)?;
        Ok(())
    })
}

/// Stores a first base with this number of numbers.
pub(crate) fn begin(store: &mut Store<Vec<u64>, u64>, count: u64) -> Result<(), StoreError> {
    store.rebase(&(0..count).collect::<Vec<_>>(), |txn| {
        txn.open_table(BESIDE)?.insert(0, count)?;
        Ok(())
    })
}
