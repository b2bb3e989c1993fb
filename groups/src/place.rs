//! The places of nodes and devices.

use serde::{Deserialize, Serialize};

/// A place, in any unit that all nodes share. The width of a hash function
/// ([`Locality::width`](crate::Locality::width)) counts in the same unit. Two dimensions leave the
/// third at 0.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Place(pub [i32; 3]);

impl Place {
    /// The square of the distance: exact up to a distance of 2^32, and the highest number beyond, so
    /// that all nodes compare alike.
    #[must_use]
    pub fn distance_squared(self, other: Self) -> u64 {
        let pairs = self.0.into_iter().zip(other.0);
        let squares = pairs.map(|(one, other)| u64::from(one.abs_diff(other)).pow(2));
        squares.fold(0, u64::saturating_add)
    }
}
