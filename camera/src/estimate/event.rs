//! What the application may ask, what it is told, timers, errors.

use selvedge_core::Member;
use thiserror::Error;

/// What the application may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Find out how many nodes there are. Answered by one [`Event`], later.
    Estimate,
}

/// What the application is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// There are this many nodes, this one included.
    Estimated {
        /// The likeliest number.
        nodes: u32,
        /// The number that is exceeded with a probability of at most
        /// [`Config::miss`](super::Config::miss); at least `nodes`.
        upper: u32,
        /// How many nodes the collection began with: the list and this node, or 0.
        known: u32,
        /// How many samples were taken.
        samples: u32,
        /// How many of these were nodes not in the collection before.
        fresh: u32,
    },
    /// The estimate was given up.
    Failed(Failure),
}

/// Why there is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Failure {
    /// [`Config::patience`](super::Config::patience) walks in a row did not come back: the node is
    /// cut off, its list is out of date, or walks are longer than
    /// [`Config::hop_limit`](super::Config::hop_limit) because the node knows far fewer nodes than
    /// others do.
    Silence {
        /// How many samples were taken before.
        samples: u32,
    },
    /// [`Config::sample_limit`](super::Config::sample_limit) samples had so few hits that even 2^24
    /// nodes (more than any machine here remembers) are no upper bound.
    Unbounded {
        /// How many samples were taken.
        samples: u32,
        /// How many of these were hits.
        hits: u32,
    },
}

/// Tags of the timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// This walk of those under way is overdue: 0 to
    /// [`Config::at_once`](super::Config::at_once) - 1.
    Walk(u8),
}

/// What one node counted since it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Counters {
    /// Walks that were started, not counting restarts.
    pub started: u64,
    /// Walks that were started again because no answer came.
    pub restarted: u64,
    /// Walks, own and others', that were sent on to a neighbour.
    pub forwarded: u64,
    /// Walks that ended here, own ones included.
    pub ended: u64,
    /// Walks that had taken [`Config::hop_limit`](super::Config::hop_limit) hops.
    pub capped: u64,
    /// Answers and own walks that are no longer waited for: second copies, and those of former
    /// estimates or lives.
    pub stale: u64,
    /// Members that found no room among the neighbours.
    pub neighbours_refused: u64,
}

/// Why an input was refused. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Reject {
    /// One estimate at a time.
    #[error("an estimate is under way: wait for its event")]
    Busy,
    /// There is no node to walk to.
    #[error("no other node is known: wait for a Joined delta")]
    Alone,
    /// A peer sent what a correct peer never sends; the host counts it.
    #[error("a peer misbehaves: {0}")]
    Misbehaviour(#[from] Misbehaviour),
}

/// What a peer did wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Misbehaviour {
    /// Two nodes have one id, or a frame of this node came back.
    #[error("it uses the id of this node, {0}: give each node an id of its own")]
    OwnId(Member),
    /// A walk without budget, or with more than any setting gives.
    #[error("a walk has a budget of {budget}, but 1 to {limit} is allowed")]
    Budget {
        /// How much is left of it.
        budget: u64,
        /// How much there may be.
        limit: u64,
    },
}
