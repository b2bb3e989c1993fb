//! The nodes that are known, the life of each, and what the membership service says of it.
//!
//! # Room
//!
//! The list has [`Config::peer_limit`](crate::Config::peer_limit) places. The dead take none of
//! them. Nodes that are not on the list are remembered apart: as many as the list has places, and
//! two more. When there are too many of these, one that is gone is forgotten: the one of which
//! nothing new was said for longest. A live node that finds no place waits for one.
//!
//! # Argument
//!
//! Ends are remembered also of nodes that were never listed, because membership tells each end
//! once, and these points rely on it:
//!
//! 1. A LEADER that others pass on, and a QUERY, may arrive when the end of the leader, or of the
//!    initiator, has been told already. Nothing would be told of that end again. So a node that
//!    does not know of it follows that leader, or waits for that initiator, for ever. A message may
//!    therefore be older than the end of its subject, as long as nothing new was said since of as
//!    many others as the list has places. Nodes that wait for a place count as others.
//! 2. A leader that was declared failed and speaks for itself is followed for a while. It is never
//!    forgotten: [`Peers::make_room_for`] has one to spare.
//! 3. Answers name the dead, and former lives. A node that has forgotten their end appoints them,
//!    gets no answer, and asks again without them. That costs time. NOTIFYLEADER says which life is
//!    meant.
//! 4. Deltas of a former life say nothing of the present life. Membership does not go back to a
//!    former life, as long as it remembers itself.
//!
//! A node that can say that many are dead, of the mesh or not, can make a node forget the ends of
//! others, and nothing else: no member of the list is ever forgotten for another one.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use selvedge_core::{BoundedMap, Full, Incarnation, Member, NodeId};

use crate::attribute::{Attribute, key};

/// What is known of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Peer {
    /// The latest life of the node that was heard of.
    incarnation: Incarnation,
    standing: Standing,
    /// How often this life was suspected.
    suspicions: u16,
}

/// Where a life stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Standing {
    /// On the membership list.
    Listed,
    /// Alive, as far as can be told, with no place for it on the list.
    Known,
    /// Declared failed, which may be false.
    Failed,
    /// Certainly over.
    Over,
}

/// How many more nodes are remembered without a place on the list than it has places: the leader,
/// and one that is gone. So no node that waits for a place has to go for a node that is gone.
const SPARE: usize = 2;

/// The latest life of each node. To look one up takes O(log n). A change of the list ranks O(log n)
/// members and moves what lies behind: no rank is kept, because lists change seldom and a rank
/// would double the memory of a member. A change of the nodes that are not on the list takes O(n).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Peers {
    nodes: BoundedMap<NodeId, Peer>,
    /// How many places the list has.
    limit: usize,
    /// Nodes that are not on the list: the one of which nothing new was said for longest is in
    /// front.
    unlisted: VecDeque<NodeId>,
    owner: Member,
    /// The nodes on the list, and the owner: the lowest first.
    by_rank: Vec<Member>,
    /// The owner's place in `by_rank`.
    owner_at: usize,
    /// The nodes on the list that were suspected: most often suspected first.
    suspected: Vec<(Reverse<u16>, Member)>,
}

impl Peers {
    pub(crate) fn new(limit: usize, owner: Member) -> Self {
        Self {
            nodes: BoundedMap::new(limit.saturating_mul(2).saturating_add(SPARE)),
            limit,
            unlisted: VecDeque::new(),
            owner,
            by_rank: vec![owner],
            owner_at: 0,
            suspected: Vec::new(),
        }
    }

    /// How many are on the list.
    const fn listed(&self) -> usize {
        self.by_rank.len() - 1
    }

    /// Whether this life is on the list, has a place there, or is over and needs none.
    pub(crate) fn has_place_for(&self, member: Member) -> bool {
        let is_listed = |peer: &Peer| peer.standing == Standing::Listed;
        self.listed() < self.limit
            || self.nodes.get(&member.id).is_some_and(is_listed)
            || self.is_over(member)
    }

    /// The node that has waited longest for a place on the list, if there is a place. O(n) where
    /// there is.
    pub(crate) fn next_in_turn(&self) -> Option<Member> {
        if self.listed() >= self.limit {
            return None;
        }
        self.unlisted.iter().find_map(|&id| {
            let peer = self.nodes.get(&id)?;
            let incarnation = peer.incarnation;
            (peer.standing == Standing::Known).then_some(Member { id, incarnation })
        })
    }

