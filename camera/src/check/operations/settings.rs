//! The settings of a run: its first five bytes, and two more if a bit of the third is set.

use selvedge_core::{Member, NodeId, Span};
use selvedge_sim::Bytes;

use crate::Config;
use crate::config::FAILURES_MAX;

/// The number of additional nodes in some meshes in which not all know each other.
const MORE_NODES: usize = 3;

/// A mesh, and the faults that are possible in it.
pub(super) struct Settings {
    pub(super) config: Config,
    pub(super) nodes: usize,
    /// A bit for each node that another one does not know at first.
    pub(super) lists: u8,
    pub(super) is_hostile: bool,
    /// The numbers of nodes that can be remembered: by the first node, and by the others.
    limits: (u32, u32),
    /// True if every second node has the opposite of `keep`, and of `eager`.
    differ: (bool, bool),
    first: Member,
    graph: Graph,
}

/// The pairs of nodes that may learn of each other from membership. All graphs but `Full` stay
/// incomplete, so that most requests need the slow path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Graph {
    Full,
    Line,
    Ring,
    Star,
    /// Each but the first has a parent, and two have it in common.
    Tree,
    /// Two halves in which all know each other, and one pair between them.
    Bridge,
}

impl Settings {
    pub(super) fn new(bytes: &mut Bytes<'_>) -> Self {
        let nodes = 2 + bytes.pick(4);
        // All of them are still more than half.
        let spare = bytes.pick(nodes);
        let [flags, kind] = [bytes.take(), bytes.take()];
        let has = |bit: u8| flags & bit != 0;
        let max_lives = (nodes + spare) as u32;
        let mut config = Config {
            keep: has(1),
            multicast: !has(2),
            takeover: has(4).then(|| Span::secs(1)),
            slack: match kind % 4 {
                0 => 64,
                1 => 0,
                2 => 1,
                _ => u32::MAX,
            },
            refresh: Span::secs(4),
            ..Config::new(max_lives)
        };
        if has(32) {
            config.frame_budget = Config::radio(max_lives).frame_budget;
        }
        let mut limits = (config.peer_limit, config.peer_limit);
        if has(16) {
            // Low enough that runs reach it.
            limits.0 = 1 + u32::from(kind >> 2) % 4;
            if kind & 16 == 0 {
                limits.1 = limits.0;
            }
        }
        // Small ids in their first life, or the longest there are, around the wrap.
        let first = if has(64) {
            Member::new(u64::MAX - 15, u32::MAX - 1)
        } else {
            Member::new(1, 0)
        };
        let mut settings = Self {
            config,
            nodes,
            lists: bytes.take(),
            is_hostile: has(8),
            limits,
            differ: (false, false),
            first,
            graph: Graph::Full,
        };
        if has(128) {
            settings.vary(bytes.take(), bytes.take());
        }
        if settings.may_forget() && settings.config.tree_patience == 0 {
            // Otherwise a child in a tree would be asked for ever after its end was forgotten.
            settings.config.tree_patience = Config::new(max_lives).tree_patience;
        }
        settings
    }

    /// Varies the settings of the slow path and of eager entries. Zeros change nothing.
    fn vary(&mut self, path: u8, mesh: u8) {
        let config = &mut self.config;
        config.slow_path = path & 1 == 0;
        config.failures = match path >> 1 & 3 {
            0 => 1,
            1 => 0,
            2 => 2,
            _ => FAILURES_MAX,
        };
        config.tree_limit = match path >> 3 & 3 {
            0 => 16,
            few => few.into(),
        };
        config.tree_patience = match path >> 5 & 3 {
            0 => 8,
            1 => 0,
            2 => 1,
            _ => 2,
        };
        config.eager = path & 128 != 0;
        config.copies = match mesh & 3 {
            0 => 8,
            few => few,
        };
        self.differ = (mesh & 64 != 0, mesh & 128 != 0);
        self.graph = match mesh >> 2 & 7 {
            1 => Graph::Line,
            2 => Graph::Ring,
            3 => Graph::Star,
            4 => Graph::Tree,
            5 => Graph::Bridge,
            _ => Graph::Full,
        };
        if mesh & 32 != 0 && self.graph != Graph::Full {
            self.nodes += MORE_NODES;
            self.config.max_lives += MORE_NODES as u32;
        }
    }

    /// Returns true if membership may report each of these nodes to the other.
    pub(super) fn may_know(&self, one: usize, other: usize) -> bool {
        let (low, high) = (one.min(other), one.max(other));
        let (apart, half) = (high - low, self.nodes / 2);
        match self.graph {
            Graph::Full => true,
            Graph::Line => apart == 1,
            Graph::Ring => apart == 1 || apart + 1 == self.nodes,
            Graph::Star => low == 0,
            Graph::Tree => high > 0 && (high - 1) / 2 == low,
            Graph::Bridge => (low < half) == (high < half) || low + 1 == half && high == half,
        }
    }

    /// The settings of a node.
    pub(super) fn config(&self, id: NodeId) -> Config {
        let (first, others) = self.limits;
        let is_odd = id.0.wrapping_sub(self.first.id.0) % 2 == 1;
        let (keep, eager) = self.differ;
        Config {
            keep: self.config.keep ^ (is_odd && keep),
            eager: self.config.eager ^ (is_odd && eager),
            peer_limit: if id == self.first.id { first } else { others },
            ..self.config
        }
    }

    /// Returns true if some node has no room for all others: it may forget the end of one of them.
    pub(super) fn may_forget(&self) -> bool {
        let others = self.nodes as u32 - 1;
        self.limits.0.min(self.limits.1) < others
    }

    pub(super) fn id(&self, node: usize) -> NodeId {
        NodeId(self.first.id.0.wrapping_add(node as u64))
    }

    /// A node in its first life.
    pub(super) fn member(&self, node: usize) -> Member {
        let id = self.id(node);
        Member { id, ..self.first }
    }

    /// Returns true if every node is served in the end, which holds if no message is hostile.
    pub(super) const fn are_all_served(&self) -> bool {
        !self.is_hostile
    }
}
