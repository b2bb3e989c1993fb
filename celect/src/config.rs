//! The settings, with their units, ranges and sources.

#[cfg(feature = "estimate")]
mod estimation;

use selvedge_core::settings::{self, OutOfRange, Setting};
use selvedge_core::wire::Room;
use selvedge_core::{Ratio, Span};
use thiserror::Error;

#[cfg(feature = "estimate")]
pub use self::estimation::Estimation;

/// The protocol of an election. Nodes answer initiators of every protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Protocol {
    /// Asks c + f + 1 nodes and appoints when c + 1 have answered (Algorithm 2).
    #[default]
    Base,
    /// With each answer, appoints the best candidate known, and replaces it if a better one arrives
    /// (Algorithm 3).
    Optimistic,
    /// Works as `Base`, and passes over nodes that are often suspected (Algorithm 4).
    Preferred,
    /// Works as `Optimistic`, and passes over nodes that are often suspected (Algorithm 5).
    Hybrid,
    /// Works as `Base`, with the initiator's own list as one of the c + 1: the initiator asks c + f
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

/// The settings of one node, checked once, by [`Celect::new`](crate::Celect::new).
///
/// Nodes may differ in all of them; each run uses its initiator's [`missing_from`](Self::missing_from)
/// and [`failures`](Self::failures).
///
/// ```
/// use selvedge_celect::{Config, Protocol};
///
/// let config = Config::new(4, 1).with_protocol(Protocol::Lean).with_attempts(5);
/// assert!(config.check().is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Config {
    /// The protocol of this node's elections. Default [`Protocol::Base`].
    pub protocol: Protocol,
    /// The number of lists from which a live node may be missing (c of the thesis): from 0.
    /// Elections use it while [`estimation`](Self::estimation) is off or has no result. It counts
    /// all nodes that miss the live node at any moment of a run (erratum E7). No default: too low a
    /// value elects wrongly, too high a value asks more nodes. About 10% of the nodes at 5% loss
    /// (thesis, table 5.1).
    pub missing_from: u16,
    /// The number of nodes that may be dead and still on lists (f of the thesis): from 0. No
    /// default.
    pub failures: u16,
    /// The number of lowest nodes that a node names to `Preferred` and `Hybrid` (x of the thesis):
    /// from 1. Default 5, as in the thesis.
    pub lowest: u8,
    /// The number of most suspected nodes that a node names to `Preferred` and `Hybrid` (y of the
    /// thesis): from 0. Default 5, as in the thesis.
    pub suspected: u8,
    /// The time to wait for answers, for parts of lists, and for the node that was appointed: above
    /// zero. It should be longer than the usual round trip: a live node that takes longer to answer
    /// may be passed over. Default 500 ms, as in the thesis.
    pub timeout: Span,
    /// The number of times that APPOINT is sent to a node before the node is passed over, from 1. A
    /// node that was declared failed, or that let its lease run out, gets as many, but within a
    /// single `timeout`. Also the number of requests for each part of a list, where c is measured.
    /// Default 3.
    pub attempts: u8,
    /// The number of times that LEADER is sent again to a node that did not acknowledge it. With 0
    /// nothing is acknowledged or forwarded: then the host's multicast must be reliable, as the thesis
    /// assumes. Default 5.
    pub retries: u8,
    /// The time to wait for an acknowledgement of LEADER: above zero. Default 500 ms.
    pub resend: Span,
    /// The time that a node which gave way to another initiator waits for a leader from it before
    /// it begins again. It begins at once when that initiator is declared failed. With zero it
    /// begins again only then. Should be several timeouts. Default 5 s.
    pub patience: Span,
    /// True if a node elects another leader when it learns that its leader failed, left, or let its
    /// lease run out; and if a leader that let its own lease run out does so when it has learned of
    /// no leader for `patience`. Default true.
    pub reelect: bool,
    /// True if nodes keep a leader that has a majority of the nodes that it knows, the failed ones
    /// included, when they meet a leader without one (for example, a node that was alone for a
    /// while), or an election of such a node: the leader that stays takes a ballot above the
    /// other's. A leader that was declared failed is asked, and has [`timeout`](Self::timeout) to
    /// answer before another one is elected. Also a node that is elected as the lowest is not
    /// followed where a majority of the nodes that it knows failed. With `false` the larger ballot
    /// leads, whichever nodes follow it. Without effect where `retries` is 0. Default false; true in
    /// the elections of the crate `selvedge`.
    pub keep_leader: bool,
    /// The time over which nodes that lost their leader spread the beginnings of their elections, so
    /// that not all begin. Zero for at once. Default 200 ms.
    pub spread: Span,
    /// The time that this node leads without a renewal, by every node's own clock. `None`, the
    /// default, is for ever. LEADER carries this lease; the followers' own settings do not matter.
    /// Needs `retries` above 0, since acknowledgements renew it. A host's clock has to go on while
    /// the host sleeps; see [the crate page](crate#clocks).
    pub lease: Option<Span>,
    /// The largest difference between the rates of two clocks, in parts per million. The leader
    /// shortens its lease by this share, and renews it every third of that shorter time. At most
    /// 666,666, which leaves a third. Default 1,000.
    pub drift: u32,
    /// The largest number of nodes passed over that an initiator names in its queries; fewer where
    /// they do not fit a frame. For each further node passed over the queries ask for one
    /// candidate more, as long as an answer in a frame of [`frame_budget`](Self::frame_budget) can
    /// name one candidate behind all of these: 3 more in the shortest frame (1 with `Preferred` and
    /// `Hybrid`), 88 by default. Beyond that a further node that does not answer makes the
    /// initiator forget the first, and an answer that names a life that has ended does not count.
    /// From 1. Default 16.
    pub exclude_limit: u8,
    /// The longest frame in bytes, header and sender included: from 127. Lists are cut to fit.
    /// Default 1,400.
    pub frame_budget: u16,
    /// The largest number of others on the list: from 1. A live node that finds no place is counted
    /// ([`Counters::no_room`](crate::Counters::no_room)), is notified of the leader once, and waits
    /// for a place; meanwhile it is missing from this list, and c counts that. Besides the list, as
    /// many others and two more are remembered that have ended or wait: the dead take no place on
    /// the list. A sample counts no more nodes, either. Default 4,096.
    pub peer_limit: u32,
    /// The measurement of c. With `None`, the default, elections use
    /// [`missing_from`](Self::missing_from). Else they use it only while no measured value is in force. Exists with the feature `estimate`.
    #[cfg(feature = "estimate")]
    pub estimation: Option<Estimation>,
}

