//! The known nodes, the life of each, and the state that the membership service reports of it.
//!
//! # Room
//!
//! The list has [`Config::peer_limit`](crate::Config::peer_limit) places. The dead take none of
//! them. Nodes that are not on the list are remembered apart: as many as the list has places, and
//! two more. When these are too many, a dead node is forgotten: the node with the oldest news. A
//! live node that finds no place waits for one.
//!
//! # Argument
//!
//! Ends are remembered also of nodes that were never listed, because membership reports each end
//! once, and these points rely on it:
//!
//! 1. A LEADER that others forward, and a QUERY, may arrive after the end of the leader, or of the
//!    initiator, was reported. That end is not reported again. A node that had forgotten it would
//!    follow that leader, or wait for that initiator, for ever. Because ends are remembered, a
//!    message may be older than the end of its subject, as long as there was no news since of as
//!    many others as the list has places. Nodes that wait for a place count as others.
//! 2. A leader that was declared failed and itself sends LEADER is followed for a while. It is never
//!    forgotten: [`Peers::make_room_for`] has a node to spare.
//! 3. Answers name the dead, and former lives. A node that has forgotten their end appoints them,
//!    gets no answer, and asks again without them. That costs time. APPOINT names the
//!    appointed life.
//! 4. Deltas of a former life do not change the present life. Membership does not go back to a
//!    former life, as long as it remembers itself.
//!
//! A node that can report many deaths, of nodes in the mesh or invented ones, can make another node
//! forget ends, and nothing else: no member of the list is ever forgotten for another one.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use selvedge_core::roster::{OwnEnd, Roster, Standing};
use selvedge_core::{Delta, Full, Member};

use crate::attribute::{Attribute, key};

/// The number of nodes remembered beside the list, beyond its number of places: the leader, and one
/// dead node. So no node that waits for a place is forgotten for a dead node.
const SPARE: usize = 2;