    /// Makes sure that `member` can be remembered without a place on the list. Where there is no
    /// room, a node that is not `needed` is forgotten: among the nodes that are gone the one of
    /// which nothing new was said for longest, or else among the nodes that wait for a place.
    /// Returns the forgotten node. O(n log n) where there is no room.
    pub(crate) fn make_room_for(
        &mut self,
        member: Member,
        needed: Option<NodeId>,
    ) -> Option<NodeId> {
        let standing = |id: &NodeId| self.nodes.get(id).map(|it| it.standing);
        let is_there = standing(&member.id).is_some_and(|it| it != Standing::Listed);
        let has_room = self.unlisted.len() < self.limit.saturating_add(SPARE);
        if is_there || has_room || self.is_over(member) {
            return None;
        }
        let is_needed = |id: &NodeId| Some(*id) == needed;
        let is_gone = |id: &NodeId| standing(id) != Some(Standing::Known);
        let first = |is_it: &dyn Fn(&NodeId) -> bool| {
            let mut all = self.unlisted.iter();
            all.position(|id| is_it(id) && !is_needed(id))
        };
        let first = first(&is_gone).or_else(|| first(&|_| true))?;
        let leaves = self.unlisted.remove(first)?;
        self.nodes.remove(&leaves);
        Some(leaves)
    }

    /// Takes note of what was said of this life; nothing of a life that is past.
    ///
    /// # Errors
    /// [`Full`] when there is [no place](Self::has_place_for) on the list, or
    /// [no room](Self::make_room_for) beside it. Nothing changes then.
    pub(crate) fn set(
        &mut self,
        member: Member,
        standing: Standing,
        attribute: &impl Attribute,
    ) -> Result<(), Full> {
        if self.is_over(member) {
            return Ok(());
        }
        if standing == Standing::Listed && !self.has_place_for(member) {
            return Err(Full { limit: self.limit });
        }
        let peer = Peer {
            incarnation: member.incarnation,
            standing,
            suspicions: self.suspicions(member),
        };
        let before = self.nodes.insert(member.id, peer)?;
        if before == Some(peer) {
            return Ok(());
        }
        match before {
            Some(before) if before.standing == Standing::Listed => {
                let incarnation = before.incarnation;
                let former = Member {
                    incarnation,
                    ..member
                };
                if let Ok(at) = self.place(former, attribute) {
                    self.by_rank.remove(at);
                    self.owner_at -= usize::from(at < self.owner_at);
                }
                self.place_suspected(former, before.suspicions, 0);
            }
            Some(_) => self.unlisted.retain(|&id| id != member.id),
            None => {}
        }
        if standing == Standing::Listed {
            if let Err(at) = self.place(member, attribute) {
                self.by_rank.insert(at, member);
                self.owner_at += usize::from(at <= self.owner_at);
            }
            self.place_suspected(member, 0, peer.suspicions);
        } else {
            self.unlisted.push_back(member.id);
        }
        Ok(())
    }

    /// Counts a suspicion.
    pub(crate) fn suspect(&mut self, member: Member) {
        if let Some(peer) = self.nodes.get_mut(&member.id)
            && peer.incarnation == member.incarnation
        {
            let before = peer.suspicions;
            let after = before.saturating_add(1);
            peer.suspicions = after;
            if peer.standing == Standing::Listed {
                self.place_suspected(member, before, after);
            }
        }
    }

    /// Moves a member of the list to where that number of suspicions belongs.
    fn place_suspected(&mut self, member: Member, before: u16, after: u16) {
        if let Ok(at) = self.suspected.binary_search(&(Reverse(before), member)) {
            self.suspected.remove(at);
        }
        let place = (Reverse(after), member);
        if after > 0
            && let Err(at) = self.suspected.binary_search(&place)
        {
            self.suspected.insert(at, place);
        }
    }

    /// Where a member is in [`by_rank`](Self::by_rank), or where it belongs. Ranks O(log n)
    /// members.
    pub(crate) fn place(&self, member: Member, attribute: &impl Attribute) -> Result<usize, usize> {
        let wanted = key(attribute, member);
        self.by_rank
            .binary_search_by(|&other| key(attribute, other).cmp(&wanted))
    }

    /// The nodes on the list, and the owner: the lowest first.
    pub(crate) fn by_rank(&self) -> &[Member] {
        &self.by_rank
    }

    /// Where the owner is in [`by_rank`](Self::by_rank).
    pub(crate) const fn owner_at(&self) -> usize {
        self.owner_at
    }

