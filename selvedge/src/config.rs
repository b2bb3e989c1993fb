//! Settings for a node's part in mutual exclusion, in elections and in k-groups.

use alloc::boxed::Box;

#[cfg(feature = "estimate")]
use selvedge_camera::estimate;
use selvedge_camera::sections;
use selvedge_celect as celect;
use selvedge_core::Span;
use selvedge_membership as membership;
use thiserror::Error;

/// Settings for a node's part in mutual exclusion.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Exclusion {
    /// The settings of all sections. Its bound must not be too low from the beginning.
    pub sections: sections::Config,
    /// The time after an exit at which a section with [`keep`](selvedge_camera::Config::keep) gives
    /// back the permissions that it kept, and reports that its request is over: from zero, at once.
    /// It begins with the first exit after a request. Later entries with the kept permissions do not
    /// prolong it, and the last of them may end after it. So the lives that are present from a request
    /// until this time has passed, and an entry more, have to be within
    /// [`max_lives`](selvedge_camera::Config::max_lives). Without effect where `keep` is off. Default
    /// 10 s.
    pub keep_for: Span,
    /// The settings for counting nodes. `None`: the bound stays as given, until a command changes
    /// it. Feature `estimate`.
    #[cfg(feature = "estimate")]
    pub counting: Option<Counting>,
}

impl Exclusion {
    /// Settings for mutual exclusion with these sections. Nodes are not counted.
    #[must_use]
    pub const fn new(sections: sections::Config) -> Self {
        Self {
            sections,
            keep_for: Span::secs(10),
            #[cfg(feature = "estimate")]
            counting: None,
        }
    }

    /// The same, with permissions that are given back after this time
    /// ([`keep_for`](Self::keep_for)).
    #[must_use]
    pub const fn with_keep_for(mut self, keep_for: Span) -> Self {
        self.keep_for = keep_for;
        self
    }

    /// The same, with nodes counted. Feature `estimate`.
    #[cfg(feature = "estimate")]
    #[must_use]
    pub fn with_counting(self, counting: Counting) -> Self {
        let counting = Some(counting);
        Self { counting, ..self }
    }
}

/// Settings of the estimate of the number of nodes, for the bound of all sections.
#[cfg(feature = "estimate")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Counting {
    /// The settings of the estimator.
    pub config: estimate::Config,
    /// The time between two estimates: above the duration of one. With zero, only commands start
    /// estimates.
    pub every: Span,
    /// The number of lives that may be present beyond the number of nodes: nodes that restart at
    /// the same time.
    pub spare: u32,
}

/// Settings for a node's part in elections.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Election {
    /// The settings of an election. If the list has fewer than
    /// [`missing_from`](celect::Config::missing_from) other nodes, their number is used in its
    /// place: of n live nodes none is missing from more than n - 1 lists, and a node that is alone
    /// leads itself.
    pub config: celect::Config,
    /// The label of the draw: all nodes of a mesh have the same. Another label gives other leaders.
    pub label: Box<[u8]>,
    /// The time for which a node in the mesh may know no leader before it begins an election by
    /// itself, each time; up to twice as long, by chance, so that not all begin at once. Longer
    /// than the list takes to fill after a start, and than an election: a node that begins too soon
    /// is elected by a minority, and soon deposed. Zero: elections begin only by command, and when
    /// a leader is lost.
    pub patience: Span,
}

impl Election {
    /// Settings for a mesh whose membership has this period, where a live node may be missing from
    /// `missing_from` lists and `failures` listed nodes may be dead
    /// ([`missing_from`](celect::Config::missing_from), [`failures`](celect::Config::failures)). The mesh [keeps its
    /// leader](celect::Config::keep_leader) when a node returns that elected itself. Round trips
    /// take 3 tenths of a period at most, as probes assume, and half a second at most.
    #[must_use]
    pub fn paced(period: Span, missing_from: u16, failures: u16) -> Self {
        let defaults = celect::Config::new(missing_from, failures);
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

/// The error of settings that cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// In the settings of membership.
    #[error(transparent)]
    Membership(#[from] membership::ConfigError),
    /// In the settings of the sections.
    #[error("sections: {0}")]
    Sections(#[from] sections::ConfigError),
    /// In the settings of the estimator.
    #[cfg(feature = "estimate")]
    #[error("estimator: {0}")]
    Estimate(#[from] estimate::ConfigError),
    /// In the settings of the elections.
    #[error("elections: {0}")]
    Election(#[from] celect::ConfigError),
    /// In the settings of the k-groups.
    #[cfg(feature = "kgroup")]
    #[error("k-groups: {0}")]
    Groups(#[from] selvedge_kgroup::Reject),
    /// In the stored facts of the k-groups.
    #[cfg(feature = "kgroup")]
    #[error("stored facts of k-groups: {0}")]
    Facts(#[from] selvedge_groups::Damage),
}
