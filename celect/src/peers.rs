//! Who is known, in which life, and what the membership service says of it.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use selvedge_core::{BoundedMap, Full, Incarnation, Member, NodeId};

use crate::attribute::{Attribute, key};

/// What is known of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Peer {
    /// Its latest life that was heard of.
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
    /// Declared failed, which may be false.
    Failed,
    /// Certainly over.
    Over,
}

/// The latest life of each node. To look one up takes O(log n). What changes the list ranks
/// O(log n) members and moves what lies behind: no rank is kept, because lists change seldom and a
/// rank would double what a member takes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Peers {
    nodes: BoundedMap<NodeId, Peer>,
    owner: Member,
    /// Who is on the list, and the owner: the lowest first.
    by_rank: Vec<Member>,
    /// Where the owner is in it.
    owner_at: usize,
    /// Who is on the list and was suspected: most often suspected first.
    doubted: Vec<(Reverse<u16>, Member)>,
}

impl Peers {
    pub(crate) fn new(limit: usize, owner: Member) -> Self {
        Self {
            nodes: BoundedMap::new(limit),
            owner,
            by_rank: vec![owner],
            owner_at: 0,
            doubted: Vec::new(),
        }
    }

    /// What was said of this life; nothing else of a life that is past.
    ///
    /// # Errors
    /// [`Full`] when it is new and there is no room. Nothing is remembered of it then.
    pub(crate) fn set(
        &mut self,
        member: Member,
        standing: Standing,
        attribute: &impl Attribute,
    ) -> Result<(), Full> {
        if self.is_over(member) {
            return Ok(());
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
        if let Some(before) = before
            && before.standing == Standing::Listed
        {
            let incarnation = before.incarnation;
            let former = Member {
                incarnation,
                ..member
            };
            if let Ok(at) = self.place(former, attribute) {
                self.by_rank.remove(at);
                self.owner_at -= usize::from(at < self.owner_at);
            }
            self.doubt(former, before.suspicions, 0);
        }
        if standing == Standing::Listed {
            if let Err(at) = self.place(member, attribute) {
                self.by_rank.insert(at, member);
                self.owner_at += usize::from(at <= self.owner_at);
            }
            self.doubt(member, 0, peer.suspicions);
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
                self.doubt(member, before, after);
            }
        }
    }

    /// Moves a member of the list to where so many suspicions belong.
    fn doubt(&mut self, member: Member, before: u16, after: u16) {
        if let Ok(at) = self.doubted.binary_search(&(Reverse(before), member)) {
            self.doubted.remove(at);
        }
        let place = (Reverse(after), member);
        if after > 0
            && let Err(at) = self.doubted.binary_search(&place)
        {
            self.doubted.insert(at, place);
        }
    }

    /// Where a member is in [`by_rank`](Self::by_rank), or belongs. Ranks O(log n) members.
    pub(crate) fn place(&self, member: Member, attribute: &impl Attribute) -> Result<usize, usize> {
        let wanted = key(attribute, member);
        self.by_rank
            .binary_search_by(|&other| key(attribute, other).cmp(&wanted))
    }

    /// Who is on the list, and the owner: the lowest first.
    pub(crate) fn by_rank(&self) -> &[Member] {
        &self.by_rank
    }

    /// Where the owner is in [`by_rank`](Self::by_rank).
    pub(crate) const fn owner_at(&self) -> usize {
        self.owner_at
    }

    /// Who is on the list and was suspected: most often suspected first, then by id.
    pub(crate) fn doubted(&self) -> impl Iterator<Item = Member> + '_ {
        self.doubted.iter().map(|&(_, member)| member)
    }

    /// Who is on the list, by id.
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

    /// The latest life of this node that was heard of, if it is later than this one. Of the owner it
    /// is the present one.
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

    /// Whether this life has certainly ended: that was said of it, or a later one was heard of, or it
    /// was the owner's.
    pub(crate) fn is_over(&self, member: Member) -> bool {
        if member.id == self.owner.id {
            return member != self.owner;
        }
        self.nodes.get(&member.id).is_some_and(|peer| {
            peer.incarnation.newer_than(member.incarnation)
                || peer.incarnation == member.incarnation && peer.standing == Standing::Over
        })
    }

    /// Whether it was declared failed, or is over.
    pub(crate) fn is_gone(&self, member: Member) -> bool {
        self.is_over(member)
            || self.nodes.get(&member.id).is_some_and(|peer| {
                peer.incarnation == member.incarnation && peer.standing == Standing::Failed
            })
    }

    /// Forgets all.
    #[cfg(feature = "check")]
    pub(crate) fn clear(&mut self) {
        self.nodes.retain(|_, _| false);
        self.by_rank.clear();
        self.owner_at = 0;
        self.doubted.clear();
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
            1 => Just(Step::Set(Standing::Over)),
            4 => Just(Step::Suspect),
        ]
    }

    proptest! {
        /// Lives 0 to 3 of nodes 1 to 8, of which six are remembered.
        #[test]
        fn both_orders_are_those_of_the_list(
            steps in proptest::collection::vec((step(), 1_u64..9, 0_u32..4), 0..200),
        ) {
            let (owner, by_hash): (Member, Lowest) = (Member::new(0, 0), Lowest::default());
            let mut peers = Peers::new(6, owner);
            for (step, id, life) in steps {
                let member = Member::new(id, life);
                match step {
                    Step::Set(standing) => {
                        let known = peers.nodes.contains(&member.id);
                        let full = peers.nodes.len() == 6;
                        let taken = peers.set(member, standing, &by_hash);
                        prop_assert_eq!(taken.is_err(), full && !known);
                    }
                    Step::Suspect => peers.suspect(member),
                }
                let mut by_rank: Vec<Member> = peers.iter().chain([owner]).collect();
                by_rank.sort_by_key(|&it| key(&by_hash, it));
                prop_assert_eq!(peers.by_rank(), by_rank);
                prop_assert_eq!(peers.by_rank().get(peers.owner_at()), Some(&owner));
                let mut doubted: Vec<Member> = peers.iter().collect();
                doubted.retain(|&it| peers.suspicions(it) > 0);
                doubted.sort_by_key(|&it| (Reverse(peers.suspicions(it)), it));
                prop_assert!(peers.doubted().eq(doubted));
                for (at, &member) in peers.by_rank().iter().enumerate() {
                    prop_assert_eq!(peers.place(member, &by_hash), Ok(at));
                }
            }
        }
    }
}
