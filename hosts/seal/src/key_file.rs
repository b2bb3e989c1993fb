//! Files that keys are kept in.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;
use zeroize::{Zeroize, Zeroizing};

use crate::key::{Key, KeyError, KeyName, Keyring};

/// A key file that cannot be used.
#[derive(Debug, Error)]
pub enum KeyFileError {
    /// No file at this path.
    #[error("no key file {}: copy the mesh's key file, or make one for a new mesh with `{}`", path.display(), new(path))]
    Missing {
        /// The path.
        path: PathBuf,
    },
    /// The file exists and cannot be read.
    #[error("cannot read the key file {}: {source}: give a file that the user of this process may read", path.display())]
    Read {
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file cannot be made.
    #[error("cannot make the key file {}: {source}: choose a name that is free in a folder of yours, on a disk with room", path.display())]
    Create {
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Others than its owner may read or change the file.
    #[error("others may read or change the key file {} (mode {mode:03o}): chmod {allowed:03o} {}{}", path.display(), quoted(path), unless(*mode, *allowed))]
    Permissions {
        /// The path.
        path: PathBuf,
        /// Its mode.
        mode: u32,
        /// The widest mode that is accepted.
        allowed: u32,
    },
    /// The file holds no keys.
    #[error("the key file {} is damaged: {source}: copy the mesh's key file again, or make a new one for all nodes with `mv {} {}.damaged && {}`", path.display(), quoted(path), quoted(path), new(path))]
    Content {
        /// The path.
        path: PathBuf,
        /// The error in the content.
        source: KeyError,
    },
    /// The file cannot be changed. It is as before.
    #[error("cannot change the key file {}: {source}: change it as its owner or as root, on a disk with room, and where a container mounts its folder and not the file alone", path.display())]
    Change {
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another command changes the file, or was interrupted.
    #[error("another command changes the key file {}: try again, or remove {} where no command runs", path.display(), next.display())]
    Busy {
        /// The path.
        path: PathBuf,
        /// The file that the other command has made.
        next: PathBuf,
    },
    /// The file has as many keys as there may be.
    #[error("the key file {} has {} keys, the limit: remove those that no node seals with any more, with `selvedge keys remove`", path.display(), Keyring::LIMIT)]
    Full {
        /// The path.
        path: PathBuf,
    },
    /// The file has no key of this name.
    #[error("the key file {} has no key {name}: `selvedge keys list {}` prints the names", path.display(), quoted(path))]
    Unknown {
        /// The path.
        path: PathBuf,
        /// The name.
        name: KeyName,
    },
    /// The key that is to be removed seals.
    #[error("the key {name} of {} seals: make another one the first, with `selvedge keys use`", path.display())]
    Seals {
        /// The path.
        path: PathBuf,
        /// The name.
        name: KeyName,
    },
    /// The system gives no random numbers.
    #[error("the system gives no random numbers: {0}: make the key on another machine")]
    Entropy(getrandom::Error),
}

/// The longest key file: keys, and room for comments.
const FILE_LIMIT: u64 = 1 << 16;
/// One byte more shows that a file is too long.
const ROOM: usize = (1 << 16) + 1;

/// Reads the keys of a file that only its owner may read.
///
/// # Errors
/// When it cannot be read, others may read or change it (on Unix), it is longer than 64 KiB, or it
/// holds no keys.
pub fn read_key_file(path: &Path) -> Result<Keyring, KeyFileError> {
    read(path, OWNER_READS)
}

/// Does as [`read_key_file`], and takes a file that its group may read as well (mode 0440 or 0640),
/// as service managers and orchestrators hand out secrets. Each user of that group holds the key.
///
/// # Errors
/// As [`read_key_file`], except that the group may read the file.
pub fn read_group_key_file(path: &Path) -> Result<Keyring, KeyFileError> {
    read(path, GROUP_READS)
}

/// The widest mode of a file that only its owner may read.
const OWNER_READS: u32 = 0o600;
/// The widest mode of a file that its group may read, too.
const GROUP_READS: u32 = 0o640;

/// The other remedy, for a file that its group may read and no other user.
const fn unless(mode: u32, allowed: u32) -> &'static str {
    if allowed == OWNER_READS && mode & 0o077 & !GROUP_READS == 0 {
        ", or let its group read it with --group-reads-key (read_group_key_file)"
    } else {
        ""
    }
}

fn read(path: &Path, allowed: u32) -> Result<Keyring, KeyFileError> {
    read_text(path, allowed).map(|it| it.1)
}

/// The text of a key file, and its keys.
fn read_text(path: &Path, allowed: u32) -> Result<(Zeroizing<String>, Keyring), KeyFileError> {
    let read = |source: io::Error| {
        let path = path.to_owned();
        if source.kind() == io::ErrorKind::NotFound {
            KeyFileError::Missing { path }
        } else {
            KeyFileError::Read { path, source }
        }
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let file = fs::metadata(path).map_err(read)?;
        if file.is_dir() {
            return Err(read(io::ErrorKind::IsADirectory.into()));
        }
        let mode = file.permissions().mode() & 0o777;
        if mode & 0o077 & !allowed != 0 {
            return Err(KeyFileError::Permissions {
                path: path.to_owned(),
                mode,
                allowed,
            });
        }
    }
    let damaged = |source| KeyFileError::Content {
        path: path.to_owned(),
        source,
    };
    // With room for all: a Vec that grows leaves a copy behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(ROOM));
    let file = fs::File::open(path).map_err(read)?;
    let len = file.take(FILE_LIMIT + 1).read_to_end(&mut bytes);
    if len.map_err(read)? as u64 > FILE_LIMIT {
        return Err(damaged(KeyError::TooLong { limit: FILE_LIMIT }));
    }
    // Bytes that are not text are replaced, so a line with them is not a key.
    let text = Zeroizing::new(String::from_utf8_lossy(&bytes).into_owned());
    let keyring = Keyring::parse(&text).map_err(damaged)?;
    Ok((text, keyring))
}

/// Creates a file with one new key that only its owner may read (on Unix).
///
/// # Errors
/// When the file exists already, or cannot be created.
pub fn create_key_file(path: &Path) -> Result<(), KeyFileError> {
    let create = |source| KeyFileError::Create {
        path: path.to_owned(),
        source,
    };
    let key = Key::random().map_err(KeyFileError::Entropy)?;
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let mut file = options.open(path).map_err(create)?;
    let mut line = hex::encode(key.bytes());
    let written = writeln!(
        file,
        "# Keys of a mesh: the first one seals, all open.\n{line}"
    );
    line.zeroize();
    written.and_then(|()| file.sync_all()).map_err(|source| {
        // An incomplete key file would block a complete one.
        drop(file);
        let _free = fs::remove_file(path).is_ok();
        create(source)
    })
}

/// The users who may read a key file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Its owner alone.
    Owner,
    /// Its owner and its group.
    Group,
}

/// Adds a new key at the end of a key file: it opens, and does not seal yet. Returns its name.
///
/// # Errors
/// When the file cannot be read or changed, others than `readers` may read it, or it has
/// [`Keyring::LIMIT`] keys.
pub fn add_key(path: &Path, readers: Readers) -> Result<KeyName, KeyFileError> {
    let change = Change::begin(path, readers)?;
    if change.keyring.names().count() >= Keyring::LIMIT {
        let path = path.to_owned();
        return Err(KeyFileError::Full { path });
    }
    let key = Key::random().map_err(KeyFileError::Entropy)?;
    let line = Zeroizing::new(hex::encode(key.bytes()));
    let text = Zeroizing::new([&**change.text, &**line, "\n"].concat());
    change.end(&text)?;
    Ok(key.name())
}

/// Makes a key of a file the first one, which seals.
///
/// # Errors
/// When the file cannot be read or changed, others than `readers` may read it, or it has no such key.
pub fn use_key(path: &Path, readers: Readers, name: KeyName) -> Result<(), KeyFileError> {
    let change = Change::begin(path, readers)?;
    let (line, mut lines) = take_line(path, &change.text, name)?;
    let first = lines.iter().position(|it| name_in(it).is_some());
    lines.insert(first.unwrap_or(lines.len()), line);
    let text = Zeroizing::new(lines.concat());
    change.end(&text)
}

/// Removes a key that does not seal from a file.
///
/// # Errors
/// When the file cannot be read or changed, others than `readers` may read it, it has no such key, or
/// the key is its first one.
pub fn remove_key(path: &Path, readers: Readers, name: KeyName) -> Result<(), KeyFileError> {
    let change = Change::begin(path, readers)?;
    if change.keyring.names().next() == Some(name) {
        let path = path.to_owned();
        return Err(KeyFileError::Seals { path, name });
    }
    let (_, lines) = take_line(path, &change.text, name)?;
    let text = Zeroizing::new(lines.concat());
    change.end(&text)
}

/// The line of a key, and the other lines of its file.
fn take_line<'a>(
    path: &Path,
    text: &'a str,
    name: KeyName,
) -> Result<(&'a str, Vec<&'a str>), KeyFileError> {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let Some(at) = lines.iter().position(|it| name_in(it) == Some(name)) else {
        let path = path.to_owned();
        return Err(KeyFileError::Unknown { path, name });
    };
    let line = lines.remove(at);
    Ok((line, lines))
}

