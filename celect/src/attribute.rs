//! The order by which the leader is chosen: the node with the lowest rank leads.

use alloc::boxed::Box;
use core::fmt::Debug;
use core::hash::Hash;

use selvedge_core::{Member, Rank, Sha256Sortition, Sortition};

/// An order of nodes that all nodes agree on; the lowest rank leads.
///
/// The rank must be a function of the member alone, and the same on every node until all elections
/// that began with it have ended: two nodes that rank differently may elect differently. Members of
/// equal rank are ordered by id.
pub trait Attribute: Clone + Eq + Hash + Debug {
    /// Returns the rank of `member`.
    fn rank(&self, member: Member) -> Rank;
}

/// The sort key of a member.
pub(crate) fn key(attribute: &impl Attribute, member: Member) -> (Rank, Member) {
    (attribute.rank(member), member)
}

/// The lowest hash leads, as in the thesis.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Lowest<S = Sha256Sortition> {
    sortition: S,
    label: Box<[u8]>,
}

impl<S: Sortition> Lowest<S> {
    /// Ranks by `sortition` in the draw called `label`, such as the name of a role, so that
    /// different roles get different leaders.
    #[must_use]
    pub fn new(sortition: S, label: &[u8]) -> Self {
        Self {
            sortition,
            label: label.into(),
        }
    }
}

impl<S: Sortition + Clone + Eq + Hash + Debug> Attribute for Lowest<S> {
    fn rank(&self, member: Member) -> Rank {
        self.sortition.rank(&self.label, member.id)
    }
}
