//! The settings, with their units, ranges and sources.

use selvedge_core::wire::Room;
use selvedge_core::{Ratio, Span};
use thiserror::Error;

/// How an election is run. Nodes answer initiators of every protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Protocol {
    /// Asks c + f + 1 nodes and appoints when c + 1 have answered (Algorithm 2).
    #[default]
    Base,
    /// Appoints the best candidate so far with each answer, and another one if a better one comes
    /// (Algorithm 3).
    Optimistic,
    /// As `Base`, and passes over nodes that are often suspected (Algorithm 4).
    Preferred,
    /// As `Optimistic`, and passes over nodes that are often suspected (Algorithm 5).
    Hybrid,
    /// As `Base`, with the initiator's own list as one of the c + 1: the initiator asks c + f
    /// others. Not in the thesis, which calls `Base` optimal (erratum E8).
    Lean,
}

impl Protocol {
    pub(crate) const fn streams(self) -> bool {
        matches!(self, Self::Optimistic | Self::Hybrid)
    }

    pub(crate) const fn prefers(self) -> bool {
        matches!(self, Self::Preferred | Self::Hybrid)
    }
}

/// The settings of one node. Checked once, by [`Celect::new`](crate::Celect::new).
///
/// Nodes may differ in all of them; each run rests on its initiator's `c` and `f`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Config {
    /// Which protocol an election of this node runs. Default [`Protocol::Base`].
    pub protocol: Protocol,
    /// From how many nodes' lists a live node may be missing: from 0. Elections rest on it while
    /// [`estimation`](Self::estimation) is off or knows nothing. It counts all nodes that miss the
    /// live node at any moment of a run (erratum E7). No default: too low a value elects wrongly,
    /// too high a value asks more nodes. About 10% of the nodes at 5% loss (thesis, table 5.1).
    pub c: u16,
    /// How many nodes may be dead and still on lists: from 0. No default.
    pub f: u16,
    /// How many of the lowest nodes a node names to `Preferred` and `Hybrid`: from 1. Default 5, as
    /// in the thesis.
    pub x: u8,
    /// How many of the most suspected nodes a node names to them: from 0. Default 5, as in the
    /// thesis.
    pub y: u8,
    /// How long to wait for answers, for parts of lists, and for the node that was appointed: above
    /// zero. It should be longer than the usual round trip: a live node that takes longer to answer
    /// may be passed over. Default 500 ms, as in the thesis.
    pub timeout: Span,
    /// How often an appointed node is told so before it is passed over, from 1. A node that is
    /// declared failed, or that let its lease run out, is told as often, but within a single
    /// `timeout`. Also how often each part of a list is asked for, where c is measured. Default 3.
    pub attempts: u8,
    /// How often LEADER is sent again to a node that did not acknowledge it. With 0 nothing is
    /// acknowledged or forwarded: then the host's multicast must be reliable, as the thesis
    /// assumes. Default 5.
    pub retries: u8,
    /// How long to wait for an acknowledgement of LEADER: above zero. Default 500 ms.
    pub resend: Span,
    /// How long a node that gave way to another initiator waits for a leader from it before it
    /// begins again. It begins at once when that initiator is declared failed. With zero it begins
    /// again only then. Should be several timeouts. Default 5 s.
    pub patience: Span,
    /// Whether a node elects another leader when it hears that its leader failed, left, or let its
    /// lease run out; and whether a leader that let its own lease run out does, when it has heard
    /// of no leader for `patience`. Default true.
    pub reelect: bool,
    /// The time over which the nodes that hear that spread the beginnings of their elections, so
    /// that not all begin. Zero for at once. Default 200 ms.
    pub spread: Span,
    /// How long this node leads without being renewed, by every node's own clock. `None`, the
    /// default, is for ever. Followers are told this lease, and their own settings do not matter.
    /// Needs `retries` above 0, since acknowledgements renew it. A host's clock has to go on while
    /// the host sleeps; see [the crate page](crate#clocks).
    pub lease: Option<Span>,
    /// By how much two clocks may run apart, in parts per million. The leader takes its lease to be
    /// shorter by this share, and renews it every third of that shorter time. At most 666,666,
    /// which leaves a third. Default 1,000.
    pub drift: u32,
    /// How many of the nodes that an initiator passes over are named in its queries; fewer where a
    /// frame cannot name so many. For each further node passed over the queries ask for one
    /// candidate more, as long as an answer in a frame of [`frame_budget`](Self::frame_budget) can
    /// name one candidate behind all of these: 3 more in the shortest frame (1 with `Preferred` and
    /// `Hybrid`), 88 by default. Beyond that a further node that does not answer makes the
    /// initiator forget the first, and an answer that names a node that is over does not count.
    /// From 1. Default 16.
    pub exclude_limit: u8,
    /// The longest frame in bytes, header and sender included: from 127. Lists are cut to fit.
    /// Default 1,400.
    pub frame_budget: u16,
    /// How many others may be on the list: from 1. A live node that finds no place is counted
    /// ([`Counters::no_room`](crate::Counters::no_room)), is told once who leads, and waits for a
    /// place; meanwhile it is missing from this list, as c counts it. Besides the list, as many
    /// others and two more are remembered that are gone or wait: the dead take no place on the
    /// list. A sample counts no more nodes, either. Default 4,096.
    pub peer_limit: u32,
    /// Whether elections take c from what is measured. With `None`, the default, they take
    /// [`c`](Self::c). Else they take `c` only while nothing newer is known.
    pub estimation: Option<Estimation>,
}

