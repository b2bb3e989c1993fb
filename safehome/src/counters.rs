//! Counters of a hub.

/// Counters since the hub was created or restored; no decision depends on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Counters {
    /// Commands without a reported outcome within their timeout.
    pub timeouts: u64,
    /// Gaps that the timeline scheduler examined.
    pub searched: u64,
    /// Routines that it put behind all others because
    /// [`Config::search_limit`](crate::Config::search_limit) was reached.
    pub unplaced: u64,
    /// Failures and restarts that have no place in the serial order, because the device had too
    /// many while a routine was unfinished.
    pub unordered: u64,
}
