//! Quorums: how many votes decide, the nodes that may vote, and what their votes say.
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

/// How many of a number of electors decide.
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

    /// Whether this many votes decide among `electors`.
    #[must_use]
    pub const fn is_reached(self, votes: usize, electors: usize) -> bool {
        match self.needed(electors) {
            Some(needed) => votes >= needed,
            None => false,
        }
    }

    /// Whether any two quorums of this many electors share one. Always for a majority.
    #[must_use]
    pub const fn intersects(self, electors: usize) -> bool {
        match self.needed(electors) {
            Some(needed) => needed > electors - needed,
            None => true,
        }
    }
}

/// The nodes that may vote, and how many of them decide. `K` is a [`NodeId`](crate::NodeId) where a
/// node remembers its votes in its next life, and a [`Member`](crate::Member) where it does not.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Electorate<K> {
    quorum: Quorum,
    /// In order, each once.
    present: Vec<K>,
    /// In order, each once. While there are next ones, a quorum of both is needed.
    next: Option<Vec<K>>,
}

impl<K: Ord> Electorate<K> {
    /// These electors. One that is named twice counts once. O(n log n).
    #[must_use]
    pub fn new(quorum: Quorum, electors: impl IntoIterator<Item = K>) -> Self {
        Self {
            quorum,
            present: in_order(electors),
            next: None,
        }
    }

    /// From now on a quorum of the present electors and one of `next` are needed. Takes the place
    /// of a change that was begun before. O(n log n).
    pub fn begin_change(&mut self, next: impl IntoIterator<Item = K>) {
        self.next = Some(in_order(next));
    }

    /// The next electors are the present ones. Nothing happens where no change was begun.
    ///
    /// A protocol calls this once a joint quorum has decided the change.
    pub fn finish_change(&mut self) {
        if let Some(next) = self.next.take() {
            self.present = next;
        }
    }

    /// The present electors alone count again. A protocol calls this when the change did not come
    /// about, which a quorum of the present electors must have decided.
    pub fn give_up_change(&mut self) {
        self.next = None;
    }

    /// Whether a change is under way.
    #[must_use]
    pub const fn is_joint(&self) -> bool {
        self.next.is_some()
    }

    /// How many of them decide.
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

    /// Whether this node may vote, now or in the electorate to come. O(log n).
    #[must_use]
    pub fn contains(&self, elector: &K) -> bool {
        let is_in = |electors: &[K]| electors.binary_search(elector).is_ok();
        self.parts().any(is_in)
    }

    /// What follows when each elector is for it, against it, or undecided (`None`). O(n), and
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
        // What is lost in one part is lost, and what is won has to be won in both.
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

/// What the votes so far say. Ordered: of two parts of an electorate the larger one holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tally {
    /// A quorum is for it, whatever comes.
    Won,
    /// What comes decides.
    Pending,
    /// No quorum will be for it, whatever comes.
    Lost,
}

/// The node is no elector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[error(
    "the vote came from a node that is not an elector: count it, or learn of the new electorate"
)]
pub struct NoElector;

/// One vote of each elector. At most as many are kept as there are electors, as long as these do
/// not change; after a change [`retain_electors`](Self::retain_electors) makes it so again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Votes<K, V> {
    /// In order of voters.
    cast: Vec<(K, V)>,
}

impl<K, V> Default for Votes<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V> Votes<K, V> {
    /// None yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { cast: Vec::new() }
    }

    /// The votes, in order of voters.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.cast.iter().map(|(voter, vote)| (voter, vote))
    }
}

impl<K: Ord, V> Votes<K, V> {
    /// Takes a vote. The first vote of an elector counts: returns whether this was it. Moves the
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

    /// Takes a vote for all values up to this one, for example how much of a log a node has stored.
    /// The highest vote of an elector counts: returns whether this was it. Moves the votes behind
    /// it.
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

    /// Drops the votes of nodes that are electors no more. They do not count, but a node that
    /// becomes an elector again has its vote back while it is kept, and votes anew once it is
    /// dropped.
    pub fn retain_electors(&mut self, all: &Electorate<K>) {
        self.cast.retain(|(voter, _)| all.contains(voter));
    }

    /// What the votes say, where `is_for` says which ones are for it. O(n log n), and allocates
    /// nothing.
    #[must_use]
    pub fn tally(&self, all: &Electorate<K>, is_for: impl Fn(&V) -> bool) -> Tally {
        all.tally(|voter| self.get(voter).map(&is_for))
    }

    /// The highest value that a quorum has reached, where a vote for a value is one for all lower
    /// values too. `None` where no quorum has voted. O(n^2 log n), and allocates nothing.
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
