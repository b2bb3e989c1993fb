//! The addresses of nodes.

use std::net::SocketAddr;

use selvedge_core::{BoundedMap, Incarnation, Member, NodeId};

/// The first id that stands in for a seed, whose true id is not known yet.
const FIRST_STAND_IN: u64 = u64::MAX - 0xFFFF;

/// The largest id that a node may have; higher ids stand in for seeds.
pub const MAX_NODE_ID: NodeId = NodeId(FIRST_STAND_IN - 1);

/// The number of datagrams in a row to a silent member before its next address is tried.
const PATIENCE: u8 = 2;

/// Addresses of members and seeds. It never holds more than its limit.
///
/// Only members on the machine's list are worth an entry: the caller asks the machine first, so a
/// stranger cannot grow the directory. A member's own announcement (its metadata) counts more than
/// the source of a datagram, and a later life more than an earlier one. Without sealed datagrams
/// this is plausibility, not proof: an attacker that forges a member's datagrams can move its
/// entry.
///
/// Datagrams to a member with several addresses go to the address that it last sent from, and to
/// each in turn while it is silent. A seed is asked at each in turn.
#[derive(Clone, Debug)]
pub struct Directory {
    entries: BoundedMap<NodeId, Entry>,
    refused: u64,
    /// Grows when the address of some node changes, but not with addresses of seeds.
    version: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    /// Empty for seeds only.
    addresses: Vec<SocketAddr>,
    /// The index of the address in use.
    at: usize,
    /// The number of datagrams to it since it last sent one, or its address changed.
    unanswered: u8,
    incarnation: Incarnation,
    announced: bool,
}

impl Directory {
    /// A directory of at most `limit` nodes that knows the seeds, each with its addresses. At most
    /// 65,535 seeds have a stand-in.
    #[must_use]
    pub fn new(limit: usize, seeds: &[Vec<SocketAddr>]) -> Self {
        let mut entries = BoundedMap::new(limit.saturating_add(seeds.len()));
        for (id, addresses) in Self::stand_ins(seeds.len()).zip(seeds) {
            let entry = Entry::new(addresses.clone(), Incarnation::default(), true);
            // There is room: the limit counts the seeds.
            let _room = entries.insert(id, entry).is_ok();
        }
        Self {
            entries,
            refused: 0,
            version: 0,
        }
    }

    /// The ids under which a machine asks this number of seeds, in their order.
    pub fn stand_ins(seeds: usize) -> impl Iterator<Item = NodeId> + use<> {
        (0..seeds.min(0xFFFF) as u64).map(|index| NodeId(FIRST_STAND_IN + index))
    }

    /// The id that stands in for this seed, counted from 0.
    #[must_use]
    pub(crate) fn stand_in(seed: usize) -> Option<NodeId> {
        (seed < 0xFFFF).then(|| NodeId(FIRST_STAND_IN + seed as u64))
    }

    /// The number of the seed for which an id stands in.
    #[must_use]
    pub fn seed(id: NodeId) -> Option<usize> {
        usize::try_from(id.0.checked_sub(FIRST_STAND_IN)?).ok()
    }

    /// Replaces the addresses of a seed.
    pub fn move_seed(&mut self, seed: NodeId, addresses: Vec<SocketAddr>) {
        if let Some(entry) = self.entries.get_mut(&seed)
            && seed > MAX_NODE_ID
            && entry.addresses != addresses
        {
            *entry = Entry::new(addresses, Incarnation::default(), true);
        }
    }

    /// A number that grows whenever a node's address changes, and never otherwise: not with
    /// addresses of seeds.
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// The address in use for `id`.
    #[must_use]
    pub fn get(&self, id: NodeId) -> Option<SocketAddr> {
        self.entries.get(&id)?.address()
    }

    /// All addresses of `id`.
    #[must_use]
    pub fn all(&self, id: NodeId) -> &[SocketAddr] {
        self.entries.get(&id).map_or(&[], |it| &it.addresses)
    }

    /// The address for the next datagram to `id`.
    pub fn next(&mut self, id: NodeId) -> Option<SocketAddr> {
        let patience = if id > MAX_NODE_ID { 1 } else { PATIENCE };
        let entry = self.entries.get_mut(&id)?;
        let before = entry.address();
        let address = entry.next(patience);
        self.version += u64::from(id <= MAX_NODE_ID && address != before);
        address
    }