    /// The nodes on the list that were suspected: most often suspected first, then by id.
    pub(crate) fn suspected(&self) -> impl Iterator<Item = Member> + '_ {
        self.suspected.iter().map(|&(_, member)| member)
    }

    /// The nodes on the list, by id.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Member> + '_ {
        let listed = |(_, peer): &(&NodeId, &Peer)| peer.standing == Standing::Listed;
        self.nodes.iter().filter(listed).map(|(&id, peer)| Member {
            id,
            incarnation: peer.incarnation,
        })
    }

    /// Whether this life is on the list.
    pub(crate) fn is_listed(&self, member: Member) -> bool {
        self.nodes.get(&member.id).is_some_and(|peer| {
            peer.incarnation == member.incarnation && peer.standing == Standing::Listed
        })
    }

    /// How often this life was suspected.
    pub(crate) fn suspicions(&self, member: Member) -> u16 {
        let peer = self.nodes.get(&member.id);
        let same = peer.filter(|peer| peer.incarnation == member.incarnation);
        same.map_or(0, |peer| peer.suspicions)
    }

    /// The latest life of this node that was heard of, if it is later than `member`. For the owner
    /// it is the present life.
    pub(crate) fn latest(&self, member: Member) -> Member {
        if member.id == self.owner.id {
            return self.owner;
        }
        let known = self.nodes.get(&member.id).map(|peer| peer.incarnation);
        let later = known.filter(|known| known.newer_than(member.incarnation));
        let incarnation = later.unwrap_or(member.incarnation);
        Member {
            incarnation,
            ..member
        }
    }

    /// Whether this life has certainly ended: that was said of it, or a later life was heard of, or
    /// it was a former life of the owner.
    pub(crate) fn is_over(&self, member: Member) -> bool {
        if member.id == self.owner.id {
            return member != self.owner;
        }
        self.nodes.get(&member.id).is_some_and(|peer| {
            peer.incarnation.newer_than(member.incarnation)
                || peer.incarnation == member.incarnation && peer.standing == Standing::Over
        })
    }

    /// Whether this life was declared failed, or is over.
    pub(crate) fn is_gone(&self, member: Member) -> bool {
        self.is_over(member)
            || self.nodes.get(&member.id).is_some_and(|peer| {
                peer.incarnation == member.incarnation && peer.standing == Standing::Failed
            })
    }

    /// How many nodes are remembered.
    #[cfg(feature = "check")]
    pub(crate) fn remembered(&self) -> usize {
        self.nodes.len()
    }

    /// Forgets all.
    #[cfg(feature = "check")]
    pub(crate) fn clear(&mut self) {
        self.nodes.retain(|_, _| false);
        self.unlisted.clear();
        self.by_rank.clear();
        self.owner_at = 0;
        self.suspected.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Lowest;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Set(Standing),
        Suspect,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => Just(Step::Set(Standing::Listed)),
            2 => Just(Step::Set(Standing::Failed)),
            1 => Just(Step::Set(Standing::Known)),
            1 => Just(Step::Set(Standing::Over)),
            4 => Just(Step::Suspect),
        ]
    }

    proptest! {
        /// Lives 0 to 3 of nodes 1 to 16. The list has six places, and node 1 is never forgotten.
        #[test]
        fn both_orders_are_those_of_the_list(
            steps in proptest::collection::vec((step(), 1_u64..17, 0_u32..4), 0..200),
        ) {
            let (owner, by_hash): (Member, Lowest) = (Member::new(0, 0), Lowest::default());
            let mut peers = Peers::new(6, owner);
            for (step, id, life) in steps {
                let member = Member::new(id, life);
                match step {
                    Step::Set(standing) => {
                        let before = peers.nodes.get(&member.id).copied();
                        let is_needed_known = peers.nodes.contains(&NodeId(1));
                        let listed: Vec<Member> = peers.iter().collect();
                        let is_full = listed.len() == 6 && !listed.iter().any(|it| it.id == member.id);
                        let is_over = peers.is_over(member);
                        let is_refused = standing == Standing::Listed && is_full && !is_over;
                        prop_assert_eq!(peers.has_place_for(member), !is_full || is_over);
                        if standing != Standing::Listed {
                            peers.make_room_for(member, Some(NodeId(1)));
                        }
                        let taken = peers.set(member, standing, &by_hash);
                        prop_assert_eq!(taken.is_err(), is_refused);
                        // No node leaves the list for another one.
                        let is_there = |it: &Member| it.id == member.id || peers.is_listed(*it);
                        prop_assert!(listed.iter().all(is_there));
                        prop_assert!(peers.nodes.contains(&NodeId(1)) || !is_needed_known);
                        let after = peers.nodes.get(&member.id).copied();
                        if standing != Standing::Listed && before != after {
                            prop_assert_eq!(peers.unlisted.back(), Some(&member.id));
                        }
                    }
                    Step::Suspect => peers.suspect(member),
                }
                prop_assert!(peers.iter().count() <= 6 && peers.unlisted.len() <= 8);
                let mut unlisted: Vec<NodeId> = peers.unlisted.iter().copied().collect();
                unlisted.sort_unstable();
                let stands = |it: &&Peer| it.standing != Standing::Listed;
                let rest = peers.nodes.iter().filter(|(_, it)| stands(it)).map(|(id, _)| *id);
                prop_assert!(unlisted.iter().copied().eq(rest));
                let mut by_rank: Vec<Member> = peers.iter().chain([owner]).collect();
                by_rank.sort_by_key(|&it| key(&by_hash, it));
                prop_assert_eq!(peers.by_rank(), by_rank);
                prop_assert_eq!(peers.by_rank().get(peers.owner_at()), Some(&owner));
                let mut suspected: Vec<Member> = peers.iter().collect();
                suspected.retain(|&it| peers.suspicions(it) > 0);
                suspected.sort_by_key(|&it| (Reverse(peers.suspicions(it)), it));
                prop_assert!(peers.suspected().eq(suspected));
                for (at, &member) in peers.by_rank().iter().enumerate() {
                    prop_assert_eq!(peers.place(member, &by_hash), Ok(at));
                }
            }
        }
    }
}
