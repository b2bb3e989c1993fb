//! The nodes that are known, in which life, and what the membership service says of them.

use alloc::collections::VecDeque;

use selvedge_core::{BoundedMap, Delta, Full, Incarnation, Member, NodeId};

/// What is known of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Peer {
    /// The latest life that was heard of.
    incarnation: Incarnation,
    standing: Standing,
}

/// Where a life stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Standing {
    /// Heard of, not on the membership list.
    Known,
    /// On the membership list.
    Listed,
    /// Declared failed, which may be false.
    Failed,
    /// Certainly over.
    Over,
}

/// The latest life of each node. Each operation takes O(log n), and adding a node moves what lies
/// behind it; a life that ends takes O(lives that have ended).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Peers {
    nodes: BoundedMap<NodeId, Peer>,
    listed: usize,
    /// The nodes whose latest life is over, in the order in which they ended.
    ended: VecDeque<NodeId>,
}

impl Peers {
    pub(crate) const fn new(limit: usize) -> Self {
        Self {
            nodes: BoundedMap::new(limit),
            listed: 0,
            ended: VecDeque::new(),
        }
    }

    /// How many members are on the list.
    pub(crate) const fn listed(&self) -> usize {
        self.listed
    }

    /// The members on the list.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Member> + '_ {
        let listed = |(_, peer): &(&NodeId, &Peer)| peer.standing == Standing::Listed;
        self.nodes.iter().filter(listed).map(|(&id, peer)| Member {
            id,
            incarnation: peer.incarnation,
        })
    }

    /// What a section that begins later is to be told of each node, in order of ids.
    pub(crate) fn told(&self) -> impl Iterator<Item = Delta> + '_ {
        self.nodes.iter().filter_map(|(&id, peer)| {
            let incarnation = peer.incarnation;
            let member = Member { id, incarnation };
            match peer.standing {
                Standing::Known => None,
                Standing::Listed => Some(Delta::Joined(member)),
                Standing::Failed => Some(Delta::Failed(member)),
                Standing::Over => Some(Delta::Confirmed(member)),
            }
        })
    }

    pub(crate) fn is_listed(&self, member: Member) -> bool {
        self.standing(member) == Some(Standing::Listed)
    }

    pub(crate) fn is_failed(&self, member: Member) -> bool {
        self.standing(member) == Some(Standing::Failed)
    }

    /// Whether this life has certainly ended: that was said of it, or a later life was heard of.
    pub(crate) fn is_over(&self, member: Member) -> bool {
        self.nodes.get(&member.id).is_some_and(|peer| {
            peer.incarnation.newer_than(member.incarnation)
                || peer.incarnation == member.incarnation && peer.standing == Standing::Over
        })
    }

    /// Whether a node can be added, or is here already.
    fn has_room_for(&self, member: Member) -> bool {
        self.nodes.contains(&member.id) || self.nodes.len() < self.nodes.limit()
    }

    /// Makes room for `member`. Where there is none, this forgets a node that is not on the list
    /// and not `needed`: the node that ended first, if one is over; or else one that was only heard
    /// of; or else one that failed, because membership does not tell a failure again by itself. Of
    /// the heard-of and of the failed nodes the one with the lowest id goes first. Returns the
    /// latest life of the forgotten node. Takes O(n) where there is no room.
    ///
    /// # Errors
    /// [`Full`] when all are on the list or needed.
    pub(crate) fn make_room_for(
        &mut self,
        member: Member,
        is_needed: impl Fn(Member) -> bool,
    ) -> Result<Option<Member>, Full> {
        if self.has_room_for(member) {
            return Ok(None);
        }
        let life = |id: NodeId| {
            let incarnation = self.nodes.get(&id)?.incarnation;
            Some(Member { id, incarnation })
        };
        let ended = self.ended.iter().filter_map(|&id| life(id));
        let others = |standing| {
            let nodes = self.nodes.iter();
            let stands = nodes.filter(move |(_, peer)| peer.standing == standing);
            stands.filter_map(|(&id, _)| life(id))
        };
        let leaves = ended
            .chain(others(Standing::Known))
            .chain(others(Standing::Failed))
            .find(|&member| !is_needed(member));
        let limit = self.nodes.limit();
        let leaves = leaves.ok_or(Full { limit })?;
        self.forget(leaves);
        Ok(Some(leaves))
    }

    /// Takes note of a life that is not over. Returns the former life of this node, if it has just
    /// come to its end.
    ///
    /// # Errors
    /// [`Full`] when it is new and there is no room. Nothing is remembered of it then.
    pub(crate) fn meet(&mut self, member: Member) -> Result<Option<Member>, Full> {
        let before = self.nodes.get(&member.id).copied();
        match before {
            Some(peer) if !member.incarnation.newer_than(peer.incarnation) => Ok(None),
            Some(peer) => {
                self.set(member, Standing::Known)?;
                Ok((peer.standing != Standing::Over).then_some(Member {
                    incarnation: peer.incarnation,
                    ..member
                }))
            }
            None => {
                self.set(member, Standing::Known)?;
                Ok(None)
            }
        }
    }

    /// Puts a life on the list, unless it is over.
    pub(crate) fn list(&mut self, member: Member) -> Result<(), Full> {
        if self.is_over(member) {
            return Ok(());
        }
        self.set(member, Standing::Listed)
    }

    /// The life was declared failed: takes it off the list and remembers that.
    pub(crate) fn fail(&mut self, member: Member) -> Result<(), Full> {
        if self.is_over(member) {
            return Ok(());
        }
        self.set(member, Standing::Failed)
    }

    /// The life is certainly over.
    pub(crate) fn end(&mut self, member: Member) -> Result<(), Full> {
        if self.is_over(member) {
            return Ok(());
        }
        self.set(member, Standing::Over)
    }

    /// Forgets a node.
    pub(crate) fn forget(&mut self, member: Member) {
        let before = self.nodes.remove(&member.id);
        self.count(member.id, before, None);
    }

    fn standing(&self, member: Member) -> Option<Standing> {
        let peer = self.nodes.get(&member.id)?;
        (peer.incarnation == member.incarnation).then_some(peer.standing)
    }

    fn set(&mut self, member: Member, standing: Standing) -> Result<(), Full> {
        let peer = Peer {
            incarnation: member.incarnation,
            standing,
        };
        let before = self.nodes.insert(member.id, peer)?;
        self.count(member.id, before, Some(peer));
        Ok(())
    }

    fn count(&mut self, id: NodeId, before: Option<Peer>, after: Option<Peer>) {
        let is = |it: Option<Peer>, standing| it.is_some_and(|peer| peer.standing == standing);
        let listed = |it| usize::from(is(it, Standing::Listed));
        self.listed = (self.listed + listed(after)).saturating_sub(listed(before));
        if is(before, Standing::Over) {
            self.ended.retain(|&it| it != id);
        }
        if is(after, Standing::Over) {
            self.ended.push_back(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_only_heard_of_gives_way_before_who_failed() {
        let mut peers = Peers::new(3);
        peers.fail(Member::new(1, 0)).unwrap();
        peers.meet(Member::new(2, 0)).unwrap();
        peers.meet(Member::new(3, 0)).unwrap();
        for (newcomer, gone) in [(4, 2), (5, 3), (6, 1)] {
            let newcomer = Member::new(newcomer, 0);
            let forgotten = peers.make_room_for(newcomer, |_| false);
            assert_eq!(forgotten, Ok(Some(Member::new(gone, 0))));
            peers.list(newcomer).unwrap();
        }
    }

    /// A node that comes back in a later life is not over any more, and those that are over stay in
    /// order.
    #[test]
    fn who_ended_first_and_is_still_over_gives_way_first() {
        let mut peers = Peers::new(3);
        for id in 1..=3 {
            peers.end(Member::new(id, 0)).unwrap();
        }
        peers.meet(Member::new(1, 1)).unwrap();
        peers.list(Member::new(1, 1)).unwrap();
        let newcomer = Member::new(4, 0);
        for gone in [2, 3] {
            let forgotten = peers.make_room_for(newcomer, |_| false);
            assert_eq!(forgotten, Ok(Some(Member::new(gone, 0))));
            peers.list(Member::new(gone + 10, 0)).unwrap();
        }
        let full = peers.make_room_for(newcomer, |_| false);
        assert_eq!(full, Err(Full { limit: 3 }));
        assert_eq!(peers.listed(), 3);
    }
}
