//! The leader that a node knows.

use selvedge_core::{Member, Span};

use crate::Ballot;

/// The leader, as this node knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Leadership {
    pub(crate) member: Member,
    pub(crate) ballot: Ballot,
    pub(crate) renewal: u32,
    /// The leader's own lease, whatever ours would be. Zero for ever.
    pub(crate) lease: Span,
    /// The leader failed, left, or let its lease run out, as far as we know.
    pub(crate) lost: bool,
}