/// The source of an estimate of c.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Source {
    /// The leader asks some nodes for their lists every [`Estimation::period`]
    /// ([`Tally`](crate::estimate::Tally)). The estimate holds for all nodes.
    #[default]
    Sampling,
    /// Initiators report to the leader the number of their answers that lacked it
    /// ([`Misses`](crate::estimate::Misses)). The estimate holds for this leader alone, and is
    /// forgotten when the leader is lost or another one follows. So it serves elections that
    /// confirm a leader, and not elections that replace it. `Preferred` and `Hybrid` report nothing.
    Feedback,
}

/// The denominator of shares in messages.
pub(crate) const MILLION: u32 = 1_000_000;

/// A share in parts per million, rounded up.
#[cfg(feature = "estimate")]
pub(crate) const fn millionths(share: Ratio) -> u32 {
    let (often, of) = (share.numerator as u64, share.denominator as u64);
    if of == 0 {
        return 0;
    }
    (often * MILLION as u64).div_ceil(of) as u32
}

/// Returns true if `miss` is from 1 in 1,000,000 to 1 in 2.
pub(crate) const fn is_miss(miss: Ratio) -> bool {
    let (often, of) = (miss.numerator as u64, miss.denominator as u64);
    often * 2 <= of && of <= often.saturating_mul(MILLION as u64) && often > 0
}

/// The shortest frame budget: an IEEE 802.15.4 radio frame.
pub(crate) const FRAME_MIN: u16 = 127;

