//! Modules on the disk of a follower, for its later lives.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process;
use std::time::SystemTime;

use selvedge_pcm::Library;

use crate::ModuleId;
use crate::frame::MODULE_MAX;

/// The extension of a module's file, whose name is its SHA-256.
const MODULE: &str = "wasm";
/// The extension of an incomplete file.
const PART: &str = "part";

/// The directory for a follower's modules, and the limit on their bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// The directory, which is created if it is missing. It belongs to one process: another process
    /// removes this one's incomplete files, and modules that exceed its own limit. A file's name is
    /// the SHA-256 of its module; other files are left alone.
    pub dir: PathBuf,
    /// The number of bytes of all modules together. The oldest make room.
    pub bytes: u64,
}

/// The modules on the disk, the oldest first.
#[derive(Debug)]
pub(super) struct Disk {
    room: Room,
    files: VecDeque<Stored>,
    /// The number of files that did not match their names. They were removed.
    pub(super) damaged: u64,
    /// The number of modules that could not be written.
    pub(super) unwritten: u64,
}

#[derive(Clone, Copy, Debug)]
struct Stored {
    id: ModuleId,
    bytes: u64,
}

impl Disk {
    /// Reads the directory, and removes incomplete files of a former life. O(n log n) for n files;
    /// none is read.
    pub(super) fn open(room: Room) -> io::Result<Self> {
        fs::create_dir_all(&room.dir)?;
        let mut found: Vec<(SystemTime, Stored)> = Vec::new();
        for entry in fs::read_dir(&room.dir)? {
            let (path, metadata) = match entry.and_then(|it| Ok((it.path(), it.metadata()?))) {
                Ok(it) => it,
                Err(_) => continue, // It was removed meanwhile.
            };
            if has_ending(&path, PART) && metadata.is_file() {
                let _removed = fs::remove_file(&path);
            }
            if let Some(id) = named(&path).filter(|_| metadata.is_file()) {
                let bytes = metadata.len();
                let at = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                found.push((at, Stored { id, bytes }));
            }
        }
        found.sort_by_key(|it| (it.0, it.1.id));
        let mut disk = Self {
            room,
            files: found.into_iter().map(|it| it.1).collect(),
            damaged: 0,
            unwritten: 0,
        };
        disk.make_room(0);
        Ok(disk)
    }

    /// Stores a module; the oldest make room. It is on the disk when this returns, or is counted as
    /// unwritten.
    pub(super) fn put(&mut self, module: &[u8]) {
        let (id, bytes) = (ModuleId::of(module), module.len() as u64);
        if self.files.iter().any(|it| it.id == id) || bytes > self.room.bytes {
            return;
        }
        self.make_room(bytes);
        match self.write(id, module) {
            Ok(()) => self.files.push_back(Stored { id, bytes }),
            Err(_) => self.unwritten += 1,
        }
    }

    /// A module, if it is stored and undamaged.
    pub(super) fn get(&mut self, library: Library) -> Option<Vec<u8>> {
        let at = self.files.iter().position(|it| it.id.library() == library);
        let stored = at.and_then(|at| Some((at, *self.files.get(at)?)));
        let (at, Stored { id, .. }) = stored?;
        let module = self.read(id);
        match module.as_ref().map(|it| ModuleId::of(it) == id) {
            Ok(true) => return module.ok(),
            // It was removed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Ok(false) | Err(_) => {
                self.damaged += 1;
                let _removed = fs::remove_file(self.path(id));
            }
        }
        self.files.remove(at);
        None
    }

    fn make_room(&mut self, bytes: u64) {
        let mut taken: u64 = self.files.iter().map(|it| it.bytes).sum();
        while taken.saturating_add(bytes) > self.room.bytes {
            let Some(oldest) = self.files.pop_front() else {
                return;
            };
            taken -= oldest.bytes;
            let _removed = fs::remove_file(self.path(oldest.id));
        }
    }

    /// Writes a module under another name first: a file with the right name is complete, even if
    /// the power fails.
    fn write(&self, id: ModuleId, module: &[u8]) -> io::Result<()> {
        let part = self.room.dir.join(format!("{id}.{}.{PART}", process::id()));
        let written = || -> io::Result<()> {
            let mut file = File::create(&part)?;
            file.write_all(module)?;
            file.sync_all()?;
            fs::rename(&part, self.path(id))
        };
        written().inspect_err(|_| {
            let _removed = fs::remove_file(&part);
        })
    }

    /// Reads a file, which may be damaged and longer than any module.
    fn read(&self, id: ModuleId) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let most = MODULE_MAX as u64 + 1;
        File::open(self.path(id))?
            .take(most)
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn path(&self, id: ModuleId) -> PathBuf {
        self.room.dir.join(format!("{id}.{MODULE}"))
    }
}

fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|it| it == ending)
}

