//! A view of a medium that keeps written blocks in memory.

use core::ops::Range;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Result};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::StorageBackend;

/// A medium with several handles, and two measures that redb 2 needs to survive a crash at any moment.
///
/// A crash while it repairs a database, before it cuts the end of the file, leaves a database that counts as
/// closed and is longer than its header states. Each later start would panic. A database that was not closed
/// is repaired, so each database is presented as not closed. And redb writes a header that counts on a longer
/// file before that length is synchronised: a crash may keep the header without the length.
#[derive(Clone, Debug)]
pub(crate) struct Shared(pub(crate) Arc<dyn StorageBackend>);

/// The place of a database's flags, and the flag of a database that is not closed.
const FLAGS: (u64, u8) = (9, 2);

impl StorageBackend for Shared {
    fn len(&self) -> Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        let (place, is_open) = FLAGS;
        let mut bytes = self.0.read(offset, len)?;
        if let Some(at) = place.checked_sub(offset)
            && let Some(flags) = bytes.get_mut(at as usize)
        {
            *flags |= is_open;
        }
        Ok(bytes)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.0.set_len(len)?;
        self.0.sync_data(false)
    }

    fn sync_data(&self, eventual: bool) -> Result<()> {
        self.0.sync_data(eventual)
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.0.write(offset, data)
    }
}

const BLOCK: u64 = 4_096;

/// A medium that is read and never changed: writes stay in memory. A database that is
/// opened on it may repair itself, and the file stays as it is.
#[derive(Debug)]
pub(crate) struct Copy {
    of: Shared,
    written: Mutex<Written>,
}

#[derive(Debug)]
struct Written {
    len: u64,
    /// The length of the medium, or less if it was cut: from here on there are zeros.
    kept: u64,
    blocks: BTreeMap<u64, Vec<u8>>,
}

impl Copy {
    pub(crate) fn new(of: Shared) -> Result<Self> {
        let (len, blocks) = (of.len()?, BTreeMap::new());
        let kept = len;
        let written = Mutex::new(Written { len, kept, blocks });
        Ok(Self { of, written })
    }

    fn lock(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn block(&self, written: &Written, nth: u64) -> Result<Vec<u8>> {
        if let Some(block) = written.blocks.get(&nth) {
            return Ok(block.clone());
        }
        let len = written.kept.saturating_sub(nth * BLOCK).min(BLOCK);
        let mut block = match len {
            0 => Vec::new(),
            _ => self.of.read(nth * BLOCK, len as usize)?,
        };
        block.resize(BLOCK as usize, 0);
        Ok(block)
    }
}

impl StorageBackend for Copy {
    fn len(&self) -> Result<u64> {
        Ok(self.lock().len)
    }

    fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        let written = self.lock();
        let end = offset.checked_add(len as u64);
        // Checked before memory is allocated: a damaged file may name any length.
        let Some(end) = end.filter(|it| *it <= written.len) else {
            return Err(ErrorKind::UnexpectedEof.into());
        };
        let mut bytes = Vec::with_capacity(len);
        for nth in offset / BLOCK..end.div_ceil(BLOCK) {
            let block = self.block(&written, nth)?;
            let range = part(nth, offset, end);
            bytes.extend_from_slice(block.get(range).unwrap_or_default());
        }
        Ok(bytes)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        let mut written = self.lock();
        if len < written.len {
            (written.kept, written.len) = (written.kept.min(len), len);
            written.blocks.retain(|nth, _| *nth * BLOCK < len);
            if let Some(last) = written.blocks.get_mut(&(len / BLOCK)) {
                last.truncate((len % BLOCK) as usize);
                last.resize(BLOCK as usize, 0);
            }
        }
        written.len = len;
        Ok(())
    }

    fn sync_data(&self, _: bool) -> Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, mut data: &[u8]) -> Result<()> {
        let mut written = self.lock();
        let end = offset.saturating_add(data.len() as u64);
        for nth in offset / BLOCK..end.div_ceil(BLOCK) {
            let mut block = self.block(&written, nth)?;
            let range = part(nth, offset, end);
            let (first, rest) = data.split_at(range.len().min(data.len()));
            if let Some(block) = block.get_mut(range) {
                block.copy_from_slice(first);
            }
            written.blocks.insert(nth, block);
            data = rest;
        }
        Ok(())
    }
}

/// The part of a block that lies between two places of the medium.
fn part(nth: u64, offset: u64, end: u64) -> Range<usize> {
    let within = |at: u64| at.saturating_sub(nth * BLOCK).min(BLOCK) as usize;
    within(offset)..within(end)
}
