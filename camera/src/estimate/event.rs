//! Commands of the application, events for it, timers, errors.

use selvedge_core::Member;
use thiserror::Error;

/// A command of the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Estimate the number of nodes. One [`Event`] follows later.
    Estimate,
}

/// A notification to the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// The estimated number of nodes, with this node.
    Estimated {
        /// The likeliest number.
        nodes: u32,
        /// The number that is exceeded with a probability of at most
        /// [`Config::miss`](super::Config::miss); at least `nodes`.
        max_lives: u32,
        /// The number of nodes in the collection at the beginning: the list and this node, or 0.
        known: u32,
        /// The number of samples.
        samples: u32,
        /// The number of samples that were not in the collection before.
        fresh: u32,
    },
    /// The estimate was given up.
    Failed(Failure),
}

/// The reason for giving up an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Failure {
    /// [`Config::patience`](super::Config::patience) walks in a row were not answered: the node is
    /// cut off, its list is out of date, or walks are longer than
    /// [`Config::hop_limit`](super::Config::hop_limit) because the node knows far fewer nodes than
    /// others do.
    Silence {
        /// The number of samples before that.
        samples: u32,
    },
    /// [`Config::sample_limit`](super::Config::sample_limit) samples had so few hits that even 2^24
    /// nodes (more than any machine here remembers) are no upper bound.
    Unbounded {
        /// The number of samples.
        samples: u32,
        /// The number of hits among them.
        hits: u32,
    },
}

/// Tags of the timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// The walk with this index among the walks under way is overdue: 0 to
    /// [`Config::at_once`](super::Config::at_once) - 1.
    Walk(u8),
}

/// Counters of a node since its start.
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
    /// Answers and own walks for which this node no longer waits: second copies, and answers and
    /// walks of former estimates or lives.
    pub stale: u64,
    /// Members that found no room among the neighbours.
    pub neighbours_refused: u64,
}

/// The reason for refusing an input. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Reject {
    /// An estimate is under way: a node makes one at a time.
    #[error("an estimate is under way: wait for its event")]
    Busy,
    /// There is no node to walk to.
    #[error("no other node is known: wait for a Joined delta")]
    Alone,
    /// A peer sent a message that a correct peer never sends; the host counts it.
    #[error("a peer misbehaves: {0}")]
    Misbehaviour(#[from] Misbehaviour),
}

/// A message that a correct peer never sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Misbehaviour {
    /// Two nodes have one id, or a frame of this node came back.
    #[error("it uses the id of this node, {0}: give each node an id of its own")]
    OwnId(Member),
    /// A walk has no budget, or more than any setting gives.
    #[error("a walk has a budget of {budget}, but 1 to {limit} is allowed")]
    Budget {
        /// The rest of the budget.
        budget: u64,
        /// The largest budget.
        limit: u64,
    },
}