/// Where an estimate of c comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Source {
    /// The leader asks some nodes for their lists every [`Estimation::period`]
    /// ([`Tally`](crate::estimate::Tally)). The estimate is about all nodes.
    #[default]
    Sampling,
    /// Initiators report to the leader how many of their answers lacked it
    /// ([`Misses`](crate::estimate::Misses)). The estimate is about this leader alone, and is
    /// forgotten when the leader is lost or another one follows. So it serves elections that
    /// confirm a leader, and says nothing of elections that replace it. `Preferred` and `Hybrid`
    /// report nothing.
    Feedback,
}

/// How c is measured and used. Nodes may differ in all these settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Estimation {
    /// What the estimate comes from. Default [`Source::Sampling`].
    pub source: Source,
    /// How many of the known nodes are asked for their lists: from 1. Default 50.
    pub sample: u16,
    /// How many of them are asked at a time: from 1. So many lists are in memory. Default 4.
    pub at_once: u8,
    /// How long a leader waits between samples: above zero. Default 60 s. Its first sample begins a
    /// [`Config::timeout`] after it was elected.
    pub period: Span,
    /// How many runs are reported before they give an estimate: 1 to 256. Default 20. The step that
    /// takes the last report costs as [`largest_churn`](crate::estimate::Misses::largest_churn)
    /// says, with the misses of all reports added up: its time grows with the square of both the
    /// pool and the answers. A node that reports is believed, so keep the pool small in a large
    /// mesh.
    pub pool: u16,
    /// How often the real c may exceed the bound: above 0, from 1 in 1,000,000 to 1 in 2. Default 1
    /// in 100.
    pub miss: Ratio,
    /// What is added to the bound, in lists: from 0, for what changes between a sample and an
    /// election. Default 1.
    pub margin: u16,
    /// The least c to elect with: from 0. Default 1. A node that knows no other node takes no more
    /// than [`Config::c`], so that a host can let it elect itself.
    pub floor: u16,
    /// The largest c to elect with, from `floor`. c is also kept to N - 1 - f, with as many nodes
    /// as are known. Default 65,535. An election with a c that was cut short is told of without a
    /// confidence.
    pub ceiling: u16,
    /// How many of the latest bounds count: the largest of them is used. From 1. Default 3. So c
    /// rises at once and falls slowly.
    pub window: u8,
    /// How long a measured c serves, by a node's own clock, before the node falls back on
    /// [`Config::c`]: above zero. Should be several times `period`, because what is told may be
    /// lost. Default 5 min.
    pub valid: Span,
}

impl Default for Estimation {
    fn default() -> Self {
        Self {
            source: Source::Sampling,
            sample: 50,
            at_once: 4,
            period: Span::secs(60),
            pool: 20,
            miss: Ratio::new(1, 100),
            margin: 1,
            floor: 1,
            ceiling: u16::MAX,
            window: 3,
            valid: Span::secs(300),
        }
    }
}

