//! The settings of a run: its first seven bytes, and one for each node where nodes differ.

use alloc::vec::Vec;

use selvedge_core::{Member, NodeId, Rank, Ratio, Span};
use selvedge_sim::Bytes;

use crate::{Attribute, Config, Estimation, Protocol, Source};

/// The lowest id leads, or the highest: which node a ballot prefers does not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Order {
    is_reversed: bool,
}

impl Attribute for Order {
    fn rank(&self, member: Member) -> Rank {
        let id = member.id.0;
        Rank(if self.is_reversed { !id } else { id }.into())
    }
}

/// The settings of a mesh and its faults.
pub(super) struct Settings {
    base: Config,
    /// Each node runs another protocol.
    is_mixed: bool,
    /// The settings of each node that differ from the others; empty if all are alike.
    own: Vec<u8>,
    pub(super) order: Order,
    pub(super) nodes: usize,
    /// A bit for each node that another one does not know at first.
    pub(super) lists: u8,
    pub(super) is_hostile: bool,
    is_tight: bool,
    /// A node that comes back has another id, and lists have as many places as live others.
    pub(super) is_renamed: bool,
    first: Member,
}

const PROTOCOLS: [Protocol; 5] = [
    Protocol::Base,
    Protocol::Optimistic,
    Protocol::Preferred,
    Protocol::Hybrid,
    Protocol::Lean,
];

impl Settings {
    pub(super) fn new(bytes: &mut Bytes<'_>) -> Self {
        let nodes = 2 + bytes.pick(6);
        let [tolerance, flags, kind] = [bytes.take(), bytes.take(), bytes.take()];
        let [times, more] = [bytes.take(), bytes.take()];
        let has = |bit: u8| flags & bit != 0;
        let protocol = PROTOCOLS.get(usize::from(kind % 5)).copied();
        let mut settings = Self {
            base: Config::new(0, 0),
            is_mixed: has(1),
            own: Vec::new(),
            order: Order {
                is_reversed: has(2),
            },
            nodes,
            lists: bytes.take(),
            // In a quarter of all runs.
            is_hostile: has(8) && has(128),
            is_tight: has(16),
            is_renamed: false,
            // Small ids in their first life, or the longest possible ids, around the wrap.
            first: if has(64) {
                Member::new(u64::MAX - 15, u32::MAX - 1)
            } else {
                Member::new(1, 0)
            },
        };
        let (c, f) = settings.tolerance(tolerance);
        let retries = if has(4) { 0 } else { 1 + (times & 3) };
        settings.is_renamed = more & 128 != 0 && retries > 0 && !settings.is_tight;
        settings.base = Config {
            protocol: protocol.unwrap_or_default(),
            lowest: 1 + (kind >> 4 & 3),
            suspected: kind >> 6,
            attempts: 1 + (times >> 2 & 1),
            retries,
            patience: if times & 8 == 0 {
                Span::secs(5)
            } else {
                Span::ZERO
            },
            spread: if times & 16 == 0 {
                Span::secs(1)
            } else {
                Span::ZERO
            },
            reelect: times & 32 == 0,
            lease: (times & 64 != 0 && retries > 0).then(|| Span::secs(9)),
            frame_budget: if has(32) { 127 } else { 1_400 },
            exclude_limit: if more & 1 == 0 { 16 } else { 1 },
            // Small enough to be reached.
            peer_limit: if settings.is_tight {
                1 + u32::from(more >> 1 & 3)
            } else if settings.is_renamed {
                nodes as u32 - 1
            } else {
                64
            },
            // In a quarter of all runs.
            estimation: (more >> 3 & 3 == 3).then(|| Estimation {
                source: if more & 32 == 0 {
                    Source::Sampling
                } else {
                    Source::Feedback
                },
                at_once: 2,
                period: Span::secs(4),
                pool: 2,
                miss: Ratio::new(1, 10),
                margin: u16::from(more >> 6 & 1),
                floor: 0,
                valid: Span::secs(20),
                ..Estimation::default()
            }),
            ..Config::new(c, f)
        };
        if times & 128 != 0 {
            settings.own = (0..nodes).map(|_| bytes.take()).collect();
        }
        settings
    }

    /// The settings of one node.
    pub(super) fn config(&self, node: usize) -> Config {
        let protocol = if self.is_mixed {
            PROTOCOLS.get(node % PROTOCOLS.len()).copied()
        } else {
            None
        };
        let base = Config {
            protocol: protocol.unwrap_or(self.base.protocol),
            ..self.base
        };
        let own = self.own.get(node);
        own.map_or(base, |&own| self.differ(base, own))
    }

    /// Returns a node's own settings. Acknowledgements and the replacement of leaders are on or off
    /// for all nodes: the end of a run depends on them.
    fn differ(&self, base: Config, own: u8) -> Config {
        let has = |bit: u8| own & bit != 0;
        let lease = [None, Some(3), Some(9), Some(30)].get(usize::from(own & 3));
        let lease = lease.copied().flatten().map(Span::secs);
        let c = base.missing_from + u16::from(has(4));
        Config {
            missing_from: c % (self.nodes as u16 + 1),
            failures: u16::from(has(8)),
            lease: lease.filter(|_| base.retries > 0),
            attempts: 1 + u8::from(has(16)),
            retries: base.retries.min(1) * (1 + u8::from(has(32))),
            resend: Span::millis(if has(32) { 250 } else { 500 }),
            // An answer may take two rounds.
            timeout: Span::millis(if has(64) { 1_000 } else { 500 }),
            frame_budget: if has(64) { 127 } else { 1_400 },
            exclude_limit: if has(128) { 1 } else { 16 },
            drift: if has(128) { 100_000 } else { 0 },
            ..base
        }
    }

    /// Decodes c and f: seldom more than the number of nodes.
    pub(super) fn tolerance(&self, byte: u8) -> (u16, u16) {
        let nodes = self.nodes as u16;
        (u16::from(byte & 15) % (nodes + 1), u16::from(byte >> 4) % 3)
    }

    pub(super) fn id(&self, node: usize) -> NodeId {
        NodeId(self.first.id.0.wrapping_add(node as u64))
    }

    /// Returns an id that no node had, after `ended` nodes have died for good.
    pub(super) fn next_id(&self, ended: usize) -> NodeId {
        self.id(self.nodes + ended)
    }

    /// A node in its first life.
    pub(super) fn member(&self, node: usize) -> Member {
        let id = self.id(node);
        Member { id, ..self.first }
    }

    /// Returns true if all agree in the end: lists have room for all, and no node lies.
    pub(super) const fn do_all_agree(&self) -> bool {
        !self.is_hostile && !self.is_tight
    }

    /// Returns true if nodes elect a new leader by themselves, and announce it to all.
    pub(super) const fn is_mended(&self) -> bool {
        self.base.reelect && self.base.retries > 0
    }

    /// Returns true if a node that comes back has missed multicasts for good: nothing is acknowledged.
    pub(super) const fn is_forgetting_fatal(&self) -> bool {
        self.base.retries == 0
    }
}
