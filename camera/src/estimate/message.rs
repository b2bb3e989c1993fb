//! The messages.

use selvedge_core::Member;
use selvedge_core::wire::{self, MEMBER_MAX_LEN, member_len, varint_len};

/// The protocol's kind in a frame header.
pub const KIND: u8 = 4;

/// The longest [`Message`] in postcard's encoding, in bytes: a tag and a walk.
pub const MESSAGE_MAX_LEN: usize = 1 + MEMBER_MAX_LEN + 5 + 5 + 10 + 3;

/// A message of an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Message {
    /// A walk, for its next node.
    Walk(Walk),
    /// A walk of the receiver ended at the sender: that is the sample.
    Sample {
        /// The origin of the walk; its later lives ignore the sample.
        origin: Member,
        /// The number of the estimate, as in the walk.
        estimate: u32,
        /// The number of the walk in the estimate.
        number: u32,
    },
}

/// A walk over the overlay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Walk {
    /// The node that started it and gets the sample.
    pub origin: Member,
    /// The number of the estimate among those of this life of the origin.
    pub estimate: u32,
    /// The number of the walk in the estimate. A walk that was started again keeps it.
    pub number: u32,
    /// The rest of the budget, in units of 1 / 2^32: a mean stay among d neighbours takes 2^32 / d. From 1 to
    /// 2^42.
    pub budget: u64,
    /// The number of hops that it may still take.
    pub hops: u16,
}

impl Message {
    /// The length in bytes in postcard's encoding, without frame header and sender.
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        let (origin, estimate, number, rest) = match self {
            Self::Walk(walk) => (
                walk.origin,
                walk.estimate,
                walk.number,
                varint_len(walk.budget) + varint_len(walk.hops as u64),
            ),
            Self::Sample {
                origin,
                estimate,
                number,
            } => (*origin, *estimate, *number, 0),
        };
        1 + member_len(origin) + varint_len(estimate as u64) + varint_len(number as u64) + rest
    }
}

impl wire::Message for Message {
    const KIND: u8 = KIND;

    fn encoded_len(&self) -> usize {
        self.encoded_len()
    }
}
