//! Nodes, and the edges between neighbours.

mod error;
mod place;
mod point;

pub use error::TopologyError;
pub use place::{PAPER_CLUSTERS, Square};
pub use point::Point;

/// No node has this hop count: the most that a topology holds is one node less.
const UNREACHED: u16 = u16::MAX;

/// The nodes of a network, by index from 0, and their neighbours, one hop apart. Every hop goes
/// both ways.
///
/// Distances are whole millimetres and decide by comparing squares, so that a topology is the same
/// on every platform.
///
/// ```
/// use selvedge_sim::network::Topology;
/// // 7 by 7 nodes, 2,142 mm apart, radios that reach 4 m: the diagonal neighbour is in range.
/// let grid = Topology::grid(7, 7, 2_142, 4_000)?;
/// assert_eq!((grid.len(), grid.degree(0), grid.hops(0, 48)), (49, 3, Some(6)));
/// # Ok::<(), selvedge_sim::network::TopologyError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    len: usize,
    reach: Reach,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Reach {
    /// Every two nodes are neighbours; no edge is stored.
    Everyone,
    /// The edges were given.
    Listed { near: Vec<Vec<u32>> },
    /// Nodes at most `range` mm apart are neighbours.
    Range {
        points: Vec<Point>,
        range: u32,
        near: Vec<Vec<u32>>,
    },
}

impl Topology {
    /// The most nodes that a topology holds.
    pub const MAX_NODES: usize = UNREACHED as usize;

    /// A topology in which every two nodes are one hop apart. Takes no memory per node.
    ///
    /// # Errors
    /// [`TopologyError::Size`] when there are no nodes or more than [`MAX_NODES`](Self::MAX_NODES).
    pub fn full_mesh(nodes: usize) -> Result<Self, TopologyError> {
        Ok(Self {
            len: checked_len(nodes)?,
            reach: Reach::Everyone,
        })
    }

    /// A topology of `nodes` nodes and these edges between them. An edge given twice counts once.
    ///
    /// # Errors
    /// [`TopologyError::Size`] as in [`full_mesh`](Self::full_mesh), and [`TopologyError::Edge`]
    /// for an edge to a node that does not exist, or from a node to itself.
    pub fn from_edges(nodes: usize, edges: &[(usize, usize)]) -> Result<Self, TopologyError> {
        let len = checked_len(nodes)?;
        let mut near = vec![Vec::new(); len];
        for &(a, b) in edges {
            if a == b || a.max(b) >= len {
                return Err(TopologyError::Edge { a, b, nodes: len });
            }
            link(&mut near, a, b);
        }
        for row in &mut near {
            row.sort_unstable();
            row.dedup();
        }
        Ok(Self {
            len,
            reach: Reach::Listed { near },
        })
    }

    /// A topology of nodes at these points; nodes at most `range` mm apart are neighbours. The
    /// whole need not be connected. Takes O(n log n) and the pairs that share a strip of the width
    /// of the range.
    ///
    /// # Errors
    /// [`TopologyError::Size`] as in [`full_mesh`](Self::full_mesh).
    pub fn placed(points: Vec<Point>, range: u32) -> Result<Self, TopologyError> {
        let len = checked_len(points.len())?;
        let near = point::within(&points, range);
        Ok(Self {
            len,
            reach: Reach::Range {
                points,
                range,
                near,
            },
        })
    }

