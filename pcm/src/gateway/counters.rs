//! Counters.

/// The counters of a gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Followers, tasks and distances of gateways that found no room.
    pub no_room: u64,
    /// Proposals that the replica did not take; they are made again when there is reason.
    pub not_proposed: u64,
    /// The number of times that a unit did not answer in time.
    pub retries: u64,
    /// Verdicts whose voters, of the followers that have the task, cannot have made them. One that was purged
    /// meanwhile may be among them: its orchestrator hears who is left, and counts again.
    pub disbelieved: u64,
    /// The number of times that the resource manager had another gateway lead.
    pub handed_over: u64,
}
