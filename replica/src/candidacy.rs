//! The memory of a candidate.

use alloc::vec::Vec;

use selvedge_core::{Member, NodeId};

use crate::{Ballot, Entries, Version};

/// The ballot under which a member accepted last, and the last version that it holds. The member
/// with the highest claim of a quorum holds every entry that may be committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Claim {
    pub(crate) accepted: Ballot,
    pub(crate) end: Version,
}

/// The entries of the member with the highest claim, behind its last committed version.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Best<U> {
    pub(crate) from: Member,
    pub(crate) claim: Claim,
    pub(crate) committed: Version,
    pub(crate) tail: Entries<U>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Candidacy<U> {
    pub(crate) ballot: Ballot,
    /// The ballot of the leader that asked this member to stand; 0 for none.
    pub(crate) handed_over: Ballot,
    /// True if this member led, was refused for a higher ballot, and stood again at once.
    pub(crate) is_raised: bool,
    /// In order of ids.
    pub(crate) promises: Vec<(NodeId, Claim)>,
    /// The highest claim of the members that hold entries.
    pub(crate) best: Option<Best<U>>,
}

impl<U> Candidacy<U> {
    pub(crate) const fn new(ballot: Ballot, handed_over: Ballot) -> Self {
        Self {
            ballot,
            handed_over,
            is_raised: false,
            promises: Vec::new(),
            best: None,
        }
    }

    pub(crate) fn has(&self, id: NodeId) -> bool {
        self.promises.binary_search_by_key(&id, |it| it.0).is_ok()
    }

    pub(crate) fn note(&mut self, id: NodeId, claim: Claim) {
        match self.promises.binary_search_by_key(&id, |it| it.0) {
            Ok(at) => {
                if let Some(promise) = self.promises.get_mut(at) {
                    promise.1 = claim;
                }
            }
            Err(at) => self.promises.insert(at, (id, claim)),
        }
    }

    /// The claim of a member that promised.
    pub(crate) fn claim(&self, id: NodeId) -> Option<Claim> {
        let at = self.promises.binary_search_by_key(&id, |it| it.0).ok()?;
        self.promises.get(at).map(|it| it.1)
    }
}
