//! The lives of one node that share a folder.

use core::time::Duration;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use selvedge_core::{Incarnation, Member, NodeId};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Damage, Found, Schema, Store, StoreError};

/// The content of a node's folder, as its user states it. A node that begins without the memory of its
/// earlier lives, and votes as before, breaks promises that it gave; so the statement must be true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// The memory of its earlier life.
    Kept,
    /// No memory: the node was never started.
    NeverStarted,
    /// No memory: it is lost.
    Lost,
}

/// A life that begins, which the node never had before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Beginning<B, F> {
    /// The first life, with incarnation 0.
    First(Member),
    /// A life after forgotten lives. It is later than they are if the node starts less often than once a
    /// second, and its clock is right.
    Lost(Member),
    /// The life after the life that stored this.
    Later(Member, Found<B, F>),
}

/// 2026, in time since 1970.
const EPOCH: Duration = Duration::from_secs(1_767_225_600);

/// The store of a node. A base is a life of the node and its data.
pub type NodeStore<B, F> = Store<(Member, B), F>;

/// A store, and the beginning of a life.
pub type Opened<B, F> = (NodeStore<B, F>, Beginning<B, F>);

impl Memory {
    /// Opens the folder of a node. The host stores a base of the
    /// new life ([`Store::rebase`]) before another node learns of it. A damaged file is put aside
    /// ([`StoreError::PutAside`]).
    ///
    /// # Errors
    /// As [`Store::open`], and when the user's statement is wrong, or the folder belongs to another node.
    pub fn open<B, F>(
        self,
        dir: &Path,
        schema: Schema,
        id: NodeId,
    ) -> Result<Opened<B, F>, StoreError>
    where
        B: Serialize + DeserializeOwned,
        F: Serialize + DeserializeOwned,
    {
        schema.check()?;
        // A refused start leaves nothing behind. A link to a file on an absent disk is an error below.
        let file = dir.join(schema.file);
        if self == Self::Kept && !file.is_symlink() && matches!(file.try_exists(), Ok(false)) {
            return Err(StoreError::NothingStored);
        }
        let (store, found) = match NodeStore::<B, F>::open(dir, schema) {
            Err(StoreError::Damage(Damage::Contents { file, found })) => {
                let aside = put_aside(&file).map_err(|source| StoreError::Folder {
                    dir: dir.into(),
                    source,
                })?;
                return Err(StoreError::PutAside { file, aside, found });
            }
            opened => opened?,
        };
        let first = |incarnation| Member { id, incarnation };
        let beginning = match (found, self) {
            (None, Self::Kept) => return Err(StoreError::NothingStored),
            (Some(_), Self::NeverStarted | Self::Lost) => return Err(StoreError::AlreadyStored),
            (None, Self::NeverStarted) => Beginning::First(first(Incarnation(0))),
            (None, Self::Lost) => Beginning::Lost(first(after_a_loss())),
            (Some(found), Self::Kept) => {
                let (former, base) = found.base;
                if former.id != id {
                    let (asked, found) = (id, former.id);
                    return Err(StoreError::OtherNode { asked, found });
                }
                let facts = found.facts;
                Beginning::Later(first(former.incarnation.next()), Found { base, facts })
            }
        };
        Ok((store, beginning))
    }
}

/// Renames the file to the first free name of `.damaged`, `.damaged-2`, and so on.
fn put_aside(file: &Path) -> io::Result<PathBuf> {
    let mut aside = file.with_extension("damaged");
    let mut nth = 1;
    while aside.try_exists()? {
        nth += 1;
        aside = file.with_extension(format!("damaged-{nth}"));
    }
    fs::rename(file, &aside)?;
    Ok(aside)
}

/// Earlier lives are numbered one by one, from 0 or from a number such as this.
fn after_a_loss() -> Incarnation {
    let since_1970 = UNIX_EPOCH.elapsed().unwrap_or_default();
    let since_2026 = since_1970.saturating_sub(EPOCH).as_secs();
    Incarnation(u32::try_from(since_2026).unwrap_or(u32::MAX))
}