/// The roster, and the list in two more orders. A change of the list ranks O(log n) members and
/// moves the members behind: no rank is kept, because lists change seldom and a rank would double
/// the memory of a member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Peers {
    /// The lives, each with the number of its suspicions.
    roster: Roster<u16>,
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
            roster: Roster::split(owner, limit, limit.saturating_add(SPARE)),
            by_rank: vec![owner],
            owner_at: 0,
            suspected: Vec::new(),
        }
    }

    /// Returns the delta if it is about another node.
    pub(crate) fn about_others(&self, delta: Delta) -> Result<Option<Delta>, OwnEnd> {
        self.roster.about_others(delta)
    }

    /// Returns true if this life is on the list, has a place there, or has ended and needs none.
    pub(crate) fn has_place_for(&self, member: Member) -> bool {
        self.roster.has_place_for(member)
    }

    /// Returns the node that has waited longest for a place on the list, if a place is free.
    pub(crate) fn next_in_turn(&self) -> Option<Member> {
        self.roster.next_in_turn()
    }

    /// Makes sure that `member` can be remembered without a place on the list; `leader` is not
    /// forgotten for it. Returns the forgotten node.
    ///
    /// # Errors
    /// [`Full`] where no node can be forgotten, which [`SPARE`] rules out.
    pub(crate) fn make_room_for(
        &mut self,
        member: Member,
        leader: Option<Member>,
    ) -> Result<Option<Member>, Full> {
        let is_needed = |it: Member| leader.is_some_and(|leader| leader.id == it.id);
        self.roster.make_room_for(member, is_needed)
    }

    /// Records the standing of this life, unless a later life is known.
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
        let before = self.roster.latest(member.id);
        let former = before.filter(|(_, it)| *it == Standing::Listed);
        let former = former.map(|(former, _)| (former, self.suspicions(former)));
        self.roster.set(member, standing)?;
        if let Some((former, suspicions)) = former {
            if self.is_listed(former) {
                return Ok(());
            }
            if let Ok(at) = self.place(former, attribute) {
                self.by_rank.remove(at);
                self.owner_at -= usize::from(at < self.owner_at);
            }
            self.place_suspected(former, suspicions, 0);
        }
        if self.is_listed(member) {
            if let Err(at) = self.place(member, attribute) {
                self.by_rank.insert(at, member);
                self.owner_at += usize::from(at <= self.owner_at);
            }
            self.place_suspected(member, 0, self.suspicions(member));
        }
        Ok(())
    }

    /// Counts a suspicion.
    pub(crate) fn suspect(&mut self, member: Member) {
        // Suspicions of an unknown or a former life do not matter.
        let Some(suspicions) = self.roster.get_mut(member) else {
            return;
        };
        let before = *suspicions;
        let after = before.saturating_add(1);
        *suspicions = after;
        if self.is_listed(member) {
            self.place_suspected(member, before, after);
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

    /// Returns the place of a member in [`by_rank`](Self::by_rank), or the place where it belongs.
    /// Ranks O(log n) members.
    pub(crate) fn place(&self, member: Member, attribute: &impl Attribute) -> Result<usize, usize> {
        let wanted = key(attribute, member);
        self.by_rank
            .binary_search_by(|&other| key(attribute, other).cmp(&wanted))
    }

    /// The nodes on the list, and the owner: the lowest first.
    pub(crate) fn by_rank(&self) -> &[Member] {
        &self.by_rank
    }

    /// The owner's place in [`by_rank`](Self::by_rank).
    pub(crate) const fn owner_at(&self) -> usize {
        self.owner_at
    }

    /// The nodes on the list that were suspected: most often suspected first, then by id.
    pub(crate) fn suspected(&self) -> impl Iterator<Item = Member> + '_ {
        self.suspected.iter().map(|&(_, member)| member)
    }

    /// The nodes on the list, by id.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = Member> + '_ {
        self.roster.listed()
    }

    /// The number of nodes on the list.
    pub(crate) const fn len(&self) -> usize {
        self.roster.listed_len()
    }

    /// The number of nodes that were declared failed and have sent nothing since. O(n).
    pub(crate) fn failed(&self) -> usize {
        let all = self.roster.iter();
        all.filter(|(_, it)| *it == Standing::Failed).count()
    }

    /// Returns true if this life is on the list.
    pub(crate) fn is_listed(&self, member: Member) -> bool {
        self.roster.is_listed(member)
    }

    /// The number of suspicions of this life.
    pub(crate) fn suspicions(&self, member: Member) -> u16 {
        self.roster.get(member).copied().unwrap_or_default()
    }

    /// Returns the latest known life of this node, if it is later than `member`; for the owner, the
    /// present life.
    pub(crate) fn latest(&self, member: Member) -> Member {
        if member.id == self.roster.me().id {
            return self.roster.me();
        }
        let known = self.roster.latest(member.id).map(|(known, _)| known);
        known.filter(|it| it.supersedes(member)).unwrap_or(member)
    }

    /// Returns true if this life has certainly ended: its end was reported, a later life is known, or
    /// it is a former life of the owner.
    pub(crate) fn is_over(&self, member: Member) -> bool {
        self.roster.is_over(member)
    }

    /// Returns true if this life was declared failed, or has ended.
    pub(crate) fn has_ended(&self, member: Member) -> bool {
        self.roster.has_ended(member)
    }

    /// The number of nodes that are remembered.
    #[cfg(feature = "check")]
    pub(crate) const fn remembered(&self) -> usize {
        self.roster.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use selvedge_core::NodeId;

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
            1 => Just(Step::Set(Standing::Met)),
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
                        let is_needed_known = peers.roster.latest(NodeId(1)).is_some();
                        let listed: Vec<Member> = peers.iter().collect();
                        let is_full = listed.len() == 6 && !listed.iter().any(|it| it.id == member.id);
                        let is_over = peers.is_over(member);
                        let is_refused = standing == Standing::Listed && is_full && !is_over;
                        prop_assert_eq!(peers.has_place_for(member), !is_full || is_over);
                        if standing != Standing::Listed {
                            peers.make_room_for(member, Some(Member::new(1, 0))).unwrap();
                        }
                        let taken = peers.set(member, standing, &by_hash);
                        prop_assert_eq!(taken.is_err(), is_refused);
                        // No node leaves the list for another one.
                        let is_there = |it: &Member| it.id == member.id || peers.is_listed(*it);
                        prop_assert!(listed.iter().all(is_there));
                        prop_assert!(peers.roster.latest(NodeId(1)).is_some() || !is_needed_known);
                    }
                    Step::Suspect => peers.suspect(member),
                }
                prop_assert!(peers.len() <= 6 && peers.roster.len() - peers.len() <= 8);
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
