//! The tables that gateways copy from each other.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// The era and index of a table. A later table has a greater label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label {
    /// The era of the manager that labelled it.
    pub era: u8,
    /// The number of tables that it had labelled before in this era.
    pub index: u8,
}

/// The gateways that vote, by id. The first one's vote breaks a tie.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Base(pub Vec<u64>);

impl Base {
    /// Returns true for more than half, or half with the first one (dynamic-linear voting).
    pub(super) fn has_majority(&self, votes: &BTreeSet<u64>) -> bool {
        let count = self.0.iter().filter(|it| votes.contains(it)).count();
        let has_first = self.0.first().is_some_and(|it| votes.contains(it));
        2 * count > self.0.len() || 2 * count == self.0.len() && has_first
    }
}

/// The data that is copied: the table, and the gateways that vote.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shared {
    /// The version of each follower: odd while it is present, even after it was purged, 0 while it is
    /// unknown.
    pub table: Vec<u8>,
    /// The gateways that vote.
    pub base: Base,
    /// The gateways that vote next. Until it is committed a majority of each of the two is needed.
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

    /// Stores a follower's version if it is higher than the known one. Returns true if it was.
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

    /// Appends the followers of another table: a follower that is in either of them is present.
    pub(super) fn append(&mut self, other: &Self) {
        for (mine, &theirs) in self.table.iter_mut().zip(&other.table) {
            // The paper's tables keep no trace of a purged follower, so one table's purge is undone here.
            if is_here(theirs) && !is_here(*mine) {
                *mine = theirs;
            }
        }
    }
}

pub(super) const fn is_here(version: u8) -> bool {
    version % 2 == 1
}
