//! The member list: the known members, the probability of probing each, and a digest of the list.
//!
//! Members have slots that do not move, so that the weight trees can stay beside them. An index in
//! order of hashed ids finds a slot, and cuts the list into the ranges that two nodes compare.

mod draws;
mod entry;
mod index;
mod records;
mod round_trip;
mod tombstones;

use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use selvedge_core::{Full, Incarnation, Member, NodeId, WeightTree, Weights};

use crate::digest::{Digests, key};
use crate::message::{BUCKETS, Digest, Key, Metadata};
use draws::Draws;
pub(crate) use entry::{Entry, Standing};
use index::Index;
pub(crate) use round_trip::RoundTrip;
use tombstones::Tombstones;

/// All known members: the live ones, and the dead that are remembered.
///
/// Each known member has one slot and one place in the index, and either counts as live, has a
/// weight and is in the digest, or has a tombstone.
#[derive(Clone, Debug)]
pub(crate) struct MemberList {
    /// By slot, like `metadata` and `draws`. A vacant slot's entry is stale and weighs nothing.
    entries: Vec<Entry>,
    metadata: Vec<Metadata>,
    draws: Draws,
    /// By slot, too, up to the last slot of which anything was measured.
    round_trips: Vec<RoundTrip>,
    vacant: Vec<u32>,
    index: Index,
    live: usize,
    digests: Digests,
    tombstones: Tombstones,
    limit: usize,
}

/// The hashed id of the member in a slot.
fn key_of(entries: &[Entry], slot: usize) -> Key {
    entries
        .get(slot)
        .map_or(Key(u64::MAX), |entry| key(entry.id()))
}

