//! Keys, and rings of them.

use core::fmt;
use core::str::FromStr;

use sha2::{Digest, Sha256};
use thiserror::Error;
use zeroize::Zeroize;

/// A secret of the mesh: 32 bytes. Wiped when it is dropped, and never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; Self::LEN]);

/// The name of a key, in 8 hexadecimal digits: a part of a hash, which reveals nothing about the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyName([u8; 4]);

/// The error for a text that is not the name of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the name of a key has 8 hexadecimal digits: `selvedge keys list FILE` prints the names")]
pub struct NotAName;

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl FromStr for KeyName {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Self, NotAName> {
        let mut name = [0; 4];
        hex::decode_to_slice(text, &mut name).map_err(|_| NotAName)?;
        Ok(Self(name))
    }
}

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
        let KeyName([mark, ..]) = self.name();
        mark
    }

    /// The name of the key.
    #[must_use]
    pub fn name(&self) -> KeyName {
        let hash = Sha256::new()
            .chain_update(b"selvedge key mark")
            .chain_update(self.0)
            .finalize();
        let mut name = [0; 4];
        for (to, from) in name.iter_mut().zip(hash) {
            *to = from;
        }
        KeyName(name)
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

    /// The names of the keys. The first one seals.
    pub fn names(&self) -> impl Iterator<Item = KeyName> + '_ {
        let all = core::iter::once(&self.first).chain(&self.others);
        all.map(|it| it.1.name())
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