    /// Stores the addresses that `member` announces. `on_list` returns true for a node that is
    /// still worth its entry, if room is needed.
    pub fn announce(
        &mut self,
        member: Member,
        addresses: Vec<SocketAddr>,
        on_list: impl Fn(NodeId) -> bool,
    ) {
        self.learn(member, addresses, true, on_list);
    }

    /// Stores the source of a datagram of `member`, unless the member announces its own addresses.
    pub fn receive(
        &mut self,
        member: Member,
        source: SocketAddr,
        on_list: impl Fn(NodeId) -> bool,
    ) {
        if let Some(entry) = self.entries.get_mut(&member.id)
            && member.id <= MAX_NODE_ID
            && entry.incarnation == member.incarnation
            && (entry.announced || entry.addresses == [source])
        {
            entry.unanswered = 0;
            let before = entry.address();
            let mut addresses = entry.addresses.iter_mut().enumerate();
            if let Some((at, address)) = addresses.find(|(_, it)| are_alike(**it, source)) {
                // The source has a scope, and no announcement has one.
                *address = source;
                entry.at = at;
                self.version += u64::from(entry.address() != before);
            }
            return;
        }
        self.learn(member, vec![source], false, on_list);
    }

    /// The number of nodes and seeds with an entry.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if no node or seed has an entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The number of nodes that found no room.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    fn learn(
        &mut self,
        member: Member,
        mut addresses: Vec<SocketAddr>,
        announced: bool,
        on_list: impl Fn(NodeId) -> bool,
    ) {
        let Member { id, incarnation } = member;
        addresses.retain(|&address| super::address::reachable(address));
        addresses.truncate(super::address::LIMIT);
        if id > MAX_NODE_ID || addresses.is_empty() {
            return;
        }
        let entry = Entry::new(addresses, incarnation, announced);
        if let Some(old) = self.entries.get_mut(&id) {
            let newer = incarnation.newer_than(old.incarnation);
            let same = incarnation == old.incarnation;
            // An announcement has no scope: the known one stays.
            let is_one = |ours, theirs| ours == theirs || (announced && are_alike(ours, theirs));
            let mut both = old.addresses.iter().zip(&entry.addresses);
            let are_known = old.addresses.len() == entry.addresses.len()
                && both.all(|(&ours, &theirs)| is_one(ours, theirs));
            let is_known = same && announced == old.announced && are_known;
            if !is_known && (newer || (same && (announced || !old.announced))) {
                self.version += u64::from(old.address() != entry.address());
                *old = entry;
            }
            return;
        }
        if self.entries.len() == self.entries.limit() {
            self.entries
                .retain(|&id, _| id > MAX_NODE_ID || on_list(id));
        }
        match self.entries.insert(id, entry) {
            Ok(_) => self.version += 1,
            Err(_) => self.refused += 1,
        }
    }
}

/// Returns true if two addresses differ in the scope at most.
fn are_alike(one: SocketAddr, other: SocketAddr) -> bool {
    (one.ip(), one.port()) == (other.ip(), other.port())
}

impl Entry {
    const fn new(addresses: Vec<SocketAddr>, incarnation: Incarnation, announced: bool) -> Self {
        Self {
            addresses,
            at: 0,
            unanswered: 0,
            incarnation,
            announced,
        }
    }

    fn next(&mut self, patience: u8) -> Option<SocketAddr> {
        if self.unanswered >= patience {
            self.unanswered = 0;
            self.at = (self.at + 1) % self.addresses.len().max(1);
        }
        self.unanswered += 1;
        self.address()
    }

    fn address(&self) -> Option<SocketAddr> {
        self.addresses.get(self.at).copied()
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
        let mut directory = Directory::new(4, &[vec![at(1)], vec![at(2)]]);
        let ids: Vec<NodeId> = Directory::stand_ins(2).collect();
        assert_eq!(
            ids.iter().map(|&id| directory.get(id)).collect::<Vec<_>>(),
            [Some(at(1)), Some(at(2))]
        );
        assert!(ids.iter().all(|&id| id > MAX_NODE_ID));
        assert_eq!(Directory::seed(ids[1]), Some(1));
        assert_eq!(Directory::seed(MAX_NODE_ID), None);
        directory.announce(Member::new(ids[0].0, 9), vec![at(666)], all);
        directory.receive(Member::new(ids[0].0, 0), at(666), all);
        assert_eq!(directory.get(ids[0]), Some(at(1)));
        directory.move_seed(ids[0], vec![at(7)]);
        assert_eq!(directory.get(ids[0]), Some(at(7)));
    }

