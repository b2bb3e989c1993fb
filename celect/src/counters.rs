//! What a node counts.

/// Counts since the node began; nothing depends on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Counters {
    /// How often a live member found no place on the list, because
    /// [`Config::peer_limit`](crate::Config::peer_limit) others were there. No event says so.
    pub no_room: u64,
    /// Answers to runs, rounds and samples that are over, or from nodes that were not asked;
    /// answers that name a node that is over, when no more can be passed over, or that name only
    /// some of the nodes that are passed over; APPOINT to a former life; and reports and
    /// estimates that come late, twice, or by a ballot that is not followed.
    pub stale: u64,
    /// Rounds in which all were asked again: a would-be leader did not answer or is over, all
    /// candidates were unhealthy, or too few were left without the nodes that had been passed over.
    pub rounds: u64,
    /// How often this node went on leading, by a new ballot, where it met a leader that a majority
    /// did not follow.
    pub kept: u64,
    /// Nodes that did not acknowledge a leader after all retries.
    pub unheard: u64,
    /// Nodes that were asked for their lists and did not give them, or gave too long ones.
    pub unlisted: u64,
}