impl MemberList {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            entries: Vec::new(),
            metadata: Vec::new(),
            draws: Draws::new(),
            round_trips: Vec::new(),
            vacant: Vec::new(),
            index: Index::default(),
            live: 0,
            digests: Digests::default(),
            tombstones: Tombstones::default(),
            limit,
        }
    }

    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Adds a member that is not on the list, alive. O(log N) and the move of the index.
    pub(crate) fn insert(
        &mut self,
        member: Member,
        revision: u32,
        metadata: Metadata,
        weight: u64,
        stamp: u16,
    ) -> Result<usize, Full> {
        debug_assert!(self.find(member.id).is_none(), "{member:?} is listed");
        if self.is_full() {
            return Err(Full { limit: self.limit });
        }
        let entry = Entry::new(member, revision, stamp);
        let slot = match self.vacant.pop() {
            Some(slot) => slot as usize,
            None => self.entries.len(),
        };
        if let Some(place) = self.entries.get_mut(slot) {
            *place = entry;
        } else {
            self.entries.push(entry);
            self.metadata.push(Metadata::default());
        }
        self.replace_metadata(slot, metadata);
        if let Some(round_trip) = self.round_trips.get_mut(slot) {
            *round_trip = RoundTrip::default();
        }
        let entries = &self.entries;
        self.index
            .insert(key(member.id), slot, |slot| key_of(entries, slot));
        self.draws.insert(slot, weight);
        self.live += 1;
        self.toggle_digest(slot);
        self.debug_assert_counts();
        Ok(slot)
    }

    /// Changes standing and revision. A member that is no longer live weighs nothing and gets a
    /// tombstone with the stamp `stamp`, which it keeps from then on. O(log N), and O(tombstones)
    /// where a tombstone is removed or replaced.
    pub(crate) fn set_standing(
        &mut self,
        slot: usize,
        standing: Standing,
        revision: u32,
        stamp: u16,
    ) {
        let Some(was) = self.entry(slot).map(Entry::standing) else {
            debug_assert!(false, "no member has slot {slot}");
            return;
        };
        self.toggle_digest(slot);
        if let Some(entry) = self.entries.get_mut(slot) {
            entry.set_standing(standing, revision, stamp);
            let (id, stamp) = (entry.id(), entry.stamp());
            if !was.is_live() && was != standing {
                self.tombstones.remove(id, was);
            }
            if !standing.is_live() && was != standing {
                self.tombstones.insert(id, standing, stamp);
            }
            if was.is_live() && !standing.is_live() {
                self.live -= 1;
                self.draws.end(slot);
            } else if !was.is_live() && standing.is_live() {
                self.live += 1;
                self.draws.begin(slot);
            }
        }
        self.toggle_digest(slot);
        self.debug_assert_counts();
    }

    /// Replaces a life by a later one of the same node, alive; its distance stays.
    pub(crate) fn supersede(
        &mut self,
        slot: usize,
        incarnation: Incarnation,
        revision: u32,
        metadata: Metadata,
        stamp: u16,
    ) {
        // Through the standing first, so that weight, digest and count follow.
        self.set_standing(slot, Standing::Alive, revision, stamp);
        self.toggle_digest(slot);
        self.note(slot, |entry| entry.begin_life(incarnation, stamp));
        self.toggle_digest(slot);
        self.set_metadata(slot, metadata);
    }

    /// Changes fields of an entry on which neither digest nor weight depends: stamp, health,
    /// neighbourhood.
    pub(crate) fn note(&mut self, slot: usize, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self.entries.get_mut(slot) {
            change(entry);
        } else {
            debug_assert!(false, "no member has slot {slot}");
        }
    }

    /// Forgets one dead member that ended at least `age` periods ago (0: never), and returns its
    /// id. O(log N) and the move of the index.
    pub(crate) fn forget_overdue(&mut self, now: u16, age: u16) -> Option<NodeId> {
        let id = self.tombstones.overdue(now, age).filter(|_| age > 0)?;
        self.forget(id)
    }

    /// Forgets the dead member that is least useful, for want of room, and returns its id. Cost as
    /// for [`forget_overdue`](Self::forget_overdue).
    pub(crate) fn forget_first(&mut self) -> Option<NodeId> {
        let id = self.tombstones.first_to_go()?;
        self.forget(id)
    }

    fn forget(&mut self, id: NodeId) -> Option<NodeId> {
        let slot = self.find(id)?;
        let standing = self.entry(slot)?.standing();
        self.tombstones.remove(id, standing);
        let entries = &self.entries;
        self.index.remove(key(id), |slot| key_of(entries, slot));
        self.set_metadata(slot, Metadata::default());
        self.vacant.push(slot as u32);
        self.debug_assert_counts();
        Some(id)
    }

    /// Sets the weight of a member from now on, whenever it is live. O(log N).
    pub(crate) fn set_own_weight(&mut self, slot: usize, weight: u64) {
        let is_live = self.entry(slot).is_some_and(Entry::is_live);
        self.draws.set_own(slot, weight, is_live);
    }

    /// The measured round trip of a member, to change it: its weight stays as it is. O(1), and
    /// makes room for all members where there is none yet.
    pub(crate) fn measure(&mut self, slot: usize) -> Option<&mut RoundTrip> {
        debug_assert!(slot < self.entries.len(), "no member has slot {slot}");
        while self.round_trips.len() < self.entries.len() {
            self.round_trips.push(RoundTrip::default());
        }
        self.round_trips.get_mut(slot)
    }

    /// The measured round trip of a member.
    pub(crate) fn round_trip(&self, slot: usize) -> RoundTrip {
        self.round_trips.get(slot).copied().unwrap_or_default()
    }

    /// The slot of a node. O(log N).
    pub(crate) fn find(&self, id: NodeId) -> Option<usize> {
        self.index.find(key(id), |slot| key_of(&self.entries, slot))
    }

    pub(crate) fn entry(&self, slot: usize) -> Option<&Entry> {
        self.entries.get(slot)
    }

    /// The entry of a node, and its slot. O(log N).
    pub(crate) fn get(&self, id: NodeId) -> Option<(usize, &Entry)> {
        let slot = self.find(id)?;
        Some((slot, self.entry(slot)?))
    }

    pub(crate) fn metadata(&self, slot: usize) -> Option<&Metadata> {
        self.metadata.get(slot)
    }

    /// The `nth` of the members that are declared failed.
    pub(crate) fn failed(&self, nth: usize) -> Option<Member> {
        let (_, entry) = self.get(self.tombstones.failed(nth)?)?;
        Some(entry.member())
    }

    pub(crate) const fn tombstones(&self) -> &Tombstones {
        &self.tombstones
    }

    pub(crate) fn is_full(&self) -> bool {
        self.index.len() >= self.limit
    }

    /// The number of members that are not declared failed or left.
    pub(crate) const fn live(&self) -> usize {
        self.live
    }

    pub(crate) const fn draws(&self) -> &Draws {
        &self.draws
    }

    pub(crate) const fn draws_mut(&mut self) -> &mut Draws {
        &mut self.draws
    }

    pub(crate) const fn weights(&self) -> &WeightTree {
        self.draws.weights()
    }

    pub(crate) fn digest(&self) -> Digest {
        self.digests.whole()
    }

    pub(crate) fn bucket_digests(&self) -> [Digest; BUCKETS] {
        self.digests.buckets()
    }

    /// All slots in use from the hashed id `first` on, with their keys.
    pub(crate) fn starting_at(&self, first: Key) -> impl Iterator<Item = (Key, usize)> + '_ {
        let key_of = |slot| key_of(&self.entries, slot);
        self.index
            .starting_at(first, key_of)
            .map(move |slot| (key_of(slot), slot))
    }

    /// The slots of all known members, in the order of hashed ids.
    pub(crate) fn all(&self) -> impl Iterator<Item = usize> + '_ {
        self.index.slots()
    }

    /// The number of known members, dead ones included.
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    /// The slot of the `nth` known member, in the order of hashed ids.
    pub(crate) fn nth(&self, nth: usize) -> Option<usize> {
        self.index.nth(nth)
    }

    /// The number of slots, vacant ones included.
    pub(crate) const fn slots(&self) -> usize {
        self.entries.len()
    }

    fn replace_metadata(&mut self, slot: usize, metadata: Metadata) {
        if let Some(place) = self.metadata.get_mut(slot) {
            *place = metadata;
        } else {
            debug_assert!(false, "no member has slot {slot}");
        }
    }

    /// Adds the member to its bucket's digest, or removes it; nothing for the dead.
    fn toggle_digest(&mut self, slot: usize) {
        debug_assert!(slot < self.entries.len(), "no member has slot {slot}");
        if let Some(entry) = self.entries.get(slot).filter(|entry| entry.is_live()) {
            let metadata = self.metadata.get(slot);
            self.digests
                .toggle(entry.member(), entry.revision(), metadata);
        }
    }

    fn debug_assert_counts(&self) {
        debug_assert_eq!(
            self.live + self.tombstones.len(),
            self.len(),
            "a known member is live or has a tombstone"
        );
        debug_assert_eq!(
            self.len() + self.vacant.len(),
            self.slots(),
            "a slot has a member or is vacant"
        );
    }

    fn canonical(&self) -> impl Iterator<Item = (&Entry, Option<&Metadata>, u64, u64, RoundTrip)> {
        self.all().filter_map(|slot| {
            let entry = self.entries.get(slot)?;
            let metadata = self.metadata.get(slot);
            let (own, bag) = (self.draws.own(slot), self.draws.bag().weight(slot));
            Some((entry, metadata, own, bag, self.round_trip(slot)))
        })
    }
}