    #[test]
    fn the_last_id_of_a_node_is_no_stand_in() {
        let mut directory = Directory::new(3, &[]);
        assert!(directory.is_empty());
        let last = Member::new(MAX_NODE_ID.0, 5);
        directory.announce(last, vec![at(1), at(2)], all);
        assert!(!directory.is_empty());
        directory.move_seed(last.id, vec![at(7)]);
        assert_eq!(directory.all(last.id), [at(1), at(2)]);
        let tried: Vec<_> = (0..3).map(|_| directory.next(last.id).unwrap()).collect();
        assert_eq!(tried, [at(1), at(1), at(2)]);
        directory.receive(last, at(1), all);
        assert_eq!(directory.get(last.id), Some(at(1)));
        // 65,535 seeds have a stand-in.
        let stand_in = |nth| Directory::stand_in(nth).map(|id| id.0);
        assert_eq!(stand_in(0), Some(MAX_NODE_ID.0 + 1));
        assert_eq!(stand_in(0xFFFE), Some(u64::MAX - 1));
        assert_eq!(stand_in(0xFFFF), None);
    }

    #[test]
    fn room_is_made_by_members_that_are_on_no_list_and_never_by_seeds() {
        let mut directory = Directory::new(2, &[vec![at(9)], vec![at(8)]]);
        directory.receive(Member::new(MAX_NODE_ID.0, 0), at(1), all);
        directory.receive(Member::new(2, 0), at(2), all);
        directory.receive(Member::new(3, 0), at(3), |id| id == NodeId(2));
        assert_eq!(directory.get(MAX_NODE_ID), None);
        assert_eq!(directory.get(NodeId(2)), Some(at(2)));
        assert_eq!(directory.get(NodeId(3)), Some(at(3)));
        let seeds = Directory::stand_ins(2).map(|id| directory.get(id));
        assert!(seeds.eq([Some(at(9)), Some(at(8))]));
    }

    /// The published list is rebuilt when the version has grown.
    #[test]
    fn the_version_grows_with_each_change_of_an_address_of_a_node_and_never_otherwise() {
        let mut directory = Directory::new(2, &[vec![at(8), at(9)]]);
        let member = Member::new(1, 5);
        let mut last = (directory.version(), None);
        let mut check = |directory: &Directory, changes: bool, what: &str| {
            let now = (directory.version(), directory.get(member.id));
            assert_eq!(now.1 != last.1, changes, "the address: {what}");
            assert_eq!(now.0, last.0 + u64::from(changes), "the version: {what}");
            last = now;
        };
        directory.receive(member, at(1), all);
        check(&directory, true, "the first datagram");
        directory.receive(member, at(1), all);
        check(&directory, false, "another datagram from there");
        directory.receive(member, at(2), all);
        check(&directory, true, "from elsewhere");
        directory.announce(member, vec![at(2)], all);
        check(&directory, false, "its announcement of the same");
        directory.announce(member, vec![at(3), at(4)], all);
        check(&directory, true, "its announcement");
        directory.announce(member, vec![at(3), at(4)], all);
        check(&directory, false, "the same again");
        for (nth, changes) in [false, false, true, false, true].into_iter().enumerate() {
            directory.next(member.id);
            check(&directory, changes, &format!("unanswered, {nth}"));
        }
        directory.receive(member, at(3), all);
        check(&directory, false, "a datagram from its present address");
        directory.receive(member, at(4), all);
        check(&directory, true, "a datagram from another of its addresses");
        directory.receive(member, at(5), all);
        check(
            &directory,
            false,
            "a datagram from an address that it did not announce",
        );
        directory.announce(Member::new(1, 6), vec![at(6)], all);
        check(&directory, true, "a later life");
        directory.announce(member, vec![at(7)], all);
        check(&directory, false, "a former life");
        let seed = Directory::stand_in(0).unwrap();
        for _ in 0..3 {
            assert!(directory.next(seed).is_some());
            check(&directory, false, "a seed is asked at each address in turn");
        }
        directory.move_seed(seed, vec![at(10)]);
        check(&directory, false, "a seed has moved");
    }

    /// Announcements have no scope.
    #[test]
    fn a_link_local_address_is_on_the_link_from_which_it_was_heard() {
        let on = |link: &str| -> SocketAddr { format!("[fe80::1{link}]:7001").parse().unwrap() };
        let mut directory = Directory::new(2, &[]);
        let member = Member::new(1, 5);
        for (link, version) in [("%2", 2), ("%2", 2), ("%3", 3)] {
            directory.announce(member, vec![on("")], all);
            directory.receive(member, on(link), all);
            assert_eq!(directory.get(member.id), Some(on(link)));
            assert_eq!(directory.version(), version);
        }
    }

