//! The counters of a node.

/// The counters of a node's groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Groups that the node learned of and had no room for:
    /// [`Config::groups`](crate::Config::groups).
    pub no_room: u64,
    /// Parts of messages that were refused: a peer misbehaves, or asks a node that cannot answer.
    pub refused: u64,
    /// Links that this node proposed: epochs, and members that failed.
    pub changes: u64,
    /// Nodes that this node would have named as members, and that did not answer in time.
    pub silent: u64,
    /// Questions that arrived at a node that does not lead.
    pub elsewhere: u64,
    /// Messages and proposals that were longer than a frame, and not sent: the application must
    /// send less, or the site needs longer frames.
    pub too_long: u64,
}
