//! A disk in memory that loses its power, fills up, or does not synchronise writes that it reports as
//! synchronised.

use std::io::{Error, ErrorKind, Result};
use std::sync::{Arc, Mutex, MutexGuard};

use chacha20::ChaCha8Rng;
use chacha20::rand_core::Rng as _;
use selvedge_store::redb::StorageBackend;

/// The unit that a disk writes as a whole or not at all.
const SECTOR: usize = 512;

/// Several handles of one disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    now: Vec<u8>,
    synced: Vec<u8>,
    /// The writes since the last synchronisation.
    writes: Vec<Write>,
    /// The operations until the power is cut; none happens after.
    power: Option<u64>,
    /// The writes until the disk is full.
    room: Option<u64>,
    forgets: bool,
}

#[derive(Clone, Debug)]
enum Write {
    Len(usize),
    Bytes(usize, Vec<u8>),
}

impl Write {
    fn apply(&self, to: &mut Vec<u8>) {
        match self {
            Self::Len(len) => to.resize(*len, 0),
            Self::Bytes(at, bytes) => {
                if to.len() < at + bytes.len() {
                    to.resize(at + bytes.len(), 0);
                }
                to[*at..at + bytes.len()].copy_from_slice(bytes);
            }
        }
    }
}

impl Disk {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let disk = Self::default();
        (disk.lock().now, disk.lock().synced) = (bytes.into(), bytes.into());
        disk
    }

    /// A disk that reports synchronisation and does nothing.
    pub(crate) fn forgetful() -> Self {
        let disk = Self::default();
        disk.lock().forgets = true;
        disk
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.lock().now.clone()
    }

    pub(crate) fn cut_power_after(&self, operations: u64) {
        self.lock().power = Some(operations);
    }

    pub(crate) fn fill_after(&self, writes: Option<u64>) {
        self.lock().room = writes;
    }

    /// Keeps the synchronised writes after a crash, and some sectors of the others.
    pub(crate) fn crash(&self, rng: &mut ChaCha8Rng) {
        let mut disk = self.lock();
        let mut kept = core::mem::take(&mut disk.synced);
        for write in core::mem::take(&mut disk.writes) {
            match write {
                Write::Bytes(at, bytes) => {
                    for (nth, sector) in bytes.chunks(SECTOR).enumerate() {
                        if rng.next_u32().is_multiple_of(2) {
                            Write::Bytes(at + nth * SECTOR, sector.into()).apply(&mut kept);
                        }
                    }
                }
                Write::Len(_) if rng.next_u32().is_multiple_of(2) => write.apply(&mut kept),
                Write::Len(_) => {}
            }
        }
        (disk.now, disk.synced, disk.power) = (kept.clone(), kept, None);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }

    fn write_all(&self, write: Write) -> Result<()> {
        let mut disk = self.lock();
        disk.count()?;
        if let Some(room) = &mut disk.room {
            *room = room.checked_sub(1).ok_or(ErrorKind::StorageFull)?;
        }
        write.apply(&mut disk.now);
        disk.writes.push(write);
        Ok(())
    }
}

impl Inner {
    fn count(&mut self) -> Result<()> {
        let Some(power) = &mut self.power else {
            return Ok(());
        };
        *power = power.checked_sub(1).ok_or(ErrorKind::BrokenPipe)?;
        Ok(())
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> Result<u64> {
        Ok(self.lock().now.len() as u64)
    }

    fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        let at = offset as usize;
        let disk = self.lock();
        let bytes = disk.now.get(at..at.saturating_add(len));
        bytes
            .map(<[u8]>::to_vec)
            .ok_or_else(|| Error::from(ErrorKind::UnexpectedEof))
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.write_all(Write::Len(len as usize))
    }

    fn sync_data(&self, eventual: bool) -> Result<()> {
        let mut disk = self.lock();
        disk.count()?;
        // An eventual synchronisation only orders writes: a power cut may still lose them.
        if !eventual && !disk.forgets {
            let Inner { synced, writes, .. } = &mut *disk;
            writes.drain(..).for_each(|it| it.apply(synced));
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.write_all(Write::Bytes(offset as usize, data.into()))
    }
}
