//! The order and the fencing of leaders.

use core::cmp::{Ordering, Reverse};

use selvedge_core::wire::{member_len, varint_len};
use selvedge_core::{FencingToken, Member};

/// The name of one appointment. Of two leaders, the leader with the larger ballot leads, on every
/// node and in any order of arrival. No two appointments share a ballot.
///
/// A resource that takes the ballot with each request (as a [`FencingToken`]), and refuses ballots
/// smaller than the largest that it has received, is safe from leaders that were replaced and do
/// not know it yet.
///
/// The attribute chooses a leader, and the ballot orders leaders: by the attribute alone a dead
/// leader with the lowest rank could never be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Ballot {
    /// The number of the election, from 1: above all epochs that its initiator knew.
    pub epoch: u64,
    /// The node that ran the election. Where two begin the same epoch, the lower node prevails (thesis,
    /// section 2.3).
    pub initiator: Member,
    /// The number of the initiator's step in the election: each round and each appointment counts.
    pub step: u32,
}

impl Ballot {
    /// Returns the next ballot of the same run.
    pub(crate) const fn next(self) -> Self {
        Self {
            step: self.step.saturating_add(1),
            ..self
        }
    }

    /// Returns true if both belong to one run.
    pub(crate) fn same_run(self, other: Self) -> bool {
        (self.epoch, self.initiator) == (other.epoch, other.initiator)
    }

    pub(crate) const fn encoded_len(self) -> usize {
        varint_len(self.epoch) + member_len(self.initiator) + varint_len(self.step as u64)
    }
}

/// The token of a leader.
impl From<Ballot> for FencingToken {
    fn from(ballot: Ballot) -> Self {
        let Member { id, incarnation } = ballot.initiator;
        // Of two initiators the lower one prevails.
        Self::from_parts(ballot.epoch, !id.0, !incarnation.0, ballot.step)
    }
}

impl Ord for Ballot {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |it: &Self| (it.epoch, Reverse(it.initiator), it.step);
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Ballot {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
