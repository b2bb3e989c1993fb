//! The application's view: members and their health.

use selvedge_core::{Member, Span, WeightTree, Weights};

use crate::list::{Entry, Standing};

/// The status of a member on the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// It is here.
    Alive,
    /// It may have failed, and may refute.
    Suspect,
    /// It was declared failed.
    Failed,
    /// It said good-bye.
    Left,
}

impl Status {
    /// Returns true if the member counts as present: alive or suspected.
    #[must_use]
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Alive | Self::Suspect)
    }

    /// The status that the application reads for a standing.
    const fn of(standing: Standing) -> Self {
        match standing {
            Standing::Alive | Standing::Doubted | Standing::Hearsay | Standing::Unmet => {
                Self::Alive
            }
            Standing::Suspect => Self::Suspect,
            Standing::Failed => Self::Failed,
            Standing::Left => Self::Left,
        }
    }
}

/// The list's entry of one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberView<'a> {
    /// Its id and incarnation.
    pub member: Member,
    /// Its status on the list.
    pub status: Status,
    /// The number of changes that it made to its record, in this life.
    pub revision: u32,
    /// The application's bytes about it.
    pub metadata: &'a [u8],
    /// The number of times that this node saw it suspected in this life, up to
    /// [`Config::health_limit`](crate::Config::health_limit).
    pub suspicions: u8,
    /// The number of times that it missed a whole probe of this node, up to the same limit.
    pub missed: u8,
    /// The round trip of this node's probes of it, smoothed. `None` before the first answer, and where
    /// none is measured ([`Config::round_trip_unit`](crate::Config::round_trip_unit)).
    pub round_trip: Option<Span>,
    weight: u64,
    total: u64,
}

impl<'a> MemberView<'a> {
    pub(crate) fn new(
        entry: &Entry,
        metadata: &'a [u8],
        round_trip: Option<Span>,
        weights: &WeightTree,
        slot: usize,
    ) -> Self {
        Self {
            member: entry.member(),
            status: Status::of(entry.standing()),
            revision: entry.revision(),
            metadata,
            suspicions: entry.suspicions(),
            missed: entry.missed(),
            round_trip,
            weight: weights.weight(slot),
            total: weights.total(),
        }
    }

    /// The probability that a spatial draw takes this member, as weight and total of all weights.
    #[must_use]
    pub const fn share(&self) -> (u64, u64) {
        (self.weight, self.total)
    }
}