/// The module that a file's name refers to.
fn named(path: &Path) -> Option<ModuleId> {
    let stem = path.file_stem().filter(|_| has_ending(path, MODULE))?;
    stem.to_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::library;
    use crate::scratch::Dir;

    impl Dir {
        fn disk(&self, bytes: u64) -> Disk {
            let dir = self.0.clone();
            Disk::open(Room { dir, bytes }).unwrap()
        }

        fn module(&self, module: &[u8]) -> PathBuf {
            self.0.join(format!("{}.{MODULE}", ModuleId::of(module)))
        }

        /// Sets the time of its file to this number of seconds after 1970.
        fn date(&self, module: &[u8], seconds: u64) {
            let file = File::options()
                .write(true)
                .open(self.module(module))
                .unwrap();
            let then = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            file.set_modified(then).unwrap();
        }
    }

    #[test]
    fn a_module_is_there_in_a_later_life_and_what_was_half_written_is_not() {
        let dir = Dir::new("disk-later");
        let mut disk = dir.disk(100);
        assert_eq!(disk.get(library(b"abc")), None);
        disk.put(b"abc");
        disk.put(b"abc");
        assert_eq!(disk.get(library(b"abc")), Some(b"abc".to_vec()));
        let (part, other) = (dir.0.join("x.1.part"), dir.0.join("notes.wasm"));
        fs::write(&part, "ab").unwrap();
        fs::write(&other, [1; 200]).unwrap();
        let mut later = dir.disk(100);
        assert_eq!(later.get(library(b"abc")), Some(b"abc".to_vec()));
        assert!(!part.exists());
        assert!(other.exists(), "it is not named by a hash");
        assert_eq!((later.damaged, later.unwritten), (0, 0));
    }

    #[test]
    fn the_oldest_make_room_in_this_life_and_at_the_beginning_of_the_next() {
        let dir = Dir::new("disk-room");
        let mut disk = dir.disk(10);
        for module in [&b"aaaa"[..], b"bbbb", b"cccc"] {
            disk.put(module);
        }
        assert_eq!(disk.get(library(b"aaaa")), None);
        assert!(!dir.module(b"aaaa").exists());
        assert_eq!(disk.get(library(b"bbbb")), Some(b"bbbb".to_vec()));
        disk.put(b"more than the room has bytes");
        assert!(disk.get(library(b"cccc")).is_some());
        disk.put(b"as much as");
        assert!(disk.get(library(b"as much as")).is_some());
        for module in [
            &b"aa"[..],
            b"bb",
            b"cc",
            b"dd",
            b"as much",
            b"bbbb",
            b"cccc",
        ] {
            disk.put(module);
        }
        let mut taken = fs::read_dir(&dir.0).unwrap();
        assert!(taken.all(|it| it.unwrap().metadata().unwrap().len() == 4));
        dir.date(b"bbbb", 9);
        dir.date(b"cccc", 5);
        let mut smaller = dir.disk(4);
        assert_eq!(smaller.get(library(b"cccc")), None);
        assert!(smaller.get(library(b"bbbb")).is_some());
        assert_eq!(smaller.damaged, 0);
    }

    #[test]
    fn a_damaged_file_is_counted_and_goes_and_one_that_is_gone_is_not_there() {
        let dir = Dir::new("disk-damaged");
        let mut disk = dir.disk(100);
        for damage in [&b"abd"[..], b"", &[7; MODULE_MAX * 2]] {
            disk.put(b"abc");
            fs::write(dir.module(b"abc"), damage).unwrap();
            assert_eq!(disk.get(library(b"abc")), None);
            assert!(!dir.module(b"abc").exists());
        }
        assert_eq!(disk.damaged, 3);
        let longest = vec![7; MODULE_MAX];
        let mut roomy = dir.disk(2 * MODULE_MAX as u64);
        roomy.put(&longest);
        assert_eq!(roomy.get(library(&longest)), Some(longest.clone()));
        fs::write(dir.module(&longest), [&longest[..], b"7"].concat()).unwrap();
        assert_eq!((roomy.get(library(&longest)), roomy.damaged), (None, 1));
        disk.put(b"abc");
        fs::remove_file(dir.module(b"abc")).unwrap();
        fs::create_dir(dir.module(b"abc")).unwrap();
        assert_eq!((disk.get(library(b"abc")), disk.damaged), (None, 4));
        fs::remove_dir(dir.module(b"abc")).unwrap();
        disk.put(b"abc");
        fs::remove_file(dir.module(b"abc")).unwrap();
        assert_eq!(disk.get(library(b"abc")), None);
        assert_eq!(disk.damaged, 4);
    }

    #[test]
    fn what_cannot_be_written_is_counted() {
        let dir = Dir::new("disk-unwritten");
        let mut disk = dir.disk(100);
        fs::remove_dir_all(&dir.0).unwrap();
        disk.put(b"abc");
        assert_eq!((disk.unwritten, disk.get(library(b"abc"))), (1, None));
        fs::write(&dir.0, "no directory").unwrap();
        let room = Room {
            dir: dir.0.clone(),
            bytes: 100,
        };
        assert!(Disk::open(room).is_err());
        fs::remove_file(&dir.0).unwrap();
    }
}
