//! The place of a home.

use crate::Number;

/// A place on Earth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Location {
    /// Degrees north of the equator, from -90 to 90.
    pub latitude: Number,
    /// Degrees east of Greenwich, from -180 to 180.
    pub longitude: Number,
}
