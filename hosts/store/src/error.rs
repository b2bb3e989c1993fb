//! The errors of a store.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a store cannot be opened, or cannot store.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The folder cannot be used.
    #[error("the folder {dir}: {source}: see whether its disk has room, or name another folder")]
    Folder {
        /// The folder.
        dir: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another process has the folder.
    #[error("another process uses the folder {0}: stop it, or name another folder")]
    InUse(PathBuf),
    /// The database cannot do what it is asked.
    #[error(
        "the database {file}: {source}: see whether the disk is full, and start again: all that was stored before \
         is there"
    )]
    Database {
        /// The file.
        file: PathBuf,
        /// The database's error.
        source: Box<redb::Error>,
    },
    /// The stored bytes cannot be used.
    #[error(transparent)]
    Damage(#[from] Damage),
}

/// Why stored bytes cannot be used. The file was left as it is.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Damage {
    /// The file, or what is in it, contradicts itself.
    #[error("{file} is damaged ({found}): put it aside, and begin without it")]
    Contents {
        /// The file.
        file: PathBuf,
        /// The contradiction.
        found: String,
    },
    /// An entry cannot be decoded, though its checksum is right.
    #[error("an entry of {file} cannot be decoded ({source}): put it aside, and begin without it")]
    Entry {
        /// The file.
        file: PathBuf,
        /// The error of the decoder.
        source: postcard::Error,
    },
    /// Another program wrote the file, or its first start was cut off by an older version.
    #[error("{0} is the database of another program: name another folder")]
    Foreign(PathBuf),
    /// A later version wrote it.
    #[error(
        "{file} has format {found}, and this program knows up to {known}: run a later version of it"
    )]
    Newer {
        /// The file.
        file: PathBuf,
        /// Its format.
        found: u16,
        /// The format of this program.
        known: u16,
    },
    /// An earlier version wrote it, whose entries would be misread.
    #[error(
        "{file} has format {found}, of an earlier version, and this program reads {known}: finish what was begun \
         under the earlier version, put the file aside, and begin without it"
    )]
    Older {
        /// The file.
        file: PathBuf,
        /// Its format.
        found: u16,
        /// The format of this program.
        known: u16,
    },
}