// The slot of a member depends on the past and does not affect behaviour, so two lists are equal
// when they hold the same members. Derived data is left out.
impl PartialEq for MemberList {
    fn eq(&self, other: &Self) -> bool {
        self.limit == other.limit
            && self.tombstones == other.tombstones
            && self.draws.step() == other.draws.step()
            && self.len() == other.len()
            && self.canonical().eq(other.canonical())
    }
}

impl Eq for MemberList {}

impl Hash for MemberList {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.limit.hash(state);
        self.tombstones.hash(state);
        self.draws.step().hash(state);
        self.len().hash(state);
        for member in self.canonical() {
            member.hash(state);
        }
    }
}

#[cfg(test)]
mod tests {
    use selvedge_core::Span;

    use super::*;

    #[test]
    fn a_member_that_comes_and_goes_has_one_tombstone_and_the_latest() {
        let mut list = MemberList::new(10);
        let slot = list
            .insert(Member::new(1, 0), 0, Metadata::default(), 1, 0)
            .unwrap();
        for stamp in 0..1_000 {
            list.set_standing(slot, Standing::Failed, 0, stamp);
            assert_eq!(list.tombstones().len(), 1);
            list.set_standing(slot, Standing::Alive, 0, stamp);
            assert_eq!(list.tombstones().len(), 0);
        }
        list.set_standing(slot, Standing::Failed, 0, 1_000);
        // A later revision of a failure changes nothing of it.
        list.set_standing(slot, Standing::Failed, 1, 1_005);
        assert_eq!(list.tombstones().len(), 1);
        list.set_standing(slot, Standing::Left, 0, 1_010);
        assert_eq!(list.tombstones().len(), 1);
        assert_eq!(list.forget_overdue(1_019, 20), None);
        assert_eq!(list.forget_overdue(1_020, 0), None, "0 is for ever");
        assert_eq!(list.forget_overdue(1_020, 20), Some(NodeId(1)));
        assert_eq!((list.tombstones().len(), list.find(NodeId(1))), (0, None));
    }

    #[test]
    fn a_newcomer_in_the_place_of_another_was_not_measured() {
        let mut list = list_of(10, &[1]);
        list.measure(0).unwrap().take(Span(7), Span(1));
        assert_eq!(list.round_trip(0).smoothed(), Some(Span(7)));
        list.set_standing(0, Standing::Failed, 0, 0);
        list.forget_first();
        let newcomer = Member::new(2, 0);
        let slot = list.insert(newcomer, 0, Metadata::default(), 1, 0);
        assert_eq!((slot, list.round_trip(0).smoothed()), (Ok(0), None));
    }

    fn list_of(limit: usize, ids: &[u64]) -> MemberList {
        let mut list = MemberList::new(limit);
        for &id in ids {
            let metadata = Metadata::default();
            list.insert(Member::new(id, 0), 0, metadata, 1, 0).unwrap();
        }
        list
    }

    /// Slots do not matter: a check takes equal lists for one.
    #[test]
    fn lists_are_equal_that_hold_the_same_under_the_same_limit() {
        let list = list_of(10, &[1, 2, 3]);
        assert_eq!(list, list_of(10, &[3, 1, 2]));
        assert_ne!(list, list_of(11, &[1, 2, 3]), "another limit");
        assert_ne!(list, list_of(10, &[1, 2]), "one less");
        assert_ne!(list, list_of(10, &[1, 2, 4]), "another member");
        let mut measured = list_of(10, &[1, 2, 3]);
        measured.measure(0).unwrap().take(Span(7), Span(1));
        assert_ne!(list, measured, "a round trip");
        let after_ends_of = |ids: [u64; 2]| {
            let mut list = list_of(10, &[1, 2, 3]);
            for id in ids {
                let slot = list.find(NodeId(id)).unwrap();
                list.set_standing(slot, Standing::Failed, 0, 7);
            }
            list
        };
        assert_ne!(
            after_ends_of([1, 2]),
            after_ends_of([2, 1]),
            "another is forgotten first"
        );
    }
}
