//! The modules of a follower, and the module that it waits for.

mod disk;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use selvedge_core::{Span, Time};
use selvedge_pcm::Library;
use sha2::{Digest as _, Sha256};

use self::disk::Disk;
pub use self::disk::Room;

/// The wait for a module before it is requested again.
const PATIENCE: Span = Span::secs(2);
/// The number of requests.
const TRIES: u8 = 5;

/// The library of a module: the first 64 bits of its SHA-256, the first byte the highest one.
#[must_use]
pub fn library(module: &[u8]) -> Library {
    let digest: [u8; 32] = Sha256::digest(module).into();
    let first = digest.first_chunk::<8>().copied().unwrap_or_default();
    Library(u64::from_be_bytes(first))
}

/// The modules of a follower. The machine decides which to remove; the disk keeps them as long as
/// it has room.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    modules: BTreeMap<Library, Arc<[u8]>>,
    wants: Option<Want>,
    disk: Option<Disk>,
}

/// Counters of trouble with modules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Damage {
    /// The number of damaged modules on the disk.
    pub(crate) damaged: u64,
    /// The number of modules that could not be written.
    pub(crate) unwritten: u64,
}

#[derive(Debug)]
struct Want {
    library: Library,
    due: Time,
    asked: u8,
}

impl Shelf {
    /// A shelf with the modules on the disk, if there is room for modules.
    pub(crate) fn open(room: Option<Room>) -> io::Result<Self> {
        Ok(Self {
            disk: room.map(Disk::open).transpose()?,
            ..Self::default()
        })
    }

    pub(crate) fn has(&self, library: Library) -> bool {
        self.modules.contains_key(&library)
    }

    /// Reads a module from the disk. Returns true if it is there.
    pub(crate) fn read(&mut self, library: Library) -> bool {
        let module = self.disk.as_mut().and_then(|it| it.get(library));
        let Some(module) = module else {
            return false;
        };
        self.modules.insert(library, module.into());
        true
    }

    pub(crate) fn damage(&self) -> Damage {
        let disk = self.disk.as_ref();
        disk.map_or_else(Damage::default, |it| Damage {
            damaged: it.damaged,
            unwritten: it.unwritten,
        })
    }

    pub(crate) fn drop(&mut self, library: Library) {
        self.modules.remove(&library);
    }

    /// All these modules; `None` if one is missing.
    pub(crate) fn get_all(&self, libraries: &[Library]) -> Option<Vec<Arc<[u8]>>> {
        let all = libraries.iter().map(|it| self.modules.get(it).cloned());
        all.collect()
    }

    /// Begins to wait for a module, in place of any other.
    pub(crate) fn want(&mut self, library: Library, now: Time) {
        self.wants = Some(Want {
            library,
            due: now,
            asked: 0,
        });
    }

    /// Accepts a module that has come. Returns its name, if it was wanted.
    pub(crate) fn take(&mut self, module: &[u8]) -> Option<Library> {
        let want = self.wants.as_ref()?;
        let library = library(module);
        if want.library != library {
            return None;
        }
        self.wants = None;
        if let Some(disk) = &mut self.disk {
            disk.put(module);
        }
        self.modules.insert(library, module.into());
        Some(library)
    }

    /// Ends the wait for a module that cannot be had. Returns true if it was wanted.
    pub(crate) fn give_up(&mut self, library: Library) -> bool {
        self.wants.take_if(|it| it.library == library).is_some()
    }

    /// The time until the module has to be requested again.
    pub(crate) fn wait(&self, now: Time) -> Option<Span> {
        // A request that is due already waits until the follower is awake.
        let want = self.wants.as_ref().filter(|it| it.due > now);
        want.map(|it| it.due.since(now))
    }

    /// The module that is due: to request it (true), or to give it up.
    pub(crate) fn due(&mut self, now: Time) -> Option<(Library, bool)> {
        let want = self.wants.as_mut().filter(|it| it.due <= now)?;
        let library = want.library;
        if want.asked >= TRIES {
            self.wants = None;
            return Some((library, false));
        }
        want.asked += 1;
        want.due = now + PATIENCE;
        Some((library, true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Time = Time::ZERO;

    #[test]
    fn a_module_is_named_by_the_first_64_bits_of_its_hash() {
        // The hash of "abc", from FIPS 180-2.
        assert_eq!(library(b"abc"), Library(0xba78_16bf_8f01_cfea));
    }

    #[test]
    fn a_module_that_is_wanted_is_taken_and_no_other() {
        let (mut shelf, abc) = (Shelf::default(), library(b"abc"));
        assert_eq!(shelf.take(b"abc"), None);
        shelf.want(abc, START);
        assert_eq!(shelf.take(b"abd"), None);
        assert_eq!(shelf.get_all(&[abc]), None);
        assert_eq!(shelf.take(b"abc"), Some(abc));
        assert_eq!(shelf.get_all(&[abc]), Some(vec![Arc::from(*b"abc")]));
        assert_eq!(shelf.take(b"abc"), None);
        shelf.drop(abc);
        assert!(!shelf.has(abc));
    }

    #[test]
    fn a_module_that_cannot_be_had_is_not_waited_for() {
        let (mut shelf, abc) = (Shelf::default(), library(b"abc"));
        shelf.want(abc, START);
        assert!(!shelf.give_up(library(b"abd")));
        assert!(shelf.give_up(abc));
        assert_eq!(shelf.due(START), None);
    }

    #[test]
    fn a_later_life_has_the_modules_on_the_disk() {
        let dir = std::env::temp_dir();
        let dir = dir.join(format!("selvedge-faas-shelf-{}", std::process::id()));
        let (room, abc) = (Room { dir, bytes: 100 }, library(b"abc"));
        let open = || Shelf::open(Some(room.clone())).unwrap();
        let mut shelf = open();
        shelf.want(abc, START);
        assert_eq!(shelf.take(b"abc"), Some(abc));
        let mut later = open();
        assert!(!later.has(abc));
        assert!(later.read(abc) && later.has(abc));
        assert!(!later.read(library(b"abd")));
        std::fs::remove_dir_all(&room.dir).unwrap();
        let mut later = open();
        std::fs::remove_dir_all(&room.dir).unwrap();
        later.want(abc, START);
        assert_eq!(later.take(b"abc"), Some(abc));
        let (damaged, unwritten) = (0, 1);
        assert_eq!(later.damage(), Damage { damaged, unwritten });
    }

    #[test]
    fn a_module_is_asked_for_now_and_then_and_given_up() {
        let (mut shelf, abc) = (Shelf::default(), library(b"abc"));
        shelf.want(abc, START);
        assert_eq!(shelf.wait(START), None, "it is due");
        let mut now = START;
        for _ in 0..TRIES {
            assert_eq!(shelf.due(now), Some((abc, true)));
            assert_eq!(shelf.due(now), None);
            assert_eq!(shelf.wait(now), Some(PATIENCE));
            now = now + PATIENCE;
        }
        assert_eq!(shelf.due(now), Some((abc, false)));
        assert_eq!(shelf.due(now), None);
        assert_eq!(shelf.wait(now), None);
        assert!(!shelf.give_up(abc));
    }
}
