//! Quorums: the electors, the number of votes that decide, and the result of the votes.
//!
//! Two decisions of one [`Electorate`] share a voter, as long as its [`Quorum`]
//! [intersects](Quorum::intersects). So that this also holds while the electorate changes, it is
//! *joint* meanwhile: a decision then needs a quorum of the present electors and a quorum of the
//! next ones, and shares a voter with each decision before and after. (D. Ongaro and J. Ousterhout,
//! "In search of an understandable consensus algorithm", USENIX ATC 2014, section 6.)
//!
//! ```
//! use selvedge_core::quorum::{Electorate, Quorum, Tally, Votes};
//! use selvedge_core::NodeId;
//!
//! let nodes = |ids: &[u64]| ids.iter().copied().map(NodeId).collect::<Vec<_>>();
//! let mut electorate = Electorate::new(Quorum::Majority, nodes(&[1, 2, 3]));
//! let mut votes = Votes::new();
//! for id in [1, 2] {
//!     votes.cast(&electorate, NodeId(id), true)?;
//! }
//! assert_eq!(votes.tally(&electorate, |&vote| vote), Tally::Won);
//!
//! // Nodes 4 and 5 take the places of 1 and 2. Two votes are no majority of 3, 4 and 5.
//! electorate.begin_change(nodes(&[3, 4, 5]));
//! assert_eq!(votes.tally(&electorate, |&vote| vote), Tally::Pending);
//! for id in [4, 5] {
//!     votes.cast(&electorate, NodeId(id), true)?;
//! }
//! assert_eq!(votes.tally(&electorate, |&vote| vote), Tally::Won);
//! electorate.finish_change();
//! assert!(!electorate.is_joint() && !electorate.contains(&NodeId(1)));
//! # Ok::<(), selvedge_core::quorum::NoElector>(())
//! ```

use alloc::vec::Vec;

use thiserror::Error;

/// The number of electors that decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Quorum {
    /// More than half of them.
    #[default]
    Majority,
    /// At least this many. No number of votes decides where there are fewer electors, or where this
    /// is 0.
    AtLeast(usize),
}

impl Quorum {
    /// The least number of votes that decides among `electors`. `None` where no number does.
    #[must_use]
    pub const fn needed(self, electors: usize) -> Option<usize> {
        let needed = match self {
            Self::Majority => electors / 2 + 1,
            Self::AtLeast(least) => least,
        };
        if needed == 0 || needed > electors {
            return None;
        }
        Some(needed)
    }

    /// Returns true if this many votes decide among `electors`.
    #[must_use]
    pub const fn is_reached(self, votes: usize, electors: usize) -> bool {
        match self.needed(electors) {
            Some(needed) => votes >= needed,
            None => false,
        }
    }

    /// Returns true if any two quorums of this many electors share an elector. Always so for a
    /// majority.
    #[must_use]
    pub const fn intersects(self, electors: usize) -> bool {
        match self.needed(electors) {
            Some(needed) => needed > electors - needed,
            None => true,
        }
    }
}

/// The nodes that may vote, and the number of them that decide. `K` is a [`NodeId`](crate::NodeId)
/// where a node remembers its votes in its next life, and a [`Member`](crate::Member) where it does
/// not.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Electorate<K> {
    quorum: Quorum,
    /// In order, each once.
    present: Vec<K>,
    /// In order, each once. While there are next ones, a quorum of both is needed.
    next: Option<Vec<K>>,
}

impl<K: Ord> Electorate<K> {
    /// An electorate of these electors. A repeated elector counts once. O(n log n).
    #[must_use]
    pub fn new(quorum: Quorum, electors: impl IntoIterator<Item = K>) -> Self {
        Self {
            quorum,
            present: in_order(electors),
            next: None,
        }
    }

    /// Begins a change: from now on a decision needs a quorum of the present electors and one of
    /// `next`. This replaces a change that was begun before. O(n log n).
    pub fn begin_change(&mut self, next: impl IntoIterator<Item = K>) {
        self.next = Some(in_order(next));
    }

    /// Makes the next electors the present ones. Nothing happens if no change was begun.
    ///
    /// A protocol calls this once a joint quorum has decided the change.
    pub fn finish_change(&mut self) {
        if let Some(next) = self.next.take() {
            self.present = next;
        }
    }

    /// Gives the change up: the present electors alone count again. A protocol calls this when a
    /// quorum of the present electors has decided against the change.
    pub fn give_up_change(&mut self) {
        self.next = None;
    }

    /// Returns true while a change is under way.
    #[must_use]
    pub const fn is_joint(&self) -> bool {
        self.next.is_some()
    }

    /// The number of electors that decide.
    #[must_use]
    pub const fn quorum(&self) -> Quorum {
        self.quorum
    }

    /// The present electors, in order.
    #[must_use]
    pub fn present(&self) -> &[K] {
        &self.present
    }

    /// The next electors, in order, while a change is under way.
    #[must_use]
    pub fn next(&self) -> Option<&[K]> {
        self.next.as_deref()
    }

    /// Returns true if this node may vote, now or in the next electorate. O(log n).
    #[must_use]
    pub fn contains(&self, elector: &K) -> bool {
        let is_in = |electors: &[K]| electors.binary_search(elector).is_ok();
        self.parts().any(is_in)
    }