    /// Announcements that differ in one thing only.
    #[test]
    fn an_announcement_that_differs_is_taken_and_one_of_a_former_life_is_not() {
        let mut directory = Directory::new(2, &[]);
        let member = Member::new(1, 5);
        directory.receive(member, at(1), all);
        // The first address was the source of a datagram, and is announced: from now on only
        // announcements count.
        directory.announce(member, vec![at(1)], all);
        directory.receive(member, at(2), all);
        assert_eq!(directory.get(member.id), Some(at(1)));
        directory.announce(member, vec![at(3)], all);
        assert_eq!(directory.get(member.id), Some(at(3)));
        directory.announce(Member::new(1, 6), vec![at(3)], all);
        directory.announce(member, vec![at(4)], all);
        assert_eq!(directory.get(member.id), Some(at(3)));
    }

    #[test]
    fn it_is_bounded_and_makes_room_for_members_only() {
        let mut directory = Directory::new(3, &[vec![at(9)]]);
        for id in 0..1_000_u16 {
            directory.receive(Member::new(id.into(), 0), at(100 + id), all);
        }
        assert_eq!((directory.len(), directory.refused()), (4, 997));
        assert_eq!(directory.get(NodeId(2)), Some(at(102)));
        assert_eq!(directory.get(NodeId(3)), None);
        // Nodes 0 to 2 have been forgotten by the machine; the seed stays.
        directory.receive(Member::new(3, 0), at(103), |id| id.0 > 2);
        assert_eq!(
            (directory.len(), directory.get(NodeId(3))),
            (2, Some(at(103)))
        );
        directory.announce(Member::new(3, 0), (1..9).map(at).collect(), all);
        assert_eq!(directory.all(NodeId(3)).len(), crate::address::LIMIT);
    }

    #[test]
    fn announced_beats_heard_and_a_later_life_beats_both() {
        let mut directory = Directory::new(3, &[]);
        directory.receive(Member::new(1, 5), at(10), all);
        directory.receive(Member::new(1, 5), at(11), all);
        assert_eq!(directory.get(NodeId(1)), Some(at(11)));
        directory.announce(Member::new(1, 5), vec![at(12)], all);
        directory.receive(Member::new(1, 5), at(13), all);
        directory.announce(Member::new(1, 4), vec![at(14)], all);
        assert_eq!(directory.get(NodeId(1)), Some(at(12)));
        directory.receive(Member::new(1, 6), at(15), all);
        assert_eq!(directory.get(NodeId(1)), Some(at(15)));
        directory.announce(Member::new(1, 7), vec!["0.0.0.0:1".parse().unwrap()], all);
        assert_eq!(directory.get(NodeId(1)), Some(at(15)));
    }

    #[test]
    fn a_member_is_written_to_where_it_was_heard_and_else_at_each_address_in_turn() {
        let mut directory = Directory::new(3, &[]);
        let member = Member::new(1, 5);
        directory.announce(member, vec![at(1), at(2), at(3)], all);
        let next = |directory: &mut Directory| directory.next(member.id).unwrap().port();
        let tried: Vec<u16> = (0..7).map(|_| next(&mut directory)).collect();
        assert_eq!(tried, [1, 1, 2, 2, 3, 3, 1]);
        directory.receive(member, at(2), all);
        assert_eq!(next(&mut directory), 2);
        // It announces the same again, and sends from an address that it did not announce.
        directory.announce(member, vec![at(1), at(2), at(3)], all);
        directory.receive(member, at(9), all);
        assert_eq!([next(&mut directory), next(&mut directory)], [2, 2]);
        assert_eq!(next(&mut directory), 3);
    }

    #[test]
    fn a_seed_is_asked_at_each_address_in_turn() {
        let mut directory = Directory::new(3, &[vec![at(1), at(2)], vec![]]);
        let ids: Vec<NodeId> = Directory::stand_ins(2).collect();
        let tried: Vec<_> = (0..3).map(|_| directory.next(ids[0])).collect();
        assert_eq!(tried, [Some(at(1)), Some(at(2)), Some(at(1))]);
        assert_eq!(directory.next(ids[1]), None);
        directory.move_seed(ids[1], vec![at(3)]);
        assert_eq!(directory.next(ids[1]), Some(at(3)));
    }
}
