//! The names of groups.

use selvedge_core::{NodeId, Sortition};
use serde::{Deserialize, Serialize};

/// The lowest bits of an id are the kind of the group's state, so that ids of small sites are short
/// in messages.
const KIND_BITS: u32 = 2;
const KIND: u64 = (1 << KIND_BITS) - 1;
const MAP: u64 = 2;

/// The id of a group. The two lowest bits of a [map](Self::map)'s are 10, and those of the [registry](Self::REGISTRY)'s 11; a machine that has maps and
/// other groups gives the others ids that end in 00 or 01.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct GroupId(pub u64);

impl GroupId {
    /// The group that holds the site, and the first members of groups that began later.
    pub const REGISTRY: Self = Self(3);

    /// The name under which a host stores the site: no group has it.
    pub(crate) const SITE: Self = Self(7);

    /// The group of a map of the application: the same name gives the same map on all nodes. Of a
    /// thousand names two give the same one with a probability of one in 10^8.
    #[must_use]
    pub fn map(name: &str, hash: &impl Sortition) -> Self {
        let rank = hash.rank(name.as_bytes(), NodeId(MAP));
        // Seven bytes in a message.
        Self(((rank.0 as u64) >> (64 - 47)) << KIND_BITS | MAP)
    }

    /// Returns true if it is the id of a map.
    #[must_use]
    pub const fn is_map(self) -> bool {
        self.0 & KIND == MAP
    }
}
