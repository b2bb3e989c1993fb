//! Counters of a node.

/// Counted since the beginning; nothing depends on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Counters {
    /// Nodes, OKs and messages that were not stored because
    /// [`Config::peer_limit`](crate::Config::peer_limit) was reached.
    pub no_room: u64,
    /// Messages of lives that have ended, and of requests that are over.
    pub stale: u64,
    /// Requests that were issued again under a higher number.
    pub issued_again: u64,
    /// Requests of this node that went through the whole mesh.
    pub slow: u64,
    /// Trees of this node that were built again, because a part was lost.
    pub rebuilt: u64,
}
