//! The counters of a node.

/// Counts of events since the beginning. They never decrease, and are no part of the protocol's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Counters {
    /// Probes begun.
    pub probes: u64,
    /// Probes left out because a message of their target had just arrived, see
    /// [`Config::suppress_probes`](crate::Config::suppress_probes).
    pub probes_suppressed: u64,
    /// Probes that found no answer, relays included.
    pub failed_probes: u64,
    /// Suspicions that this node sent to others.
    pub suspicions: u64,
    /// Members that this node declared failed by itself.
    pub failures: u64,
    /// Refutations by this node of reports about it.
    pub refutations: u64,
    /// Later incarnations that this node had to take.
    pub identity_changes: u64,
    /// Messages of lives that are over.
    pub stale_senders: u64,
    /// Messages of nodes that were not on the list.
    pub unknown_senders: u64,
    /// Members for which the list had no room.
    pub list_full: u64,
    /// Claims about others, or about this node, that were not believed, see
    /// [`Config::hearsay_limit`](crate::Config::hearsay_limit).
    pub hearsay_refused: u64,
    /// Requests for the list by nodes that are not on it.
    pub readers_refused: u64,
    /// Dead members that were forgotten before their time: more than
    /// [`Config::tombstone_limit`](crate::Config::tombstone_limit), or to make room for live
    /// members.
    pub tombstones_displaced: u64,
    /// Updates that were given up for newer ones.
    pub updates_dropped: u64,
    /// Broadcasts that were given up for newer ones.
    pub broadcasts_dropped: u64,
    /// UNLUCKY reports that this node sent.
    pub unlucky_sent: u64,
    /// UNLUCKY reports that this node acted on.
    pub unlucky_heeded: u64,
    /// UNLUCKY reports for which there was no room.
    pub unlucky_dropped: u64,
    /// Distances that changed because a measured round trip did, see
    /// [`Config::round_trip_unit`](crate::Config::round_trip_unit).
    pub distances: u64,
    /// Comparisons of whole lists that this node began.
    pub syncs: u64,
    /// Probes of seeds and of the dead.
    pub reconnects: u64,
}
