//! The topologies of the papers: grid, random, clusters.

use chacha20::ChaCha8Rng;
use rand_core::SeedableRng;
use selvedge_core::Choose;

use super::{Point, Topology, TopologyError, checked_len};

/// The number of placements to draw before giving up.
const TRIES: u32 = 1_000;

/// Placements draw from a stream of their own, so that a network with the same seed draws nothing
/// twice.
const PLACEMENT_STREAM: u64 = u64::MAX;

/// A cluster: nodes at random places in a square.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Square {
    /// The number of nodes in it.
    pub nodes: usize,
    /// Its corner with the lowest coordinates.
    pub corner: Point,
    /// The length of its sides, in mm.
    pub side: u32,
}

/// The clusters that Medley-F and CoMesh were measured with: 7, 7, 9, 10 and 16 nodes in 15 m by
/// 15 m, meant for a range of 4 m. The papers give the sizes; the squares are ours: 5 m by 5 m, in
/// the corners of the area, the largest in its middle.
pub const PAPER_CLUSTERS: [Square; 5] = [
    Square::new(7, 0, 0),
    Square::new(7, 10_000, 0),
    Square::new(9, 0, 10_000),
    Square::new(10, 10_000, 10_000),
    Square::new(16, 5_000, 5_000),
];

impl Square {
    const fn new(nodes: usize, x: u32, y: u32) -> Self {
        Self {
            nodes,
            corner: Point::new(x, y),
            side: 5_000,
        }
    }
}

impl Topology {
    /// A grid of `columns` by `rows` nodes, `spacing` mm apart, row by row from the corner. Nodes
    /// at most `range` mm apart are neighbours: `range == spacing` gives each up to four
    /// neighbours.
    ///
    /// # Errors
    /// [`TopologyError::Size`] for no nodes or too many, [`TopologyError::TooFar`] when a
    /// coordinate does not fit.
    pub fn grid(columns: u32, rows: u32, spacing: u32, range: u32) -> Result<Self, TopologyError> {
        let nodes = u64::from(columns) * u64::from(rows);
        checked_len(usize::try_from(nodes).unwrap_or(usize::MAX))?;
        if columns
            .max(rows)
            .saturating_sub(1)
            .checked_mul(spacing)
            .is_none()
        {
            return Err(TopologyError::TooFar);
        }
        let points = (0..rows)
            .flat_map(|row| (0..columns).map(move |column| (column, row)))
            .map(|(column, row)| Point::new(column * spacing, row * spacing))
            .collect();
        Self::placed(points, range)
    }

    /// A topology of `nodes` nodes at random places in a square with sides of `side` mm; nodes at
    /// most `range` mm apart are neighbours. Draws placements from `seed` until one is connected.
    ///
    /// # Errors
    /// [`TopologyError::Size`] for no nodes or too many, [`TopologyError::NotConnected`] when
    /// 1,000 placements were not connected.
    pub fn random_geometric(
        nodes: usize,
        side: u32,
        range: u32,
        seed: u64,
    ) -> Result<Self, TopologyError> {
        let square = Square {
            nodes,
            corner: Point::new(0, 0),
            side,
        };
        Self::clusters(&[square], range, seed)
    }

    /// Clusters of nodes, each at a random place in its square, numbered cluster by cluster; nodes
    /// at most `range` mm apart are neighbours. Draws placements from `seed` until one is
    /// connected.
    ///
    /// ```
    /// use selvedge_sim::network::{PAPER_CLUSTERS, Topology};
    /// let topology = Topology::clusters(&PAPER_CLUSTERS, 4_000, 1)?;
    /// assert_eq!(topology.len(), 49);
    /// # Ok::<(), selvedge_sim::network::TopologyError>(())
    /// ```
    ///
    /// # Errors
    /// [`TopologyError::Size`] for no nodes or too many, [`TopologyError::TooFar`] when a square
    /// ends beyond the last coordinate, [`TopologyError::NotConnected`] when 1,000 placements were
    /// not connected.
    pub fn clusters(squares: &[Square], range: u32, seed: u64) -> Result<Self, TopologyError> {
        let nodes = squares
            .iter()
            .fold(0_usize, |sum, square| sum.saturating_add(square.nodes));
        checked_len(nodes)?;
        for Square { corner, side, .. } in squares {
            if corner.x.max(corner.y).checked_add(*side).is_none() {
                return Err(TopologyError::TooFar);
            }
        }
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(PLACEMENT_STREAM);
        for _ in 0..TRIES {
            let mut points = Vec::with_capacity(nodes);
            for square in squares {
                points.extend((0..square.nodes).map(|_| draw(square, &mut rng)));
            }
            let topology = Self::placed(points, range)?;
            if topology.is_connected() {
                return Ok(topology);
            }
        }
        Err(TopologyError::NotConnected {
            tries: TRIES,
            nodes,
            range,
        })
    }
}

fn draw(square: &Square, rng: &mut ChaCha8Rng) -> Point {
    let mut coordinate = |from: u32| {
        let offset = rng.below(u64::from(square.side) + 1);
        // The square was checked to end within u32, so nothing is cut off.
        from.saturating_add(u32::try_from(offset).unwrap_or(square.side))
    };
    let x = coordinate(square.corner.x);
    let y = coordinate(square.corner.y);
    Point::new(x, y)
}
