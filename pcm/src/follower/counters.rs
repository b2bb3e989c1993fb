//! Counters.

/// The counters of a follower.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Tasks beyond the limit of [`Config::jobs`](super::Config::jobs).
    pub no_room: u64,
    /// Functions that were too long, took too long, or returned too much.
    pub beyond_limits: u64,
    /// Messages that were repeated up to their limit without an answer.
    pub given_up: u64,
    /// Tasks that were given to a former life.
    pub stale: u64,
}
