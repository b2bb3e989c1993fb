//! What gateways copy from each other.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// Era and index: which table is the later one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label {
    /// The era of the manager that labelled it.
    pub era: u8,
    /// How many tables it had labelled before in this era.
    pub index: u8,
}

/// Which gateways count, by id, the first one for two where votes are even.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Base(pub Vec<u64>);

impl Base {
    /// More than half, or half with the first one (dynamic-linear voting).
    pub(super) fn has_majority(&self, votes: &BTreeSet<u64>) -> bool {
        let count = self.0.iter().filter(|it| votes.contains(it)).count();
        let has_first = self.0.first().is_some_and(|it| votes.contains(it));
        2 * count > self.0.len() || 2 * count == self.0.len() && has_first
    }
}

/// What is copied: the table, and which gateways count.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shared {
    /// Of each follower a version: odd while it is here, even when it was purged, 0 when nothing was
    /// heard of it.
    pub table: Vec<u8>,
    /// Which gateways count.
    pub base: Base,
    /// Which are to count next; until all know it both do.
    pub next: Option<Base>,
}

impl Shared {
    pub(super) fn has_majority(&self, votes: &BTreeSet<u64>) -> bool {
        let next = self.next.as_ref();
        self.base.has_majority(votes) && next.is_none_or(|it| it.has_majority(votes))
    }

    /// A follower's version.
    pub(super) fn version(&self, follower: usize) -> u8 {
        self.table.get(follower).copied().unwrap_or_default()
    }

    /// Takes in what a gateway says of a follower, if it is later. Whether it was.
    pub(super) fn learn(&mut self, follower: usize, version: u8, truncates: bool) -> bool {
        let known = self.version(follower);
        if version <= known {
            return false;
        }
        if truncates && known > 0 {
            // "Delete the existing entry and all that follow it."
            for it in self.table.iter_mut().skip(follower) {
                *it = 0;
            }
        }
        if let Some(it) = self.table.get_mut(follower) {
            *it = version;
        }
        true
    }

    /// Appends the followers of another table: one that is in either of them is here.
    pub(super) fn append(&mut self, other: &Self) {
        for (mine, &theirs) in self.table.iter_mut().zip(&other.table) {
            // One that was purged is in no table: nothing says that it was.
            if is_here(theirs) && !is_here(*mine) {
                *mine = theirs;
            }
        }
    }
}

pub(super) const fn is_here(version: u8) -> bool {
    version % 2 == 1
}
