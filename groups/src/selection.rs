//! The rule that chooses groups. All nodes must agree in it.

use selvedge_core::settings::{self, OutOfRange, Setting};

/// The rule that chooses groups. All nodes use an equal one: nodes that differ choose different
/// groups, which costs messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Selection {
    /// The number of nodes that may fail at once: from 0 to 15, as a configuration has 32 members at
    /// most. A group has twice as many members and one (section 2: the number of smart nodes in the
    /// largest power domain). Default 2.
    pub failures: u8,
    /// The nodes that are taken.
    pub policy: Policy,
    /// The member that leads if it can.
    pub leader: Leader,
}

/// The nodes that are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Policy {
    /// The nodes with the lowest hashes (section 3.1).
    Uniform,
    /// f + 1 near ones, and f by their hashes, so that no power domain has a majority (section 3.6).
    Near(Locality),
}

/// The member that leads if it can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Locality {
    /// Functions that all must agree, the paper's m: from 1 to 16. Default 2 (table 3).
    pub functions: u8,
    /// Tables of which one must agree, the paper's l: from 1 to 16. Default 2 (table 3).
    pub tables: u8,
    /// The width of a bucket, the paper's r, in the unit of [`Place`](crate::Place): from 1.
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
}

impl Default for Selection {
    fn default() -> Self {
        Self::new()
    }
}

impl Selection {
    /// The defaults: 2 failures, the lowest hashes.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            failures: 2,
            policy: Policy::Uniform,
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
            Policy::Uniform => settings::check(&[failures]),
            Policy::Near(it) => settings::check(&[
                failures,
                Setting::number("functions", it.functions as u64, 1, 16),
                Setting::number("tables", it.tables as u64, 1, 16),
                Setting::number("width", it.width as u64, 1, u32::MAX as u64),
            ]),
        }
    }
}
