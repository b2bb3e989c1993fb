//! Databases of facts as a damaged disk returns them.

use alloc::sync::Arc;
use std::io;
use std::sync::OnceLock;

use selvedge_store::redb::StorageBackend;
use selvedge_store::redb::backends::InMemoryBackend;
use selvedge_store::{Schema, Store, StoreError};

const SCHEMA: Schema = Schema {
    file: "fuzz.redb",
    base: "selvedge fuzz: base",
    facts: "selvedge fuzz: facts",
    format: 1,
    limit: 100,
};

/// The length that a disk writes in whole or not at all.
const SECTOR: usize = 512;

/// A medium in memory.
#[derive(Clone, Debug)]
struct Medium(Arc<InMemoryBackend>);

impl StorageBackend for Medium {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        self.0.read(offset, len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self, eventual: bool) -> io::Result<()> {
        self.0.sync_data(eventual)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }
}

impl Medium {
    fn of(bytes: &[u8]) -> Self {
        let medium = InMemoryBackend::new();
        let written = medium.set_len(bytes.len() as u64);
        let written = written.and_then(|()| medium.write(0, bytes));
        assert!(written.is_ok(), "memory has room");
        Self(Arc::new(medium))
    }

    fn bytes(&self) -> Vec<u8> {
        let len = self.len().unwrap_or_default();
        self.read(0, len as usize).unwrap_or_default()
    }
}

/// A database with the numbers from 0 to 9 as facts, the last two stored by the last call: after a
/// crash, and after it was closed.
fn databases() -> Result<[Vec<u8>; 2], StoreError> {
    let medium = Medium::of(&[]);
    let (mut store, _) = Store::<Vec<u64>, u64>::on(medium.clone(), SCHEMA)?;
    store.rebase(&Vec::from([0_u64, 1, 2]), |_| Ok(()))?;
    for facts in [&[3_u64, 4, 5][..], &[6, 7], &[8, 9]] {
        store.append(facts)?;
    }
    let crashed = medium.bytes();
    drop(store);
    Ok([crashed, medium.bytes()])
}

/// A database, and the places of its bytes that are not zero.
struct Whole {
    bytes: Vec<u8>,
    used: Vec<usize>,
}

impl Whole {
    fn of(bytes: Vec<u8>) -> Self {
        let all = bytes.iter().enumerate();
        let used = all.filter(|it| *it.1 != 0).map(|it| it.0).collect();
        Self { bytes, used }
    }
}

/// Damages a database as `data` chooses, and opens it.
///
/// With any damage, the database is refused and stays as it is, or has all facts except at most
/// those of the last call; nothing panics.
///
/// # Panics
/// When one of these does not hold.
pub fn database(data: &[u8]) {
    opened(data);
}

/// Does the same as [`database`]; returns the number of facts, or `None` where it is refused.
fn opened(data: &[u8]) -> Option<u64> {
    static WHOLE: OnceLock<[Whole; 2]> = OnceLock::new();
    let whole = WHOLE.get_or_init(|| databases().unwrap_or_default().map(Whole::of));
    let (first, damages) = data.split_first()?;
    let Whole { bytes, used } = whole.get(usize::from(first % 2))?;
    let mut bytes = bytes.clone();
    for damage in damages.chunks_exact(4).take(8) {
        damaged(&mut bytes, used, damage);
    }
    let medium = Medium::of(&bytes);
    match Store::<Vec<u64>, u64>::on(medium.clone(), SCHEMA) {
        Ok((_, found)) => {
            let found = found.map(|it| [it.base, it.facts].concat());
            let count = found.as_ref().map_or(0, Vec::len) as u64;
            assert_eq!(found.unwrap_or_default(), (0..count).collect::<Vec<_>>());
            let is_empty = bytes.is_empty() && count == 0;
            assert!(is_empty || count == 8 || count == 10, "{count} are there");
            Some(count)
        }
        Err(StoreError::Damage(damage)) => {
            assert!(medium.bytes() == bytes, "it was changed: {damage}");
            None
        }
        Err(other) => {
            assert!(matches!(other, StoreError::Damage(_)), "{other}");
            None
        }
    }
}

/// Changes one byte that is used, or loses a sector or the end.
fn damaged(bytes: &mut Vec<u8>, used: &[usize], damage: &[u8]) {
    let &[how, high, low, change] = damage else {
        return;
    };
    let nth = usize::from(u16::from_be_bytes([high, low]));
    let Some(&at) = used.get(nth % used.len().max(1)) else {
        return;
    };
    match how % 4 {
        0 | 1 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= change.max(1);
            }
        }
        2 => {
            let start = at / SECTOR * SECTOR;
            let sector = bytes.iter_mut().skip(start).take(SECTOR);
            sector.for_each(|it| *it = 0);
        }
        _ => bytes.truncate(at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds;

    #[test]
    fn seeds_are_opened_and_refused() {
        let seeds = seeds().filter(|it| it.target == "database");
        let opened: Vec<_> = seeds.map(|it| (it.name, opened(&it.bytes))).collect();
        let of = |name: &str| opened.iter().find(|it| it.0 == name).map(|it| it.1);
        assert_eq!(of("crashed"), Some(Some(10)));
        assert_eq!(of("closed"), Some(Some(10)));
        assert!(opened.iter().any(|it| it.1.is_none()), "{opened:?}");
    }
}
