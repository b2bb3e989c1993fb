//! Counters.

/// The counters of a gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Followers, tasks and distances of gateways that found no room.
    pub no_room: u64,
    /// Proposals that the replica refused. A repeated message or a timer makes them again.
    pub not_proposed: u64,
    /// The number of times that a unit did not answer in time.
    pub retries: u64,
    /// Verdicts that their voters cannot have made, because they are not enough of the followers that have the
    /// task. A voter may have been purged meanwhile: then the orchestrator receives the list of the remaining
    /// followers, and counts again.
    pub disbelieved: u64,
    /// The number of times that the resource manager handed over to another gateway.
    pub handed_over: u64,
}
