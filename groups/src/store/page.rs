//! Pages of a map that fit into a frame.

use alloc::string::String;
use alloc::vec::Vec;

use selvedge_core::wire::{List, Room};
use serde::{Deserialize, Serialize};

use crate::message::encoded_len;
use crate::store::{Entry, Key};

/// Some entries of a map, at one version of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Page {
    /// The version of the map.
    pub version: u64,
    /// The entries, by name.
    pub entries: List<(Key, Entry), 0>,
    /// True if no other entry follows.
    pub is_last: bool,
}

/// A change of an entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct EntryChange {
    /// The entry.
    pub key: Key,
    /// The version of the map that changed it.
    pub version: u64,
    /// Its content; `None` if it was removed.
    pub entry: Option<Entry>,
}

/// The changes of a prefix that a node has: all up to one of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Position {
    /// The version of the last change that the node has.
    pub version: u64,
    /// The name of its entry without the prefix, where others of the same version may follow.
    pub after: Option<String>,
    /// A node that began with no entries, at this version of the map, needs no entry that was removed before.
    pub base: u64,
}

impl Position {
    /// The position of a node that has all changes up to a version; 0 for a node that has none.
    #[must_use]
    pub const fn at(version: u64) -> Self {
        Self {
            version,
            after: None,
            base: 0,
        }
    }

    /// Returns true if the node has no entry yet.
    pub(super) const fn is_beginning(&self) -> bool {
        self.version == 0 && self.after.is_none()
    }

    /// The version up to which the node has all entries that were removed.
    pub(super) fn complete(&self) -> u64 {
        let version = match self.after {
            None => self.version,
            Some(_) => self.version.saturating_sub(1),
        };
        version.max(self.base)
    }

    /// Returns true if this change comes after it.
    pub(super) fn is_before(&self, prefix: &str, version: u64, key: &str) -> bool {
        let is_after = |after: &String| key.strip_prefix(prefix).is_some_and(|it| it > &**after);
        version > self.version
            || version == self.version && self.after.as_ref().is_some_and(is_after)
    }

    /// The position after these changes, which came with a version of the map.
    pub(super) fn after(&self, prefix: &str, found: &Changes) -> Self {
        let Changes {
            version,
            changes,
            is_last,
        } = found;
        match changes.last() {
            Some(last) if !is_last => Self {
                version: last.version,
                after: last.key.strip_prefix(prefix).map(String::from),
                base: match self.is_beginning() {
                    true => *version,
                    false => self.base,
                },
            },
            Some(_) | None => Self::at(self.version.max(*version)),
        }
    }
}

/// Some changes of a prefix, at one version of the map.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Changes {
    /// The version of the map.
    pub version: u64,
    /// The changes, by version and name. Of several changes of an entry it is the last one.
    pub changes: List<EntryChange, 0>,
    /// True if no other change follows.
    pub is_last: bool,
}

/// As many of these items as have room, but one at least: it came in a frame. Returns true if these are all.
pub(super) fn fill<T: Serialize>(
    mut room: Room,
    items: impl IntoIterator<Item = T>,
) -> (List<T, 0>, bool) {
    let mut items = items.into_iter();
    let mut taken: Vec<T> = items.by_ref().take(1).collect();
    let is_taken = taken.iter().all(|it| room.take(encoded_len(it)));
    let (more, left): (Vec<T>, _) = match is_taken {
        true => room.fill(items.by_ref(), encoded_len),
        false => (Vec::new(), items.next()),
    };
    taken.extend(more);
    (taken.into_iter().collect(), left.is_none())
}
