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
//!    gets no answer, and asks again without them. That costs time. APPOINT says which life is
//!    meant.
//! 4. Deltas of a former life say nothing of the present life. Membership does not go back to a
//!    former life, as long as it remembers itself.
//!
//! A node that can say that many are dead, of the mesh or not, can make a node forget the ends of
//! others, and nothing else: no member of the list is ever forgotten for another one.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use selvedge_core::roster::{OwnEnd, Roster, Standing};
use selvedge_core::{Delta, Full, Member};

use crate::attribute::{Attribute, key};

/// How many more nodes are remembered without a place on the list than it has places: the leader,
/// and one that is gone. So no node that waits for a place has to go for a node that is gone.
const SPARE: usize = 2;

/// The roster, and the list in two more orders. A change of the list ranks O(log n) members and
/// moves what lies behind: no rank is kept, because lists change seldom and a rank would double the
/// memory of a member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Peers {
    /// With how often each life was suspected.
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

    /// What membership said, where it is about another node.
    pub(crate) fn about_others(&self, delta: Delta) -> Result<Option<Delta>, OwnEnd> {
        self.roster.about_others(delta)
    }

    /// Whether this life is on the list, has a place there, or is over and needs none.
    pub(crate) fn has_place_for(&self, member: Member) -> bool {
        self.roster.has_place_for(member)
    }

    /// The node that has waited longest for a place on the list, if there is a place.
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
        // What is said of an unknown life or of a past one does not matter.
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
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = Member> + '_ {
        self.roster.listed()
    }

    /// How many nodes are on the list.
    pub(crate) const fn len(&self) -> usize {
        self.roster.listed_len()
    }

    /// The number of nodes that were declared failed and have sent nothing since. O(n).
    pub(crate) fn failed(&self) -> usize {
        let all = self.roster.iter();
        all.filter(|(_, it)| *it == Standing::Failed).count()
    }

    /// Whether this life is on the list.
    pub(crate) fn is_listed(&self, member: Member) -> bool {
        self.roster.is_listed(member)
    }

    /// How often this life was suspected.
    pub(crate) fn suspicions(&self, member: Member) -> u16 {
        self.roster.get(member).copied().unwrap_or_default()
    }

    /// The latest life of this node that was heard of, if it is later than `member`. For the owner
    /// it is the present life.
    pub(crate) fn latest(&self, member: Member) -> Member {
        if member.id == self.roster.me().id {
            return self.roster.me();
        }
        let known = self.roster.latest(member.id).map(|(known, _)| known);
        known.filter(|it| it.supersedes(member)).unwrap_or(member)
    }

    /// Whether this life has certainly ended: that was said of it, or a later life was heard of, or
    /// it was a former life of the owner.
    pub(crate) fn is_over(&self, member: Member) -> bool {
        self.roster.is_over(member)
    }

    /// Whether this life was declared failed, or is over.
    pub(crate) fn is_gone(&self, member: Member) -> bool {
        self.roster.is_gone(member)
    }

    /// How many nodes are remembered.
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
