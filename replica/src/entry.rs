//! Entries: each version decides one.

use alloc::boxed::Box;

use selvedge_core::Member;
use selvedge_core::wire::List;
use serde::{Deserialize, Serialize};

use crate::{Configuration, Version};

/// An update with its proposer's number, which makes it unique.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Proposal<U> {
    /// The proposer, in one of its lives.
    pub by: Member,
    /// The proposal's number: counts its proposer's proposals in this life, without a gap.
    pub number: u64,
    /// The number with which its proposer began: 1, or a later one where the group had forgotten
    /// it.
    pub first: u64,
    /// The version that the proposer knew to be committed when it took [`first`](Self::first).
    pub since: Version,
    /// The proposed update.
    pub update: U,
}

impl<U> Proposal<U> {
    /// The next proposal of its proposer.
    pub(crate) const fn followed_by(&self, update: U) -> Self {
        Self {
            by: self.by,
            number: self.number + 1,
            first: self.first,
            since: self.since,
            update,
        }
    }
}

/// The decision of one version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Entry<U> {
    /// An update.
    Update(Proposal<U>),
    /// The next configuration: the last entry of the present one.
    Configure(Box<Configuration>),
    /// An update at a witness, without its content.
    Elided,
}

impl<U> Entry<U> {
    /// Returns the part of it that a witness keeps.
    pub(crate) fn elided(&self) -> Self {
        match self {
            Self::Configure(next) => Self::Configure(next.clone()),
            Self::Update(_) | Self::Elided => Self::Elided,
        }
    }

    /// Returns true if the configuration ends with it.
    pub(crate) const fn seals(&self) -> bool {
        matches!(self, Self::Configure(_))
    }

    /// Returns true if entries, read from storage, can be of one configuration: only the last one names
    /// the next, with this number at most.
    pub(crate) fn are_of_one_configuration(entries: &[Self], next: u64) -> bool {
        let Some((last, before)) = entries.split_last() else {
            return true;
        };
        let is_next = match last {
            Self::Configure(it) => it.number <= next && it.check().is_ok(),
            Self::Update(_) | Self::Elided => true,
        };
        is_next && !before.iter().any(Self::seals)
    }
}

/// Entries in a message; one allocates nothing.
pub type Entries<U> = List<Entry<U>, 1>;