impl Config {
    /// Returns the defaults, where a live node is missing from at most `missing_from` lists and
    /// `failures` nodes may be dead.
    #[must_use]
    pub const fn new(missing_from: u16, failures: u16) -> Self {
        Self {
            protocol: Protocol::Base,
            missing_from,
            failures,
            lowest: 5,
            suspected: 5,
            timeout: Span::millis(500),
            attempts: 3,
            retries: 5,
            resend: Span::millis(500),
            patience: Span::secs(5),
            reelect: true,
            keep_leader: false,
            spread: Span::millis(200),
            lease: None,
            drift: 1_000,
            exclude_limit: 16,
            frame_budget: 1_400,
            peer_limit: 4_096,
            #[cfg(feature = "estimate")]
            estimation: None,
        }
    }

    selvedge_core::with_settings! {
        with_protocol protocol: Protocol,
        with_missing_from missing_from: u16,
        with_failures failures: u16,
        with_lowest lowest: u8,
        with_suspected suspected: u8,
        with_timeout timeout: Span,
        with_attempts attempts: u8,
        with_retries retries: u8,
        with_resend resend: Span,
        with_patience patience: Span,
        with_reelect reelect: bool,
        with_keep_leader keep_leader: bool,
        with_spread spread: Span,
        with_lease lease: Option<Span>,
        with_drift drift: u32,
        with_exclude_limit exclude_limit: u8,
        with_frame_budget frame_budget: u16,
        with_peer_limit peer_limit: u32,
    }

    #[cfg(feature = "estimate")]
    selvedge_core::with_settings! {
        with_estimation estimation: Option<Estimation>,
    }

    /// Checks that these settings can work.
    ///
    /// # Errors
    /// The first field that is out of its range, or that another field rules out.
    pub const fn check(&self) -> Result<(), ConfigError> {
        let lease = match self.lease {
            Some(lease) => lease,
            None => LEASE_MIN,
        };
        let ranges = [
            Setting::number("lowest", self.lowest as u64, 1, u8::MAX as u64),
            Setting::time("timeout", self.timeout, Span(1), Span(u64::MAX)),
            Setting::number("attempts", self.attempts as u64, 1, u8::MAX as u64),
            Setting::time("resend", self.resend, Span(1), Span(u64::MAX)),
            Setting::time("lease", lease, LEASE_MIN, Span(u64::MAX)),
            Setting::number("drift", self.drift as u64, 0, DRIFT_MAX).counts("ppm"),
            Setting::number(
                "exclude_limit",
                self.exclude_limit as u64,
                1,
                u8::MAX as u64,
            ),
            Setting::number(
                "frame_budget",
                self.frame_budget as u64,
                FRAME_MIN as u64,
                u16::MAX as u64,
            )
            .counts("bytes"),
            Setting::number("peer_limit", self.peer_limit as u64, 1, u32::MAX as u64),
        ];
        if let Err(outside) = settings::check(&ranges) {
            return Err(ConfigError::Range(outside));
        }
        if self.lease.is_some() && self.retries == 0 {
            return Err(ConfigError::LeaseWithoutRetries);
        }
        #[cfg(feature = "estimate")]
        if let Some(estimation) = &self.estimation {
            return estimation.check();
        }
        Ok(())
    }

    /// Returns true if leaders are kept: a node that keeps its leader does not acknowledge the other.
    pub(crate) const fn keeps_leader(&self) -> bool {
        self.keep_leader && self.retries > 0
    }

    /// Returns the room for the lists of a message that is `fixed` bytes long without them.
    pub(crate) const fn list_room(&self, fixed: usize) -> Room {
        Room::new(self.frame_budget, fixed)
    }
}

/// The shortest lease: a third of it is the time between renewals.
const LEASE_MIN: Span = Span::millis(3);

/// The largest drift, which leaves a third of any lease.
const DRIFT_MAX: u64 = 666_666;

/// An error in the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A setting is outside its range.
    #[error(transparent)]
    Range(#[from] OutOfRange),
    /// A lease without acknowledgements, which would never be renewed.
    #[error("a lease needs acknowledgements: set retries above 0, or lease to None")]
    LeaseWithoutRetries,
    /// The `miss` of the estimation is outside its range.
    #[cfg(feature = "estimate")]
    #[error("estimation's miss is {0:?}: set it to at least 1 in 1,000,000 and at most 1 in 2")]
    Miss(Ratio),
}
