use thiserror::Error;

use super::Topology;

/// Why a topology cannot be made or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// No nodes, or too many.
    #[error("a topology holds 1 to {max} nodes, and {nodes} were asked for", max = Topology::MAX_NODES)]
    Size {
        /// The number of nodes requested.
        nodes: usize,
    },
    /// An edge that is impossible.
    #[error(
        "the edge {a} - {b} must join two different nodes below {nodes}: correct the edge, or ask for more nodes"
    )]
    Edge {
        /// One end.
        a: usize,
        /// The other.
        b: usize,
        /// The number of nodes.
        nodes: usize,
    },
    /// No placement was connected.
    #[error(
        "none of {tries} placements of {nodes} nodes was connected at range {range} mm: raise the range, or place the nodes closer together"
    )]
    NotConnected {
        /// The number of placements tried.
        tries: u32,
        /// The number of nodes to place.
        nodes: usize,
        /// The range of a radio, in mm.
        range: u32,
    },
    /// The coordinates do not fit.
    #[error(
        "the area ends beyond {max} mm, the largest coordinate: make it smaller",
        max = u32::MAX
    )]
    TooFar,
    /// This node cannot be moved.
    #[error(
        "node {node} of {nodes} cannot be moved: only nodes of a topology with places (grid, random_geometric, clusters, placed) can, by an index below the node count"
    )]
    NoPlace {
        /// The node.
        node: usize,
        /// The number of nodes.
        nodes: usize,
    },
}
