//! Places in the order of a device, and the times at which a routine needs it.

use alloc::vec::Vec;

use selvedge_core::{NodeId, Span, Time};

use crate::schedule::order::Memory;
use crate::schedule::timeline::Search;

/// The needs of a routine, the places that are found for it, and the memory of the search. It is
/// kept for the next routine, which saves an allocation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    pub(crate) needs: Vec<Need>,
    pub(crate) places: Vec<Place>,
    pub(crate) search: Search,
    pub(crate) memory: Memory,
}

/// A place in the order of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) device: NodeId,
    /// In front of the entry with this number.
    pub(crate) at: usize,
    pub(crate) start: Time,
    pub(crate) length: Span,
    /// It is in front of a routine that has started.
    pub(crate) leased: bool,
}

/// The time at which a routine needs a device, counted from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    pub(crate) device: NodeId,
    pub(crate) from: Span,
    pub(crate) until: Span,
}

impl Need {
    pub(crate) fn length(self) -> Span {
        self.until - self.from
    }

    /// The place at this position, if the routine starts now.
    pub(crate) fn place(self, at: usize, now: Time) -> Place {
        Place {
            device: self.device,
            at,
            start: now + self.from,
            length: self.length(),
            leased: false,
        }
    }
}