impl Estimation {
    const fn check(&self) -> Result<(), ConfigError> {
        let ranges = [
            ("sample", self.sample as u64, 1, u16::MAX as u64),
            ("at_once", self.at_once as u64, 1, u8::MAX as u64),
            ("period", self.period.0, 1, u64::MAX),
            ("pool", self.pool as u64, 1, 256),
            (
                "ceiling",
                self.ceiling as u64,
                self.floor as u64,
                u16::MAX as u64,
            ),
            ("window", self.window as u64, 1, u8::MAX as u64),
            ("valid", self.valid.0, 1, u64::MAX),
        ];
        let mut rest: &[(&'static str, u64, u64, u64)] = &ranges;
        while let [(name, value, low, high), more @ ..] = rest {
            if *value < *low || *value > *high {
                return Err(ConfigError::Range {
                    name,
                    value: *value,
                    low: *low,
                    high: *high,
                });
            }
            rest = more;
        }
        if is_miss(self.miss) {
            Ok(())
        } else {
            Err(ConfigError::Miss(self.miss))
        }
    }
}

/// Shares are sent in parts of it.
pub(crate) const MILLION: u32 = 1_000_000;

/// A share in parts per million, rounded up.
pub(crate) const fn millionths(share: Ratio) -> u32 {
    let (often, of) = (share.numerator as u64, share.denominator as u64);
    if of == 0 {
        return 0;
    }
    (often * MILLION as u64).div_ceil(of) as u32
}

/// Whether a bound may miss so often: from 1 in 1,000,000 to 1 in 2.
pub(crate) const fn is_miss(miss: Ratio) -> bool {
    let (often, of) = (miss.numerator as u64, miss.denominator as u64);
    often * 2 <= of && of <= often.saturating_mul(MILLION as u64) && often > 0
}

/// The shortest frame budget: an IEEE 802.15.4 radio frame.
pub(crate) const FRAME_MIN: u16 = 127;

impl Config {
    /// The defaults, where a live node is missing from at most `c` lists and `f` may be dead.
    ///
    /// ```
    /// let config = selvedge_celect::Config::new(4, 1);
    /// assert!(config.check().is_ok());
    /// ```
    #[must_use]
    pub const fn new(c: u16, f: u16) -> Self {
        Self {
            protocol: Protocol::Base,
            c,
            f,
            x: 5,
            y: 5,
            timeout: Span::millis(500),
            attempts: 3,
            retries: 5,
            resend: Span::millis(500),
            patience: Span::secs(5),
            reelect: true,
            spread: Span::millis(200),
            lease: None,
            drift: 1_000,
            exclude_limit: 16,
            frame_budget: 1_400,
            peer_limit: 4_096,
            estimation: None,
        }
    }

    /// Whether these settings can work.
    ///
    /// # Errors
    /// The first field that is out of its range.
    pub const fn check(&self) -> Result<(), ConfigError> {
        if self.x == 0 {
            return Err(ConfigError::X);
        }
        if self.timeout.0 == 0 {
            return Err(ConfigError::Timeout);
        }
        if self.attempts == 0 {
            return Err(ConfigError::Attempts);
        }
        if self.resend.0 == 0 {
            return Err(ConfigError::Resend);
        }
        if let Some(lease) = self.lease {
            if self.retries == 0 {
                return Err(ConfigError::LeaseWithoutRetries);
            }
            if lease.0 < LEASE_MIN {
                return Err(ConfigError::Lease(lease));
            }
        }
        if self.drift > DRIFT_MAX {
            return Err(ConfigError::Drift(self.drift));
        }
        if self.exclude_limit == 0 {
            return Err(ConfigError::ExcludeLimit);
        }
        if self.frame_budget < FRAME_MIN {
            return Err(ConfigError::FrameBudget(self.frame_budget));
        }
        if self.peer_limit == 0 {
            return Err(ConfigError::PeerLimit);
        }
        match &self.estimation {
            Some(estimation) => estimation.check(),
            None => Ok(()),
        }
    }

    /// The bytes that the lists in a message may take, where the message is `fixed` bytes long
    /// without them.
    pub(crate) const fn list_room(&self, fixed: usize) -> Room {
        Room::new(self.frame_budget, fixed)
    }
}

/// The shortest lease, in microseconds: a third of it is the time between renewals.
const LEASE_MIN: u64 = 3_000;

/// The largest drift, which leaves a third of any lease.
const DRIFT_MAX: u32 = 666_666;

/// Which setting cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum ConfigError {
    /// No node could be named.
    #[error("x is 0: give how many candidates a node names, from 1")]
    X,
    /// No node could answer in time.
    #[error("timeout is 0: give a time longer than the usual round trip")]
    Timeout,
    /// No node could be appointed.
    #[error("attempts is 0: give at least 1")]
    Attempts,
    /// LEADER would be sent again at once.
    #[error("resend is 0: give a time longer than the usual round trip")]
    Resend,
    /// No node would acknowledge a renewal.
    #[error("a lease needs acknowledgements: set retries above 0, or lease to None")]
    LeaseWithoutRetries,
    /// It would be over at once.
    #[error("the lease is {0:?}: give at least 3 ms, and several round trips")]
    Lease(Span),
    /// Too little of a lease would be left.
    #[error("drift is {0} parts per million: give at most {DRIFT_MAX}")]
    Drift(u32),
    /// No node could be passed over.
    #[error("exclude_limit is 0: give at least 1")]
    ExcludeLimit,
    /// The longest fixed part of a message would not fit.
    #[error("frame_budget is {0} bytes: give at least {FRAME_MIN}")]
    FrameBudget(u16),
    /// No node could be remembered.
    #[error("peer_limit is 0: give at least the number of nodes")]
    PeerLimit,
    /// A number of the estimation is outside its range.
    #[error("estimation's {name} is {value}: set it to at least {low} and at most {high}")]
    Range {
        /// Which setting.
        name: &'static str,
        /// What was asked; times in microseconds.
        value: u64,
        /// The least that works.
        low: u64,
        /// The most that works.
        high: u64,
    },
    /// A bound cannot miss so often.
    #[error("estimation's miss is {0:?}: set it to at least 1 in 1,000,000 and at most 1 in 2")]
    Miss(Ratio),
}
