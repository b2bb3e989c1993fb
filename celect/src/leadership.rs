//! The leader that a node knows.

use selvedge_core::{Member, Span};

use crate::{Ballot, LeaderState};

/// The leader, as this node knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Leadership {
    pub(crate) member: Member,
    pub(crate) ballot: Ballot,
    pub(crate) renewal: u32,
    /// The leader's own lease, not this node's setting. Zero for ever.
    pub(crate) lease: Span,
    /// True if this node believes that the leader failed, left, or let its lease run out.
    pub(crate) lost: bool,
    /// True if the leader announced last that it has no majority of the nodes that it knows.
    pub(crate) few: bool,
    /// The number of questions whether it leads that were sent since it was declared failed.
    pub(crate) asked: u8,
    /// True if this node leads, and a majority has acknowledged that.
    pub(crate) firm: bool,
}

impl Leadership {
    /// The state of the leader, as LEADER reports it.
    pub(crate) const fn state(&self) -> LeaderState {
        match (self.lost, self.few) {
            (true, _) => LeaderState::Ended,
            (false, true) => LeaderState::NoMajority,
            (false, false) => LeaderState::Leading,
        }
    }
}