/// The name of the key in a line.
fn name_in(line: &str) -> Option<KeyName> {
    Keyring::parse(line).ok()?.names().next()
}

/// A change of a key file, by a file beside it that takes its place at once. While that exists, no other
/// change begins.
struct Change {
    path: PathBuf,
    target: PathBuf,
    next: PathBuf,
    file: fs::File,
    /// The present text, of complete lines.
    text: Zeroizing<String>,
    keyring: Keyring,
    /// True if the file beside it has taken its place.
    is_over: bool,
}

impl Change {
    fn begin(path: &Path, readers: Readers) -> Result<Self, KeyFileError> {
        let allowed = match readers {
            Readers::Owner => OWNER_READS,
            Readers::Group => GROUP_READS,
        };
        // A missing file, or one that others may read, is named before anything is made.
        read(path, allowed)?;
        let change = |source| KeyFileError::Change {
            path: path.to_owned(),
            source,
        };
        // A link goes on to lead to the file.
        let target = fs::canonicalize(path).map_err(change)?;
        let mut next = target.clone().into_os_string();
        next.push(".next");
        let next = PathBuf::from(next);
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            options.mode(0o600);
        }
        let file = match options.open(&next) {
            Err(it) if it.kind() == io::ErrorKind::AlreadyExists => {
                let path = path.to_owned();
                return Err(KeyFileError::Busy { path, next });
            }
            opened => opened.map_err(change)?,
        };
        // As of now, since no other change is under way.
        let read = read_text(path, allowed);
        let (mut text, keyring) = read.inspect_err(|_| {
            let _free = fs::remove_file(&next).is_ok();
        })?;
        if !text.ends_with('\n') {
            text = Zeroizing::new([&**text, "\n"].concat());
        }
        let path = path.to_owned();
        Ok(Self {
            path,
            target,
            next,
            file,
            text,
            keyring,
            is_over: false,
        })
    }

    /// Replaces the content of the file at once. Its owner and mode stay.
    fn end(mut self, text: &str) -> Result<(), KeyFileError> {
        self.write(text).map_err(|source| KeyFileError::Change {
            path: self.path.clone(),
            source,
        })
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.file.write_all(text.as_bytes())?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::{MetadataExt, fchown};
            let before = fs::metadata(&self.target)?;
            fchown(&self.file, Some(before.uid()), Some(before.gid()))?;
            self.file.set_permissions(before.permissions())?;
        }
        self.file.sync_all()?;
        fs::rename(&self.next, &self.target)?;
        self.is_over = true;
        // The file has changed. A folder that cannot be synced may forget that in a loss of power.
        #[cfg(unix)]
        let _synced = (self.target.parent())
            .is_some_and(|it| fs::File::open(it).and_then(|it| it.sync_all()).is_ok());
        Ok(())
    }
}

/// Frees the name of the file beside it.
impl Drop for Change {
    fn drop(&mut self) {
        if !self.is_over {
            let _free = fs::remove_file(&self.next).is_ok();
        }
    }
}

/// The command that creates this file, and its folder if that is missing.
fn new(path: &Path) -> String {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    match folder.filter(|folder| !folder.exists()) {
        Some(folder) => format!(
            "mkdir -p {} && selvedge key {}",
            quoted(folder),
            quoted(path)
        ),
        None => format!("selvedge key {}", quoted(path)),
    }
}

/// A path in the syntax of a shell.
fn quoted(path: &Path) -> String {
    let path = path.to_string_lossy();
    let is_plain = |it: char| it.is_alphanumeric() || "/._-+=:@%,".contains(it);
    if path.chars().all(is_plain) {
        path.into_owned()
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}
