//! Shortest paths, searched when first needed and kept until something moves.

use super::Topology;

/// The nodes that relay messages of other nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Relays {
    /// Nodes that are up: a crash breaks the paths through a node, and the network finds others.
    /// Every crash and restart makes the searches void, at O(nodes + edges) for each sender's next
    /// message.
    #[default]
    Live,
    /// All nodes, including nodes that are down or not added yet, as if radio and processor of a
    /// node failed separately. Cheaper when nodes often crash: routes last until nodes move.
    All,
}

/// Partitions and relays, which decide with the topology which nodes reach each other.
#[derive(Clone, Debug)]
pub(super) struct Radio {
    pub(super) relays: Relays,
    pub(super) up: Vec<bool>,
    /// The side of a partition that each node is on.
    pub(super) side: Vec<u32>,
}

impl Radio {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            relays: Relays::default(),
            up: vec![false; nodes],
            side: vec![0; nodes],
        }
    }

    pub(super) fn is_up(&self, node: usize) -> bool {
        self.up.get(node).copied().unwrap_or(false)
    }

    pub(super) fn same_side(&self, a: usize, b: usize) -> bool {
        self.side.get(a) == self.side.get(b)
    }

    fn relays(&self, node: usize) -> bool {
        self.relays == Relays::All || self.is_up(node)
    }
}

/// A shortest path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) hops: u16,
    /// The sum of the neighbours of the sender and of each relay: they share the bandwidth.
    pub(super) sharers: u32,
}

/// The paths of every sender so far: 8 bytes a pair, so 34 MB when each of 2,048 nodes has sent.
#[derive(Clone, Debug)]
pub(super) struct Routes {
    version: u64,
    rows: Vec<Row>,
    queue: Vec<u32>,
}

#[derive(Clone, Debug, Default)]
struct Row {
    version: u64,
    /// By receiver; both numbers together, as both are always asked for.
    paths: Vec<Route>,
}

const UNREACHED: Route = Route {
    hops: u16::MAX,
    sharers: 0,
};

impl Routes {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            version: 1,
            rows: vec![Row::default(); nodes],
            queue: Vec::new(),
        }
    }

    /// Makes all searches void.
    pub(super) const fn invalidate(&mut self) {
        self.version += 1;
    }

    /// The path from `a` to `b`. The ends need not be up; relays between must be able to relay,
    /// and all be on one side.
    pub(super) fn route(
        &mut self,
        topology: &Topology,
        radio: &Radio,
        a: usize,
        b: usize,
    ) -> Option<Route> {
        if a.max(b) >= topology.len() || !radio.same_side(a, b) {
            return None;
        }
        if a == b {
            return Some(Route {
                hops: 0,
                sharers: 0,
            });
        }
        if topology.is_full_mesh() {
            return Some(Route {
                hops: 1,
                sharers: count(topology.degree(a)),
            });
        }
        let row = self.rows.get_mut(a)?;
        if row.version != self.version {
            row.search(topology, radio, a, &mut self.queue);
            row.version = self.version;
        }
        row.paths.get(b).copied().filter(|&path| path != UNREACHED)
    }
}

impl Row {
    /// Breadth first. Of several shortest paths the one with the relays that were found first
    /// counts, and neighbours are in order of index: the same on every platform.
    fn search(&mut self, topology: &Topology, radio: &Radio, from: usize, queue: &mut Vec<u32>) {
        self.paths.clear();
        self.paths.resize(topology.len(), UNREACHED);
        if let Some(start) = self.paths.get_mut(from) {
            start.hops = 0;
        }
        queue.clear();
        queue.push(count(from));
        let mut next = 0;
        while let Some(&node) = queue.get(next) {
            next += 1;
            let node = node as usize;
            if node != from && !radio.relays(node) {
                continue;
            }
            let here = self.paths.get(node).copied().unwrap_or(UNREACHED);
            let there = Route {
                hops: here.hops + 1,
                sharers: here.sharers.saturating_add(count(topology.degree(node))),
            };
            for other in topology.neighbours(node) {
                if !radio.same_side(node, other) {
                    continue;
                }
                if let Some(unseen @ &mut UNREACHED) = self.paths.get_mut(other) {
                    *unseen = there;
                    queue.push(count(other));
                }
            }
        }
    }
}

fn count(nodes: usize) -> u32 {
    u32::try_from(nodes).unwrap_or(u32::MAX)
}
