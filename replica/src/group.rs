//! A configuration with its electorate.

use selvedge_core::NodeId;
use selvedge_core::quorum::{Electorate, Tally};

use crate::Configuration;

/// A configuration, and its members as an electorate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Group {
    pub(crate) configuration: Configuration,
    electorate: Electorate<NodeId>,
    /// The bytes that the entries of a frame may take.
    entry_room: usize,
}

impl Group {
    pub(crate) fn new(configuration: Configuration) -> Self {
        let electorate = configuration.electorate();
        let budget = usize::from(configuration.frame_budget);
        let entry_room = budget.saturating_sub(configuration.fixed_len());
        Self {
            configuration,
            electorate,
            entry_room,
        }
    }

    pub(crate) const fn entry_room(&self) -> usize {
        self.entry_room
    }

    /// Returns true if the members for which `vote` is true decide.
    pub(crate) fn is_quorum(&self, vote: impl Fn(NodeId) -> bool) -> bool {
        self.electorate.tally(|id| Some(vote(*id))) == Tally::Won
    }
}
