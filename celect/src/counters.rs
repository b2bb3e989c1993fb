//! Counters.

/// Counts since the node began; nothing depends on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Counters {
    /// Live members that found no place on the list, because it had
    /// [`Config::peer_limit`](crate::Config::peer_limit) others. No event reports this.
    pub no_room: u64,
    /// Answers to runs, rounds and samples that have ended, or from nodes that were not asked;
    /// answers that name a life that has ended, when no more can be passed over, or that name only
    /// some of the nodes that are passed over; APPOINT to a former life; and reports and
    /// estimates that arrive late, twice, or by a ballot that is not followed.
    pub stale: u64,
    /// Rounds that asked all nodes again: an appointed node did not answer or has ended, all
    /// candidates were unhealthy, or too few were left without the nodes that had been passed over.
    pub rounds: u64,
    /// Times that this node kept leading, by a new ballot, when it met a leader that no majority
    /// followed.
    pub kept: u64,
    /// Nodes that did not acknowledge a leader after all retries.
    pub unanswered: u64,
    /// Nodes that were asked for their lists and sent none, or too long ones.
    pub unlisted: u64,
}
