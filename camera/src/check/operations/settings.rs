//! What a run begins with: its first five bytes.

use selvedge_core::{Member, NodeId, Span};

use super::decoder::Bytes;
use crate::Config;

/// A mesh, and what may happen in it.
pub(super) struct Settings {
    pub(super) config: Config,
    pub(super) nodes: usize,
    /// A bit for each node that another one does not know at first.
    pub(super) lists: u8,
    pub(super) is_hostile: bool,
    is_tight: bool,
    first: Member,
}

impl Settings {
    pub(super) fn new(bytes: &mut Bytes<'_>) -> Self {
        let nodes = 2 + bytes.pick(4);
        // All of them are still more than half.
        let spare = bytes.pick(nodes);
        let [flags, kind] = [bytes.take(), bytes.take()];
        let has = |bit: u8| flags & bit != 0;
        let upper = (nodes + spare) as u32;
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
            eager: kind & 16 != 0,
            failures: kind >> 6,
            ..Config::new(upper)
        };
        if kind & 32 != 0 {
            config.tree_limit = 1;
        }
        if has(32) {
            config.frame_budget = Config::radio(upper).frame_budget;
        }
        let is_tight = has(16);
        if is_tight {
            // So tight that it is met.
            config.peer_limit = 1 + u32::from(kind >> 2) % 4;
        }
        // Small ids in their first life, or the longest there are, around the wrap.
        let first = if has(64) {
            Member::new(u64::MAX - 15, u32::MAX - 1)
        } else {
            Member::new(1, 0)
        };
        Self {
            config,
            nodes,
            lists: bytes.take(),
            is_hostile: has(8),
            is_tight,
            first,
        }
    }

    pub(super) fn id(&self, node: usize) -> NodeId {
        NodeId(self.first.id.0.wrapping_add(node as u64))
    }

    /// A node in its first life.
    pub(super) fn member(&self, node: usize) -> Member {
        let id = self.id(node);
        Member { id, ..self.first }
    }

    /// Whether everyone is served in the end: where peers find room, and none of them lies.
    pub(super) const fn are_all_served(&self) -> bool {
        !self.is_hostile && !self.is_tight
    }
}
