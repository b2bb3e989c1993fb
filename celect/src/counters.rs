//! What a node counts.

/// Counted since the beginning; nothing depends on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Counters {
    /// How often a member that is alive found no place on the list, because
    /// [`Config::peer_limit`](crate::Config::peer_limit) others were there. No event says so.
    pub no_room: u64,
    /// Answers to runs, rounds and samples that are over, or of nodes that were not asked; those
    /// that name somebody who is over, when no more can be passed over, or only some of those who are
    /// passed over; NOTIFYLEADER to a former
    /// life; and reports and estimates that come late, twice, or by a ballot that is not followed.
    pub stale: u64,
    /// Rounds in which all were asked anew: a would-be leader did not answer or is over, all
    /// candidates were unhealthy, or too few were left without those who had been passed over.
    pub rounds: u64,
    /// Nodes that did not acknowledge a leader after all retries.
    pub unheard: u64,
    /// Nodes that were asked for their lists and did not give them, or gave too long ones.
    pub unlisted: u64,
}