    /// The result when each elector is for it, against it, or undecided (`None`). O(n), and
    /// allocates nothing.
    #[must_use]
    pub fn tally(&self, vote: impl Fn(&K) -> Option<bool>) -> Tally {
        let of = |electors: &[K]| {
            let (mut yes, mut undecided) = (0, 0);
            for elector in electors {
                match vote(elector) {
                    Some(true) => yes += 1,
                    None => undecided += 1,
                    Some(false) => {}
                }
            }
            if self.quorum.is_reached(yes, electors.len()) {
                Tally::Won
            } else if self.quorum.is_reached(yes + undecided, electors.len()) {
                Tally::Pending
            } else {
                Tally::Lost
            }
        };
        // A decision that is lost in one part is lost, and it has to be won in both.
        self.parts().map(of).max().unwrap_or(Tally::Lost)
    }

    fn parts(&self) -> impl Iterator<Item = &[K]> {
        let next = self.next.as_deref();
        [Some(self.present.as_slice()), next].into_iter().flatten()
    }
}

fn in_order<K: Ord>(electors: impl IntoIterator<Item = K>) -> Vec<K> {
    let mut electors: Vec<K> = electors.into_iter().collect();
    electors.sort_unstable();
    electors.dedup();
    electors
}

/// The result of the votes that are cast. Of two parts of an electorate, the greater result holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tally {
    /// A quorum is for it; missing votes cannot change that.
    Won,
    /// The missing votes decide.
    Pending,
    /// No quorum can be for it any more, whatever the missing votes.
    Lost,
}

/// The error of a vote by a node that is no elector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[error(
    "the vote came from a node that is not an elector: count it, or learn of the new electorate"
)]
pub struct NoElector;

/// The votes, one for each elector. There are at most as many votes as electors while the electors
/// do not change; after a change [`retain_electors`](Self::retain_electors) restores that.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Votes<K, V> {
    /// In the order of voters.
    cast: Vec<(K, V)>,
}

impl<K, V> Default for Votes<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V> Votes<K, V> {
    /// An empty set of votes.
    #[must_use]
    pub const fn new() -> Self {
        Self { cast: Vec::new() }
    }

    /// The votes, in the order of voters.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.cast.iter().map(|(voter, vote)| (voter, vote))
    }
}

impl<K: Ord, V> Votes<K, V> {
    /// Adds a vote. The first vote of an elector counts: returns true if this was it. Moves the
    /// votes behind it.
    ///
    /// # Errors
    /// [`NoElector`]; nothing changed.
    pub fn cast(&mut self, all: &Electorate<K>, voter: K, vote: V) -> Result<bool, NoElector> {
        if !all.contains(&voter) {
            return Err(NoElector);
        }
        let place = self.place(&voter);
        if let Err(at) = place {
            self.cast.insert(at, (voter, vote));
        }
        Ok(place.is_err())
    }

    /// Adds a vote for all values up to this one, for example the length of the log that a node has
    /// stored. The highest vote of an elector counts: returns true if this was it. Moves the votes
    /// behind it.
    ///
    /// # Errors
    /// [`NoElector`]; nothing changed.
    pub fn raise(&mut self, all: &Electorate<K>, voter: K, vote: V) -> Result<bool, NoElector>
    where
        V: Ord,
    {
        if let Ok(at) = self.place(&voter)
            && let Some((_, before)) = self.cast.get_mut(at)
            && all.contains(&voter)
        {
            let is_higher = vote > *before;
            if is_higher {
                *before = vote;
            }
            return Ok(is_higher);
        }
        self.cast(all, voter, vote)
    }

    /// The vote of this node. O(log n).
    #[must_use]
    pub fn get(&self, voter: &K) -> Option<&V> {
        let at = self.place(voter).ok()?;
        self.cast.get(at).map(|(_, vote)| vote)
    }

    /// Drops the votes of nodes that are no electors any more. Such votes do not count, but a node
    /// that becomes an elector again has its old vote while that is kept, and votes again once it
    /// is dropped.
    pub fn retain_electors(&mut self, all: &Electorate<K>) {
        self.cast.retain(|(voter, _)| all.contains(voter));
    }

    /// The result of the votes, where `is_for` returns true for a vote in favour. O(n log n), and
    /// allocates nothing.
    #[must_use]
    pub fn tally(&self, all: &Electorate<K>, is_for: impl Fn(&V) -> bool) -> Tally {
        all.tally(|voter| self.get(voter).map(&is_for))
    }

    /// The highest value that a quorum has reached, where a vote for a value is also one for all
    /// lower values. `None` where no quorum has voted. O(n^2 log n), and allocates nothing.
    #[must_use]
    pub fn agreed(&self, all: &Electorate<K>) -> Option<&V>
    where
        V: Ord,
    {
        let votes = self.cast.iter().map(|(_, vote)| vote);
        votes
            .filter(|value| self.tally(all, |vote| vote >= value) == Tally::Won)
            .max()
    }

    fn place(&self, voter: &K) -> Result<usize, usize> {
        self.cast.binary_search_by(|(other, _)| other.cmp(voter))
    }
}

#[cfg(test)]
mod tests;
