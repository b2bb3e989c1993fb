//! The best gateway for the resource manager (PCM, section 4.2, Figure 4).

use alloc::collections::BTreeMap;
use alloc::collections::BTreeSet;

use selvedge_core::NodeId;
use serde::{Deserialize, Serialize};

/// The distance between two gateways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Hops {
    /// A gateway.
    pub one: NodeId,
    /// Another gateway.
    pub other: NodeId,
    /// The number of links between them.
    pub hops: u8,
}

impl Hops {
    /// A key that is equal for both directions.
    fn key(self) -> (NodeId, NodeId) {
        (self.one.min(self.other), self.one.max(self.other))
    }
}

/// The distances between gateways: one link, unless another distance is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Topology {
    /// The greatest number of gateways with known distances.
    limit: u16,
    hops: BTreeMap<(NodeId, NodeId), u8>,
}

impl Topology {
    pub(crate) const fn new(limit: u16) -> Self {
        Self {
            limit,
            hops: BTreeMap::new(),
        }
    }

    /// Returns true if this distance is known already.
    pub(crate) fn knows(&self, hops: Hops) -> bool {
        self.between(hops.one, hops.other) == hops.hops || hops.one == hops.other
    }

    /// Returns true if there is room for the distance of these gateways. O(g^2) for g gateways.
    pub(crate) fn has_room(&self, hops: Hops) -> bool {
        let mut known: BTreeSet<NodeId> = self.hops.keys().flat_map(|it| [it.0, it.1]).collect();
        known.extend([hops.one, hops.other]);
        known.len() <= self.limit.into()
    }

    /// Stores the distance of two gateways. Returns true if that changes anything.
    pub(crate) fn learn(&mut self, hops: Hops) -> bool {
        if self.knows(hops) || !self.has_room(hops) {
            return false;
        }
        match hops.hops {
            1 => self.hops.remove(&hops.key()),
            far => self.hops.insert(hops.key(), far),
        };
        true
    }

    /// All pairs of gateways that are not one link from each other.
    pub(crate) fn far(&self) -> impl Iterator<Item = Hops> + '_ {
        let all = self.hops.iter();
        all.map(|(&(one, other), &hops)| Hops { one, other, hops })
    }

    fn between(&self, one: NodeId, other: NodeId) -> u8 {
        if one == other {
            return 0;
        }
        let key = (one.min(other), one.max(other));
        self.hops.get(&key).copied().unwrap_or(1)
    }

    /// The gateway from which all followers are reached over the fewest links: for each gateway, its
    /// followers times the links to it. Among equals it is the gateway that reaches all gateways over the
    /// fewest links, then the present manager, then the gateway with the lowest id.
    pub(crate) fn best(
        &self,
        gateways: &[NodeId],
        followers: &[(NodeId, u32)],
        present: NodeId,
    ) -> Option<NodeId> {
        let cost = |candidate: NodeId| -> (u64, u64, bool, NodeId) {
            let links = |to: NodeId| u64::from(self.between(candidate, to));
            let all = followers
                .iter()
                .map(|&(at, count)| links(at) * u64::from(count));
            let messages = gateways.iter().map(|&it| links(it));
            (all.sum(), messages.sum(), candidate != present, candidate)
        };
        gateways.iter().copied().min_by_key(|&it| cost(it))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [NodeId; 3] = [NodeId(1), NodeId(2), NodeId(3)];

    fn far(one: u64, other: u64, hops: u8) -> Hops {
        Hops {
            one: NodeId(one),
            other: NodeId(other),
            hops,
        }
    }

    fn best(topology: &Topology, followers: &[(u64, u32)], present: u64) -> u64 {
        let followers: alloc::vec::Vec<_> =
            followers.iter().map(|it| (NodeId(it.0), it.1)).collect();
        topology.best(&ALL, &followers, NodeId(present)).unwrap().0
    }

    #[test]
    fn the_manager_is_where_most_followers_are() {
        let topology = Topology::new(3);
        assert_eq!(best(&topology, &[(1, 3), (2, 5), (3, 4)], 1), 2);
        assert_eq!(best(&topology, &[(1, 5), (2, 5)], 2), 2, "the present one");
        assert_eq!(best(&topology, &[(1, 5), (2, 5)], 3), 1, "the lowest id");
        assert_eq!(best(&topology, &[], 3), 3);
    }

    #[test]
    fn links_count_for_each_follower_behind_them() {
        let mut topology = Topology::new(3);
        assert!(topology.learn(far(1, 3, 4)));
        assert!(!topology.learn(far(3, 1, 4)), "both ways alike");
        // From 1: 2 + 16, from 2: 3 + 4, from 3: 12 + 2.
        assert_eq!(best(&topology, &[(1, 3), (2, 2), (3, 4)], 1), 2);
        assert_eq!(best(&topology, &[(1, 1), (2, 1), (3, 9)], 1), 3);
        // All followers at 1 and 3, as many: 2 has fewer links to them, and to all gateways.
        assert_eq!(best(&topology, &[(1, 5), (3, 5)], 1), 2);
        assert!(topology.learn(far(3, 1, 1)));
        assert_eq!(best(&topology, &[(1, 5), (3, 5)], 1), 1);
    }

    #[test]
    fn no_more_gateways_are_known_than_may_be() {
        let mut topology = Topology::new(3);
        assert!(topology.learn(far(1, 2, 2)) && topology.learn(far(2, 3, 2)));
        assert!(!topology.learn(far(3, 4, 2)));
        assert!(topology.learn(far(1, 3, 2)));
        assert!(!topology.learn(far(1, 1, 7)), "it is there");
    }
}
