//! The errors of a store.

use std::io;
use std::path::PathBuf;

use selvedge_core::NodeId;
use thiserror::Error;

/// The reason why a store cannot be opened, or cannot store.
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
    /// A name in the [`Schema`](crate::Schema) cannot be used; this field.
    #[error(
        "the schema's {0} cannot be used: give a file name without a folder, other than `lock`, and two different names of tables"
    )]
    Schema(&'static str),
    /// Another process has the folder.
    #[error("another process uses the folder {0}: stop it, or name another folder")]
    InUse(PathBuf),
    /// The database fails.
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
    /// The file was damaged, and is out of the way now.
    #[error(
        "{file} is damaged ({found}), and was put aside as {aside}: begin as a node whose memory is lost, and never \
         as one that was never started"
    )]
    PutAside {
        /// The file.
        file: PathBuf,
        /// Its new name.
        aside: PathBuf,
        /// The contradiction.
        found: String,
    },
    /// Nothing is stored, for a node that was started before.
    #[error(
        "nothing is stored here: begin as a node that was never started if that is so, or as one whose memory is lost"
    )]
    NothingStored,
    /// Data are stored, for a node that was to begin without them.
    #[error("the folder holds the memory of a node: begin with it, or name another folder")]
    AlreadyStored,
    /// Another node stored it.
    #[error("this is the folder of node {found}, and not of {asked}: give each node its own")]
    OtherNode {
        /// The node that was to begin.
        asked: NodeId,
        /// The node that uses the folder.
        found: NodeId,
    },
}

/// An error of the database, in work on tables of a program's own: `?` converts each of redb's errors.
#[derive(Debug)]
pub struct Failed(pub(crate) Box<redb::Error>);

impl<E: Into<redb::Error>> From<E> for Failed {
    fn from(error: E) -> Self {
        Self(Box::new(error.into()))
    }
}

/// The reason why stored bytes cannot be used. The file was left unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Damage {
    /// The file, or its content, contradicts itself.
    #[error("{file} is damaged ({found}): put it aside, and begin as a node whose memory is lost")]
    Contents {
        /// The file.
        file: PathBuf,
        /// The contradiction.
        found: String,
    },
    /// An entry cannot be decoded, though its checksum is right.
    #[error(
        "an entry of {file} cannot be decoded ({source}): run the program and version that stored it; \
         if the file is damaged, put it aside, and begin as a node whose memory is lost"
    )]
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
    /// An earlier version wrote it, and its entries would be misread.
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
