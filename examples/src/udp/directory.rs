//! Which node is at which address.

use std::net::SocketAddr;

use selvedge_core::{BoundedMap, Incarnation, Member, NodeId};

/// Ids from here on stand in for seeds, whose true ids are not known yet.
const FIRST_STAND_IN: u64 = u64::MAX - 0xFFFF;

/// The largest id that a node may have; those above stand in for seeds.
pub const MAX_NODE_ID: NodeId = NodeId(FIRST_STAND_IN - 1);

/// Addresses of members and seeds. It never holds more than its limit.
///
/// Only members on the machine's list are worth an entry: the caller asks the machine first, so a
/// stranger cannot grow the directory. What a member says about itself (its metadata) counts more
/// than where a datagram seems to come from, and a later life more than an earlier one. Without
/// sealed datagrams this is plausibility, not proof: who can forge a member's datagrams can move
/// its entry.
#[derive(Clone, Debug)]
pub struct Directory {
    entries: BoundedMap<NodeId, Entry>,
    refused: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    address: SocketAddr,
    incarnation: Incarnation,
    announced: bool,
}

impl Directory {
    /// A directory of at most `limit` nodes that knows the seeds. At most 65,535 seeds have a
    /// stand-in.
    #[must_use]
    pub fn new(limit: usize, seeds: &[SocketAddr]) -> Self {
        let mut entries = BoundedMap::new(limit.saturating_add(seeds.len()));
        for (id, &address) in Self::stand_ins(seeds).zip(seeds) {
            let entry = Entry {
                address,
                incarnation: Incarnation::default(),
                announced: true,
            };
            // There is room: the limit counts the seeds.
            let _room = entries.insert(id, entry).is_ok();
        }
        Self {
            entries,
            refused: 0,
        }
    }

    /// The ids under which a machine asks for the seeds, in their order.
    pub fn stand_ins(seeds: &[SocketAddr]) -> impl Iterator<Item = NodeId> + use<> {
        (0..seeds.len().min(0xFFFF) as u64).map(|index| NodeId(FIRST_STAND_IN + index))
    }

    /// Where `id` is.
    #[must_use]
    pub fn get(&self, id: NodeId) -> Option<SocketAddr> {
        self.entries.get(&id).map(|entry| entry.address)
    }

    /// Takes the address that `member` says it listens at. `on_list` says whether a node is still
    /// worth its entry, should room be needed.
    pub fn announce(
        &mut self,
        member: Member,
        address: SocketAddr,
        on_list: impl Fn(NodeId) -> bool,
    ) {
        self.learn(member, address, true, on_list);
    }

    /// Takes the address that a datagram of `member` came from, unless the member says itself
    /// where it listens.
    pub fn hear(&mut self, member: Member, source: SocketAddr, on_list: impl Fn(NodeId) -> bool) {
        self.learn(member, source, false, on_list);
    }

    /// How many nodes and seeds have an entry.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nobody has.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many nodes found no room.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    fn learn(
        &mut self,
        member: Member,
        address: SocketAddr,
        announced: bool,
        on_list: impl Fn(NodeId) -> bool,
    ) {
        let Member { id, incarnation } = member;
        if id > MAX_NODE_ID || !super::address::reachable(address) {
            return;
        }
        let entry = Entry {
            address,
            incarnation,
            announced,
        };
        if let Some(old) = self.entries.get_mut(&id) {
            let newer = incarnation.newer_than(old.incarnation);
            let same = incarnation == old.incarnation;
            if newer || (same && (announced || !old.announced)) {
                *old = entry;
            }
            return;
        }
        if self.entries.len() == self.entries.limit() {
            self.entries
                .retain(|&id, _| id > MAX_NODE_ID || on_list(id));
        }
        if self.entries.insert(id, entry).is_err() {
            self.refused += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> SocketAddr {
        ([127, 0, 0, 1], port).into()
    }

    fn all(_: NodeId) -> bool {
        true
    }

    #[test]
    fn seeds_have_stand_ins_that_no_node_can_take() {
        let seeds = [at(1), at(2)];
        let mut directory = Directory::new(4, &seeds);
        let ids: Vec<NodeId> = Directory::stand_ins(&seeds).collect();
        assert_eq!(
            ids.iter().map(|&id| directory.get(id)).collect::<Vec<_>>(),
            [Some(at(1)), Some(at(2))]
        );
        assert!(ids.iter().all(|&id| id > MAX_NODE_ID));
        directory.announce(Member::new(ids[0].0, 9), at(666), all);
        assert_eq!(directory.get(ids[0]), Some(at(1)));
    }

    #[test]
    fn it_is_bounded_and_makes_room_for_members_only() {
        let mut directory = Directory::new(3, &[at(9)]);
        for id in 0..1_000_u16 {
            directory.hear(Member::new(id.into(), 0), at(100 + id), all);
        }
        assert_eq!((directory.len(), directory.refused()), (4, 997));
        assert_eq!(directory.get(NodeId(2)), Some(at(102)));
        assert_eq!(directory.get(NodeId(3)), None);
        // Nodes 0 to 2 have been forgotten by the machine; the seed stays.
        directory.hear(Member::new(3, 0), at(103), |id| id.0 > 2);
        assert_eq!(
            (directory.len(), directory.get(NodeId(3))),
            (2, Some(at(103)))
        );
    }

    #[test]
    fn announced_beats_heard_and_a_later_life_beats_both() {
        let mut directory = Directory::new(3, &[]);
        directory.hear(Member::new(1, 5), at(10), all);
        directory.hear(Member::new(1, 5), at(11), all);
        assert_eq!(directory.get(NodeId(1)), Some(at(11)));
        directory.announce(Member::new(1, 5), at(12), all);
        directory.hear(Member::new(1, 5), at(13), all);
        directory.announce(Member::new(1, 4), at(14), all);
        assert_eq!(directory.get(NodeId(1)), Some(at(12)));
        directory.hear(Member::new(1, 6), at(15), all);
        assert_eq!(directory.get(NodeId(1)), Some(at(15)));
        directory.announce(Member::new(1, 7), "0.0.0.0:1".parse().unwrap(), all);
        assert_eq!(directory.get(NodeId(1)), Some(at(15)));
    }
}
