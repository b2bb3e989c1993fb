//! Keys, and the files that they are kept in.

use core::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use thiserror::Error;
use zeroize::{Zeroize, Zeroizing};

/// A secret of the mesh: 32 bytes. Wiped when it is dropped, and never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; Self::LEN]);

/// The keys of a mesh: the first one seals, all open. At least one, at most [`Self::LIMIT`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyring {
    /// Each key with its mark.
    first: (u8, Key),
    others: Vec<(u8, Key)>,
}

/// The error for a text that is not a keyring.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KeyError {
    /// A line is not a key.
    #[error("line {line} is not a key of 64 hexadecimal digits")]
    Line {
        /// The line, from 1.
        line: usize,
    },
    /// No key in the text.
    #[error("no line has a key of 64 hexadecimal digits")]
    None,
    /// It is too long for a few keys and comments.
    #[error("it is longer than {limit} bytes")]
    TooLong {
        /// The largest length.
        limit: u64,
    },
    /// Too many keys.
    #[error("there are more than {limit} keys: remove the keys that no node seals with any more")]
    TooMany {
        /// The largest number.
        limit: usize,
    },
}

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
    /// The system gives no random numbers.
    #[error("the system gives no random numbers: {0}: make the key on another machine")]
    Entropy(getrandom::Error),
}

impl Key {
    const LEN: usize = 32;

    /// A new key, drawn at random.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; Self::LEN];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    pub(super) const fn bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }

    /// A byte that distinguishes a few keys, and reveals nothing about the key.
    fn mark(&self) -> u8 {
        let hash = Sha256::new()
            .chain_update(b"selvedge key mark")
            .chain_update(self.0)
            .finalize();
        hash.first().copied().unwrap_or_default()
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({:02x}..)", self.mark())
    }
}

impl Keyring {
    /// The largest number of keys: each costs one try for a datagram that has the mark of all of them and
    /// that none of them opens.
    pub const LIMIT: usize = 8;

    /// A ring of one key.
    #[must_use]
    pub fn of(key: Key) -> Self {
        Self {
            first: (key.mark(), key),
            others: Vec::new(),
        }
    }

    /// Reads a ring: a line of 64 hexadecimal digits for each key. Empty lines, and text after a `#`, are
    /// ignored.
    ///
    /// # Errors
    /// When a line is not a key, or the text has no key or more than [`Self::LIMIT`].
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let mut keys = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let mut key = Key([0; Key::LEN]);
            hex::decode_to_slice(line, &mut key.0).map_err(|_| KeyError::Line { line: number })?;
            keys.push((key.mark(), key));
        }
        if keys.len() > Self::LIMIT {
            return Err(KeyError::TooMany { limit: Self::LIMIT });
        }
        let mut keys = keys.into_iter();
        let first = keys.next().ok_or(KeyError::None)?;
        let others = keys.collect();
        Ok(Self { first, others })
    }

    /// The key that seals, with its mark.
    pub(super) const fn first(&self) -> &(u8, Key) {
        &self.first
    }

    /// The keys with this mark.
    pub(super) fn marked(&self, mark: u8) -> impl Iterator<Item = &Key> {
        let all = core::iter::once(&self.first).chain(&self.others);
        all.filter(move |it| it.0 == mark).map(|(_, key)| key)
    }
}

/// The longest key file: keys, and room for comments.
const FILE_LIMIT: u64 = 1 << 16;

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
    let mut bytes = Zeroizing::new(Vec::new());
    let file = fs::File::open(path).map_err(read)?;
    let len = file.take(FILE_LIMIT + 1).read_to_end(&mut bytes);
    if len.map_err(read)? as u64 > FILE_LIMIT {
        return Err(damaged(KeyError::TooLong { limit: FILE_LIMIT }));
    }
    // Bytes that are not text are replaced, so a line with them is not a key.
    let text = Zeroizing::new(String::from_utf8_lossy(&bytes).into_owned());
    Keyring::parse(&text).map_err(damaged)
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
