//! The leader that a node knows.

use selvedge_core::{Member, Span};

use crate::{Ballot, LeaderState};

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
    /// The leader has no majority of the nodes that it knows, as it said last.
    pub(crate) few: bool,
    /// How often it was asked whether it leads since it was declared failed.
    pub(crate) asked: u8,
    /// This node leads, and a majority has acknowledged that.
    pub(crate) firm: bool,
}

impl Leadership {
    /// The state of the leader, as LEADER reports it.
    pub(crate) const fn state(&self) -> LeaderState {
        match (self.lost, self.few) {
            (true, _) => LeaderState::Gone,
            (false, true) => LeaderState::Few,
            (false, false) => LeaderState::Leads,
        }
    }
}
