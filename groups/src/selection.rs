//! The rule that chooses groups. All nodes must agree in it.

use alloc::vec::Vec;

use selvedge_core::settings::{self, OutOfRange, Setting};
use serde::{Deserialize, Serialize};

use crate::Place;

/// The most places from which distances to others are measured.
const MEASURED: usize = 128;

/// The rule that chooses groups. All nodes use an equal one: nodes that differ choose different
/// groups, which costs messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Selection {
    /// The number of nodes that may fail at once: from 0 to 15, as a configuration has 32 members at
    /// most. A group has twice as many members and one (section 2: the number of smart nodes in the
    /// largest power domain). Default 2.
    pub failures: u8,
    /// The nodes that are taken. Default [`Policy::ByPlaces`].
    pub policy: Policy,
    /// The member that leads if it can.
    pub leader: Leader,
}

/// The nodes that are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Policy {
    /// Near ones where all nodes have places, with the width that the
    /// [spacing](Locality::for_places) of these places gives; else by hashes alone.
    ByPlaces,
    /// The nodes with the lowest hashes (section 3.1).
    Uniform,
    /// f + 1 near ones, and f by their hashes, so that no power domain has a majority (section 3.6).
    Near(Locality),
}

/// The member that leads if it can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Leader {
    /// The member with the lowest hash (section 3.2); with [`Policy::Near`] the near ones come
    /// first, as members that are chosen by their hashes have lower ones than nearly all others
    /// (table 3: "LSH smallest hash").
    LowestHash,
    /// The nearest one (figure 8).
    Nearest,
}

/// The rule for near places: they are in one bucket of a locality-sensitive hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Locality {
    /// Functions that all must agree, the paper's m: from 1 to 16. Default 2 (table 3).
    pub functions: u8,
    /// Tables of which one must agree, the paper's l: from 1 to 16. Default 2 (table 3).
    pub tables: u8,
    /// The width of a bucket, the paper's r, in the unit of [`Place`]: from 1.
    /// Default 4 (table 3, where devices are one unit apart).
    pub width: u32,
}

impl Locality {
    /// The paper's defaults, for devices that are about `spacing` apart.
    #[must_use]
    pub const fn for_spacing(spacing: u32) -> Self {
        Self {
            functions: 2,
            tables: 2,
            width: spacing.saturating_mul(4),
        }
    }

    /// The paper's defaults, for the spacing of these places: the median distance from a place to
    /// the nearest other one. `None` where fewer than two places differ.
    ///
    /// O(n), as at most 128 places are measured. The order of the places matters for more of them.
    #[must_use]
    pub fn for_places(places: &[Place]) -> Option<Self> {
        let step = places.len().div_ceil(MEASURED).max(1);
        let nearest = places.iter().step_by(step).filter_map(|one| {
            let others = places.iter().map(|it| one.distance_squared(*it));
            others.filter(|it| *it > 0).min()
        });
        let mut nearest: Vec<u64> = nearest.collect();
        nearest.sort_unstable();
        let median = nearest.get(nearest.len() / 2)?.isqrt();
        Some(Self::for_spacing(u32::try_from(median).unwrap_or(u32::MAX)))
    }
}

impl Policy {
    /// The locality by which near members are found among nodes at these places; `None` where
    /// hashes alone count.
    pub(crate) fn for_places(
        self,
        places: impl Iterator<Item = Option<Place>>,
    ) -> Option<Locality> {
        match self {
            Self::Uniform => None,
            Self::Near(locality) => Some(locality),
            Self::ByPlaces => Locality::for_places(&places.collect::<Option<Vec<Place>>>()?),
        }
    }
}

impl Default for Selection {
    fn default() -> Self {
        Self::new()
    }
}

impl Selection {
    /// The defaults: 2 failures, near members where places are known, the lowest hash leads.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            failures: 2,
            policy: Policy::ByPlaces,
            leader: Leader::LowestHash,
        }
    }

    selvedge_core::with_settings! {
        with_failures failures: u8,
        with_policy policy: Policy,
        with_leader leader: Leader,
    }

    /// The number of members of a group.
    #[must_use]
    pub const fn members(&self) -> usize {
        2 * self.failures as usize + 1
    }

    /// Checks that these settings can work.
    ///
    /// # Errors
    /// The first field that is out of its range.
    pub const fn check(&self) -> Result<(), OutOfRange> {
        let failures = Setting::number("failures", self.failures as u64, 0, 15);
        match self.policy {
            Policy::ByPlaces | Policy::Uniform => settings::check(&[failures]),
            Policy::Near(it) => settings::check(&[
                failures,
                Setting::number("functions", it.functions as u64, 1, 16),
                Setting::number("tables", it.tables as u64, 1, 16),
                Setting::number("width", it.width as u64, 1, u32::MAX as u64),
            ]),
        }
    }
}
