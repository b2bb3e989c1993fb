//! Buildings to choose groups in: places, smart nodes, and hops between them.

use std::collections::VecDeque;

use chacha20::ChaCha8Rng;
use rand_core::SeedableRng;
use selvedge_core::{Choose, NodeId, Sha256Sortition};
use selvedge_groups::{Chooser, GroupId, Locality, Node, Place, Policy, Selection, Target};

use crate::claims::Fault;

/// The distance between two neighbours in a grid.
pub(super) const SPACING: i32 = 1_000;
/// The smart share of all devices, in percent (table 3).
const SMART: u64 = 40;

/// The layout of devices: the same number in the same space in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// A cube, one apart.
    Grid,
    /// Anywhere in the cube.
    Random,
    /// About one in ten is a centre, the others are near one.
    Clustered,
}

/// Devices in a building. The id of a device is its place in the list.
pub(super) struct Building {
    pub(super) places: Vec<Place>,
    pub(super) smart: Vec<Node>,
    neighbours: Vec<Vec<usize>>,
}

impl Building {
    /// Builds a building. Two devices at most `reach` apart are neighbours; where parts are cut off
    /// from each other, the nearest two are neighbours as well.
    pub(super) fn new(seed: u64, layout: Layout, count: usize, reach: i32) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let places = places(layout, count, &mut rng);
        let mut order: Vec<usize> = (0..count).collect();
        let wanted = count * SMART as usize / 100;
        for at in 0..wanted {
            let other = at + rng.below((count - at) as u64) as usize;
            order.swap(at, other);
        }
        let smart = order.iter().take(wanted);
        let smart = smart.filter_map(|&at| Some(Node::new(at as u64, *places.get(at)?)));
        let smart = smart.collect();
        let neighbours = connect(&places, reach);
        Self {
            places,
            smart,
            neighbours,
        }
    }

    /// A building of these places, each with a node.
    pub(super) fn of_nodes(places: Vec<Place>, reach: i32) -> Self {
        let smart = (0..).zip(&places).map(|(id, place)| Node::new(id, *place));
        let smart = smart.collect();
        let neighbours = connect(&places, reach);
        Self {
            places,
            smart,
            neighbours,
        }
    }

    /// The hops from a device to each.
    pub(super) fn hops(&self, from: usize) -> Vec<u32> {
        hops(&self.neighbours, from)
    }

    /// The pairs of neighbours, each once.
    pub(super) fn edges(&self) -> Vec<(usize, usize)> {
        let all = self.neighbours.iter().enumerate();
        let pairs = all.flat_map(|(one, list)| list.iter().map(move |other| (one, *other)));
        pairs.filter(|(one, other)| one < other).collect()
    }

    /// The first neighbour that is nearer to where these hops lead.
    pub(super) fn nearer(&self, from: usize, hops: &[u32]) -> Option<usize> {
        let here = *hops.get(from)?;
        let mut neighbours = self.neighbours.get(from)?.iter().copied();
        neighbours.find(|it| hops.get(*it).is_some_and(|it| *it < here))
    }

    pub(super) fn chooser(
        &self,
        config: Selection,
        epoch: u64,
    ) -> Result<Chooser<'static, Sha256Sortition>, Fault> {
        let nodes = self.smart.iter().copied();
        Chooser::new(config, &Sha256Sortition, epoch, nodes).map_err(Fault::network)
    }

    /// The group of the target that is at a device.
    pub(super) fn group(
        &self,
        chooser: &Chooser<'_, Sha256Sortition>,
        target: u64,
        device: usize,
    ) -> Result<Vec<NodeId>, Fault> {
        let target = Target {
            id: GroupId(target),
            place: self.places.get(device).copied(),
            neighbours: &[],
        };
        chooser.choose(target).map_err(Fault::network)
    }
}

/// Members by their hashes alone.
pub(super) const RANDOM: Selection = Selection::new().with_policy(Policy::Uniform);

/// The paper's settings: m = 2, l = 2, r = 4, and others for comparison.
pub(super) fn near(functions: u8, tables: u8, width: u32) -> Selection {
    Selection::new().with_policy(Policy::Near(Locality {
        functions,
        tables,
        width: width * SPACING as u32,
    }))
}

fn places(layout: Layout, count: usize, rng: &mut ChaCha8Rng) -> Vec<Place> {
    let side = (1..).find(|side: &usize| side.pow(3) >= count).unwrap_or(1);
    let most = side as u64 * SPACING as u64;
    let anywhere = |rng: &mut ChaCha8Rng| Place([(); 3].map(|()| rng.below(most) as i32));
    match layout {
        Layout::Grid => (0..count)
            .map(|at| {
                let axes = [at % side, at / side % side, at / side / side];
                Place(axes.map(|axis| axis as i32 * SPACING))
            })
            .collect(),
        Layout::Random => (0..count).map(|_| anywhere(rng)).collect(),
        Layout::Clustered => {
            let centres: Vec<Place> = (0..count.div_ceil(10)).map(|_| anywhere(rng)).collect();
            let around = |at: usize| {
                let centre = centres.get(at % centres.len()).copied().unwrap_or_default();
                // Within one spacing to each side.
                Place(
                    centre
                        .0
                        .map(|it| it + rng.below(2 * SPACING as u64) as i32 - SPACING),
                )
            };
            (0..count).map(around).collect()
        }
    }
}

fn connect(places: &[Place], reach: i32) -> Vec<Vec<usize>> {
    let far = (reach as u64).pow(2);
    let mut neighbours: Vec<Vec<usize>> = places
        .iter()
        .enumerate()
        .map(|(at, one)| {
            let others = places.iter().enumerate().filter(|(other, _)| *other != at);
            let received = others.filter(|(_, other)| one.distance_squared(**other) <= far);
            received.map(|it| it.0).collect()
        })
        .collect();
    loop {
        let reached = hops(&neighbours, 0);
        let is_reached = |at: &usize| reached.get(*at).is_some_and(|it| *it != u32::MAX);
        let (here, there): (Vec<usize>, Vec<usize>) = (0..places.len()).partition(is_reached);
        let pairs = here
            .iter()
            .flat_map(|one| there.iter().map(move |other| (*one, *other)));
        let distance = |&(one, other): &(usize, usize)| {
            let ends = places.get(one).zip(places.get(other));
            ends.map_or(u64::MAX, |(one, other)| one.distance_squared(*other))
        };
        let Some((one, other)) = pairs.min_by_key(distance) else {
            return neighbours;
        };
        for (one, other) in [(one, other), (other, one)] {
            if let Some(list) = neighbours.get_mut(one) {
                list.push(other);
            }
        }
    }
}

/// The hops from a device to each; `u32::MAX` without a path.
fn hops(neighbours: &[Vec<usize>], from: usize) -> Vec<u32> {
    let mut found = vec![u32::MAX; neighbours.len()];
    let mut queue = VecDeque::from([(from, 0)]);
    while let Some((at, hops)) = queue.pop_front() {
        let Some(known) = found.get_mut(at).filter(|it| **it == u32::MAX) else {
            continue;
        };
        *known = hops;
        let next = neighbours.get(at).into_iter().flatten();
        queue.extend(next.map(|&next| (next, hops + 1)));
    }
    found
}
