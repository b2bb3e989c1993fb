//! How a node takes part in mutual exclusion, in elections and in k-groups.

use alloc::boxed::Box;

#[cfg(feature = "estimate")]
use selvedge_camera::estimate;
use selvedge_camera::sections;
use selvedge_celect as celect;
use selvedge_core::Span;
use selvedge_membership as membership;
use thiserror::Error;

/// How a node takes part in mutual exclusion.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Exclusion {
    /// The settings of all sections. Its bound must not be too low from the beginning.
    pub sections: sections::Config,
    /// Whether and how nodes are counted. `None`: the bound is as it was given, until a command
    /// changes it. Feature `estimate`.
    #[cfg(feature = "estimate")]
    pub counting: Option<Counting>,
}

impl Exclusion {
    /// A part in mutual exclusion with these settings. Nodes are not counted.
    #[must_use]
    pub const fn new(sections: sections::Config) -> Self {
        Self {
            sections,
            #[cfg(feature = "estimate")]
            counting: None,
        }
    }

    /// The same, with nodes counted. Feature `estimate`.
    #[cfg(feature = "estimate")]
    #[must_use]
    pub fn with_counting(self, counting: Counting) -> Self {
        let counting = Some(counting);
        Self { counting, ..self }
    }
}

/// How the number of nodes is estimated, for the bound of all sections.
#[cfg(feature = "estimate")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Counting {
    /// The settings of the estimator.
    pub config: estimate::Config,
    /// Between two estimates: above the time that one takes. Zero for none but those that are asked
    /// for.
    pub every: Span,
    /// How many more lives may be present than there are nodes: those that restart at the same
    /// time.
    pub spare: u32,
}

/// How a node takes part in elections.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Election {
    /// The settings of an election. While fewer than [`c`](celect::Config::c) others are on the
    /// list it is as many as these: of n live nodes none is missing from more than n - 1 lists, and
    /// a node that is alone leads itself.
    pub config: celect::Config,
    /// Which draw: in one mesh all have the same. Others give other leaders.
    pub label: Box<[u8]>,
    /// How long a node that is in the mesh may hear of no leader before it begins an election by
    /// itself, as often as that happens; up to twice as long, by chance, so that not all begin at
    /// once. Longer than the list takes to fill after a start, and than an election: a node that
    /// begins too soon is elected by a minority, and soon deposed. Zero: only when it is asked, and
    /// when a leader is lost.
    pub patience: Span,
}

impl Election {
    /// Settings for a mesh whose membership has this period. The mesh [keeps its
    /// leader](celect::Config::keep_leader) when a node comes back that elected itself. Round trips take 3
    /// tenths of a period at most, as probes assume, and half a second at most.
    #[must_use]
    pub fn paced(period: Span, c: u16, f: u16) -> Self {
        let defaults = celect::Config::new(c, f);
        let round_trip = Span(period.0 / 10 * 3);
        Self {
            config: defaults
                .with_keep_leader(true)
                .with_timeout(defaults.timeout.min(round_trip))
                .with_resend(defaults.resend.min(round_trip)),
            label: (*b"leader").into(),
            patience: period * 5,
        }
    }
}

/// Settings that cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Those of membership.
    #[error(transparent)]
    Membership(#[from] membership::ConfigError),
    /// Those of the sections.
    #[error("sections: {0}")]
    Sections(#[from] sections::ConfigError),
    /// Those of the estimator.
    #[cfg(feature = "estimate")]
    #[error("estimator: {0}")]
    Estimate(#[from] estimate::ConfigError),
    /// Those of the elections.
    #[error("elections: {0}")]
    Election(#[from] celect::ConfigError),
    /// Those of the k-groups.
    #[cfg(feature = "kgroup")]
    #[error("k-groups: {0}")]
    Groups(#[from] selvedge_kgroup::Reject),
    /// The stored facts of the k-groups.
    #[cfg(feature = "kgroup")]
    #[error("stored facts of k-groups: {0}")]
    Facts(#[from] selvedge_groups::Damage),
}