    /// The number of nodes.
    #[must_use]
    #[expect(
        clippy::len_without_is_empty,
        reason = "a topology without nodes cannot be made"
    )]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// The nodes one hop away from `node`, by index.
    pub fn neighbours(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let everyone = match self.reach {
            Reach::Everyone if node < self.len => 0..self.len,
            Reach::Everyone | Reach::Listed { .. } | Reach::Range { .. } => 0..0,
        };
        let listed = self.near(node).iter().map(|&other| other as usize);
        everyone.filter(move |&other| other != node).chain(listed)
    }

    /// The number of neighbours of `node`.
    #[must_use]
    pub fn degree(&self, node: usize) -> usize {
        match &self.reach {
            Reach::Everyone if node < self.len => self.len - 1,
            Reach::Everyone | Reach::Listed { .. } | Reach::Range { .. } => self.near(node).len(),
        }
    }

    /// The hops on a shortest path from `a` to `b`: 0 from a node to itself, `None` without a path
    /// or for a node that does not exist. Each call searches, in O(nodes + edges): for many pairs
    /// take [`hops_from`](Self::hops_from), in a run [`Network::hops`](super::Network::hops).
    #[must_use]
    pub fn hops(&self, a: usize, b: usize) -> Option<u16> {
        self.hops_from(a).get(b).copied().flatten()
    }

    /// The hops on a shortest path from `from` to every node, in O(nodes + edges).
    #[must_use]
    pub fn hops_from(&self, from: usize) -> Vec<Option<u16>> {
        let mut hops = vec![None; self.len];
        let Some(start) = hops.get_mut(from) else {
            return hops;
        };
        *start = Some(0);
        let mut frontier = vec![from];
        let mut next = Vec::new();
        let mut distance = 0;
        while !frontier.is_empty() {
            distance += 1;
            for other in frontier.drain(..).flat_map(|node| self.neighbours(node)) {
                if let Some(unseen @ None) = hops.get_mut(other) {
                    *unseen = Some(distance);
                    next.push(other);
                }
            }
            core::mem::swap(&mut frontier, &mut next);
            if self.is_full_mesh() {
                break;
            }
        }
        hops
    }

    /// Returns true if a path joins any two nodes. Takes O(nodes + edges).
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.is_full_mesh() || self.hops_from(0).iter().all(Option::is_some)
    }

    /// The distance from `a` to `b` in mm, rounded down; `None` when nodes have no place here or
    /// one of the two does not exist.
    #[must_use]
    pub fn distance(&self, a: usize, b: usize) -> Option<u64> {
        Some(self.point(a)?.distance(self.point(b)?))
    }

    /// The place of `node`; `None` when nodes have no place here or it does not exist.
    #[must_use]
    pub fn point(&self, node: usize) -> Option<Point> {
        match &self.reach {
            Reach::Range { points, .. } => points.get(node).copied(),
            Reach::Everyone | Reach::Listed { .. } => None,
        }
    }

    /// Moves `node`, and gives it the edges of its new place. The whole may fall apart. Takes
    /// O(nodes).
    ///
    /// # Errors
    /// [`TopologyError::NoPlace`] when nodes have no place here, or the node does not exist;
    /// nothing changed.
    pub fn move_to(&mut self, node: usize, to: Point) -> Result<(), TopologyError> {
        let no_place = TopologyError::NoPlace {
            node,
            nodes: self.len,
        };
        let Reach::Range {
            points,
            range,
            near,
        } = &mut self.reach
        else {
            return Err(no_place);
        };
        let Some(point) = points.get_mut(node) else {
            return Err(no_place);
        };
        *point = to;
        point::relink(points, *range, near, node);
        Ok(())
    }

    pub(super) const fn is_full_mesh(&self) -> bool {
        matches!(self.reach, Reach::Everyone)
    }

    fn near(&self, node: usize) -> &[u32] {
        match &self.reach {
            Reach::Everyone => &[],
            Reach::Listed { near } | Reach::Range { near, .. } => {
                near.get(node).map_or(&[], Vec::as_slice)
            }
        }
    }
}

fn checked_len(nodes: usize) -> Result<usize, TopologyError> {
    if nodes == 0 || nodes > Topology::MAX_NODES {
        return Err(TopologyError::Size { nodes });
    }
    Ok(nodes)
}

/// Adds the edge at both ends; the caller sorts.
fn link(near: &mut [Vec<u32>], a: usize, b: usize) {
    for (at, other) in [(a, b), (b, a)] {
        if let (Some(row), Ok(other)) = (near.get_mut(at), u32::try_from(other)) {
            row.push(other);
        }
    }
}
