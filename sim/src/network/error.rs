use core::fmt::Debug;

use selvedge_core::{NodeId, Span};
use thiserror::Error;

use super::TopologyError;

/// An error in setting up or changing the network. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// The node does not exist.
    #[error("node {node} does not exist: {nodes} nodes were added, counted from 0")]
    NoSuchNode {
        /// The index that was asked for.
        node: usize,
        /// The number of nodes added.
        nodes: usize,
    },
    /// The topology has no place left.
    #[error("the topology holds {nodes} nodes and all were added: make a larger one")]
    NoPlaceLeft {
        /// The number of nodes that the topology holds.
        nodes: usize,
    },
    /// Two nodes with one id.
    #[error("node {node} has the id {id} already: give every node an id of its own")]
    DuplicateId {
        /// The id.
        id: NodeId,
        /// The node that has it.
        node: usize,
    },
    /// A node came back under another id.
    #[error(
        "node {node} has the id {expected} and was restarted as {found}: keep the id, change the incarnation"
    )]
    OtherId {
        /// The node.
        node: usize,
        /// Its id.
        expected: NodeId,
        /// The id it was given.
        found: NodeId,
    },
    /// A node was put on two sides of a partition.
    #[error("node {node} is in two groups: name it in one")]
    TwoGroups {
        /// The node.
        node: usize,
    },
    /// The shortest delay is longer than the longest.
    #[error("the shortest delay of a hop, {min:?}, is longer than the longest, {max:?}: swap them")]
    Delays {
        /// The shortest.
        min: Span,
        /// The longest.
        max: Span,
    },
    /// A duty cycle that never wakes, or has no length.
    #[error("a node awake for {awake:?} of every {period:?} never wakes: both must be above zero")]
    NeverAwake {
        /// The time that it is awake.
        awake: Span,
        /// The length of the period.
        period: Span,
    },
    /// A membership trace names an observer that is not in the network.
    #[error("the trace's observer {id} is not in the network: add a node with this id first")]
    UnknownObserver {
        /// The observer.
        id: NodeId,
    },
    /// The topology refused.
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

/// The reason why a node did not handle an input or a call.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CallError<E: Debug> {
    /// The node does not exist.
    #[error("node {node} does not exist: {nodes} nodes were added, counted from 0")]
    NoSuchNode {
        /// The index that was asked for.
        node: usize,
        /// The number of nodes added.
        nodes: usize,
    },
    /// It is down.
    #[error("node {node} is down: restart it first")]
    Down {
        /// The node.
        node: usize,
    },
    /// Its machine refused.
    #[error("node {node} refused: {why:?}")]
    Refused {
        /// The node.
        node: usize,
        /// The machine's reason.
        why: E,
    },
}
