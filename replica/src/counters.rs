//! The counters of a member.

/// Counts since the machine was made; nothing depends on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct Counters {
    /// Messages of ballots, rounds, candidacies or lives that have ended.
    pub stale: u64,
    /// Proposals and reads of other members that found no room; they are sent again.
    pub no_room: u64,
    /// States that were received whole.
    pub installed: u64,
    /// Pages of states that are longer than [`Config::state_limit`](crate::Config::state_limit).
    pub too_long: u64,
    /// Reports of the membership service about lives that had ended: they change nothing. A host must
    /// name a failed peer in the life that membership lists, which may be later than the one in the
    /// configuration.
    pub old_lives: u64,
    /// Elections that this member began.
    pub elections: u64,
}
