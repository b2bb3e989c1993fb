//! Numbers with their giver, which order tokens, ballots and requests.

use crate::wire::{member_len, varint_len};
use crate::{Member, NodeId};

/// A number, and the member that gave it. Compared by number, then by giver, so two members never
/// give the same stamp.
///
/// `By` is a [`Member`] where the numbers of a life end with it, and a [`NodeId`] where a node
/// stores the numbers that it gave and continues in its next life.
///
/// ```
/// use selvedge_core::{Member, Stamp};
///
/// let seen = Stamp { number: 7, by: Member::new(2, 0) };
/// assert!(Stamp { number: 8, by: Member::new(1, 0) } > seen);
/// assert!(Stamp { number: 7, by: Member::new(3, 0) } > seen);
///
/// let ours = seen.next(Member::new(1, 0));
/// assert_eq!((ours.number, ours > seen), (8, true));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Stamp<By = Member> {
    /// From 1; 0 stands for "none yet".
    pub number: u64,
    /// The member that gave it.
    pub by: By,
}

impl<By> Stamp<By> {
    /// The lowest number above this stamp's, given by `by`. The largest number stays as it is.
    #[must_use]
    pub fn next<Other>(&self, by: Other) -> Stamp<Other> {
        let number = self.number.saturating_add(1);
        Stamp { number, by }
    }
}

impl Stamp<Member> {
    /// The length in bytes in postcard's encoding.
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        varint_len(self.number) + member_len(self.by)
    }
}

impl Stamp<NodeId> {
    /// The length in bytes in postcard's encoding.
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        varint_len(self.number) + varint_len(self.by.0)
    }
}
