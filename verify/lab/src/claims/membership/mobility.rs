//! Nodes that move between settling and failing.

use chacha20::ChaCha8Rng;
use selvedge_core::Choose;
use selvedge_membership::Membership;
use selvedge_sim::network::{Network, Point, Topology};

use super::nodes::{pick, set_distances};
use crate::claims::Fault;

/// Some nodes move at once (thesis, section 4.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mobility {
    /// The percentage of nodes that move.
    pub(super) percent: usize,
    /// The largest distance, in metres.
    pub(super) metres: u32,
    /// True if all nodes get the new distances.
    pub(super) fresh: bool,
}

impl core::fmt::Display for Mobility {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let tables = if self.fresh { "fresh" } else { "stale" };
        write!(
            f,
            "{}% moved up to {} m, {tables} tables",
            self.percent, self.metres
        )
    }
}

impl Mobility {
    /// The number of times that a placement that is not connected is drawn again.
    const TRIES: u32 = 1_000;

    pub(super) fn carry_out(
        self,
        mesh: &mut Network<Membership>,
        rng: &mut ChaCha8Rng,
    ) -> Result<(), Fault> {
        let nodes = mesh.len();
        for _ in 0..Self::TRIES {
            let mut moved = mesh.topology().clone();
            let movers = pick(rng, nodes, nodes * self.percent / 100);
            for &node in &movers {
                let to = self.somewhere(&moved, node, rng);
                moved.move_to(node, to).map_err(Fault::network)?;
            }
            if moved.is_connected() {
                for node in movers {
                    let to = moved.point(node).unwrap_or_default();
                    mesh.move_to(node, to).map_err(Fault::network)?;
                }
                if self.fresh {
                    for node in 0..nodes {
                        set_distances(mesh, node, 0..nodes)?;
                    }
                }
                return Ok(());
            }
        }
        Err(Fault::Outcome(format!(
            "{} placements after moving were not connected",
            Self::TRIES
        )))
    }

    /// In a random direction, by a length from 0 to the largest, but not out of the square.
    fn somewhere(self, topology: &Topology, node: usize, rng: &mut ChaCha8Rng) -> Point {
        const SIDE: f64 = 15_000.0;
        let from = topology.point(node).unwrap_or_default();
        let (x, y) = (f64::from(from.x), f64::from(from.y));
        // A point of the unit disc other than its centre: all directions are equally likely, and it
        // needs no sine, which platforms round differently.
        let (dx, dy) = loop {
            let coordinate = |rng: &mut ChaCha8Rng| rng.below(2_001) as f64 / 1_000.0 - 1.0;
            let (dx, dy) = (coordinate(rng), coordinate(rng));
            let length = (dx * dx + dy * dy).sqrt();
            if length > 0.0 && length <= 1.0 {
                break (dx / length, dy / length);
            }
        };
        let to_edge = |at: f64, step: f64| {
            if step > 0.0 {
                (SIDE - at) / step
            } else if step < 0.0 {
                at / -step
            } else {
                f64::INFINITY
            }
        };
        let farthest = (f64::from(self.metres) * 1_000.0)
            .min(to_edge(x, dx))
            .min(to_edge(y, dy));
        let length = farthest * rng.below(1_000_001) as f64 / 1e6;
        let place = |at: f64, step: f64| (at + step * length).clamp(0.0, SIDE) as u32;
        Point {
            x: place(x, dx),
            y: place(y, dy),
        }
    }
}
