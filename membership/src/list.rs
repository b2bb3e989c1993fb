//! The member list: who is known, how likely each is probed, and a digest of it all.
//!
//! Members live in slots that do not move, so that the weight trees can stay beside them. An index
//! in order of hashed ids finds a slot, and cuts the list into the ranges that two nodes compare.

use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use selvedge_core::{Full, Incarnation, Member, NodeId, WeightTree, Weights};

use crate::digest::{Digests, key};
use crate::index::Index;
use crate::message::{Age, BUCKETS, Claim, Digest, Key, Metadata, Record};
use crate::tombstones::Tombstones;

/// What we hold of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Standing {
    Alive,
    /// Our own probe failed once; nobody else knows.
    Doubted,
    /// Another list says that it failed, ours that it lives: we ask it ourselves.
    Hearsay,
    Suspect,
    Failed,
    Left,
}

impl Standing {
    pub(crate) const fn is_live(self) -> bool {
        matches!(
            self,
            Self::Alive | Self::Doubted | Self::Hearsay | Self::Suspect
        )
    }

    /// Whether its suspicion timer is armed.
    pub(crate) const fn is_timed(self) -> bool {
        matches!(self, Self::Doubted | Self::Hearsay | Self::Suspect)
    }
}

/// One member: 24 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    id: NodeId,
    incarnation: Incarnation,
    pub(crate) revision: u32,
    /// The period of the last contact; of its end, once it is not live.
    pub(crate) stamp: u16,
    pub(crate) standing: Standing,
    pub(crate) suspicions: u8,
    pub(crate) missed: u8,
    pub(crate) neighbour: bool,
    /// Whether the application was told that this life is here.
    pub(crate) reported: bool,
    /// Whether its metadata is of an earlier revision: the news of a suspicion or a failure bring
    /// none. It is kept for the host, and told to nobody.
    is_outdated: bool,
}

impl Entry {
    pub(crate) const fn member(&self) -> Member {
        Member {
            id: self.id,
            incarnation: self.incarnation,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct MemberList {
    /// By slot, like the three that follow. A vacant slot's entry is stale and weighs nothing.
    entries: Vec<Entry>,
    metadata: Vec<Metadata>,
    /// How likely each live member is probed; 0 for us and for the dead.
    weights: WeightTree,
    /// What a member weighs whenever it is live.
    own_weights: Vec<u64>,
    /// What remains in the time-bounded bag; empty where that is not used.
    bag: WeightTree,
    vacant: Vec<u32>,
    index: Index,
    live: usize,
    digests: Digests,
    /// All members that are not live.
    tombstones: Tombstones,
    limit: usize,
}

/// The hashed id of whoever is in a slot.
fn key_of(entries: &[Entry], slot: usize) -> Key {
    entries
        .get(slot)
        .map_or(Key(u64::MAX), |entry| key(entry.id))
}

impl MemberList {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            entries: Vec::new(),
            metadata: Vec::new(),
            weights: WeightTree::default(),
            own_weights: Vec::new(),
            bag: WeightTree::default(),
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
        if self.is_full() {
            return Err(Full { limit: self.limit });
        }
        let entry = Entry {
            id: member.id,
            incarnation: member.incarnation,
            revision,
            stamp,
            standing: Standing::Alive,
            suspicions: 0,
            missed: 0,
            neighbour: false,
            reported: false,
            is_outdated: false,
        };
        let slot = match self.vacant.pop() {
            Some(slot) => slot as usize,
            None => self.entries.len(),
        };
        if let Some(place) = self.entries.get_mut(slot) {
            *place = entry;
        } else {
            self.entries.push(entry);
            self.weights.push(0);
        }
        self.metadata
            .resize_with(self.entries.len(), Metadata::default);
        self.own_weights.resize(self.entries.len(), 0);
        if let Some(place) = self.metadata.get_mut(slot) {
            *place = metadata;
        }
        if let Some(place) = self.own_weights.get_mut(slot) {
            *place = weight;
        }
        let entries = &self.entries;
        self.index
            .insert(key(member.id), slot, |slot| key_of(entries, slot));
        self.weights.set(slot, weight);
        self.add_to_bag(slot, weight);
        self.live += 1;
        self.toggle_digest(slot);
        Ok(slot)
    }

    /// The slot of a node. O(log N).
    pub(crate) fn find(&self, id: NodeId) -> Option<usize> {
        self.index.find(key(id), |slot| key_of(&self.entries, slot))
    }

    pub(crate) fn entry(&self, slot: usize) -> Option<&Entry> {
        self.entries.get(slot)
    }

    /// The entry, for what neither digest nor weight depends on: stamp, health, neighbourhood.
    pub(crate) fn note(&mut self, slot: usize, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self.entries.get_mut(slot) {
            change(entry);
        }
    }

    pub(crate) fn metadata(&self, slot: usize) -> Option<&Metadata> {
        self.metadata.get(slot)
    }

    /// What is said about a member as news: the metadata of the suspect and the failed is known
    /// to nearly all, and left out. `now` is for the age of the dead; without it they have none.
    pub(crate) fn record(&self, slot: usize, now: Option<u16>) -> Option<Record> {
        self.record_with(slot, now, Metadata::default)
    }

    /// Whether the member said its metadata in an earlier revision than the one that we hold. Then
    /// it is suspected or over: a member that is alive has told both.
    pub(crate) fn is_outdated(&self, slot: usize) -> bool {
        self.entry(slot).is_some_and(|entry| entry.is_outdated)
    }

    /// What is said about a member to those who may never have met it.
    pub(crate) fn full_record(&self, slot: usize, now: Option<u16>) -> Option<Record> {
        let known = self.metadata.get(slot).filter(|_| !self.is_outdated(slot));
        self.record_with(slot, now, || known.cloned().unwrap_or_default())
    }

    fn record_with(
        &self,
        slot: usize,
        now: Option<u16>,
        of_doubtful: impl Fn() -> Metadata,
    ) -> Option<Record> {
        let entry = self.entries.get(slot)?;
        let age = Age(now.map_or(0, |now| now.wrapping_sub(entry.stamp)));
        let claim = match entry.standing {
            Standing::Alive | Standing::Doubted | Standing::Hearsay => {
                debug_assert!(!self.is_outdated(slot), "a live member told its metadata");
                Claim::Alive(self.metadata.get(slot)?.clone())
            }
            Standing::Suspect => Claim::Suspect(of_doubtful()),
            Standing::Failed => Claim::Failed(of_doubtful(), age),
            Standing::Left => Claim::Left(age),
        };
        Some(Record {
            member: entry.member(),
            revision: entry.revision,
            claim,
        })
    }

    /// Changes standing and revision. A member that is no longer live weighs nothing and gets a
    /// tombstone stamped `stamp`, which it keeps from then on. O(log N), and O(tombstones) where
    /// one goes or is replaced.
    pub(crate) fn set_standing(
        &mut self,
        slot: usize,
        standing: Standing,
        revision: u32,
        stamp: u16,
    ) {
        let Some(was) = self.entries.get(slot).map(|entry| entry.standing) else {
            return;
        };
        self.toggle_digest(slot);
        if let Some(entry) = self.entries.get_mut(slot) {
            entry.standing = standing;
            entry.revision = revision;
            if was.is_live() != standing.is_live() {
                entry.stamp = stamp;
            }
            let (id, stamp) = (entry.id, entry.stamp);
            if !was.is_live() && was != standing {
                self.tombstones.remove(id, was);
            }
            if !standing.is_live() && was != standing {
                self.tombstones.insert(id, standing, stamp);
            }
            if was.is_live() && !standing.is_live() {
                self.live -= 1;
                self.weights.set(slot, 0);
                self.bag.set(slot, 0);
            } else if !was.is_live() && standing.is_live() {
                self.live += 1;
                let weight = self.own_weight(slot);
                self.weights.set(slot, weight);
                self.add_to_bag(slot, weight);
            }
        }
        self.toggle_digest(slot);
    }

    /// Replaces a life by a later one of the same node, alive; distance and neighbourhood stay.
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
        if let Some(entry) = self.entries.get_mut(slot) {
            entry.incarnation = incarnation;
            entry.stamp = stamp;
            entry.suspicions = 0;
            entry.missed = 0;
            entry.reported = false;
        }
        self.toggle_digest(slot);
        self.set_metadata(slot, metadata);
    }

    /// Sets what a member said in the revision that we hold. O(length).
    pub(crate) fn set_metadata(&mut self, slot: usize, metadata: Metadata) {
        self.toggle_digest(slot);
        if let Some(place) = self.metadata.get_mut(slot) {
            *place = metadata;
        }
        self.note(slot, |entry| entry.is_outdated = false);
        self.toggle_digest(slot);
    }

    /// The member has come to a revision that was told without metadata. To have none is not to
    /// know it, so what is empty needs no mark.
    pub(crate) fn outdate_metadata(&mut self, slot: usize) {
        let is_empty = self
            .metadata(slot)
            .is_none_or(|metadata| metadata.0.is_empty());
        self.note(slot, |entry| entry.is_outdated = !is_empty);
    }

    /// Forgets one dead member that ended at least `age` periods ago (0: never), and returns its id.
    /// O(log N) and the move of the index.
    pub(crate) fn forget_overdue(&mut self, now: u16, age: u16) -> Option<NodeId> {
        let id = self.tombstones.overdue(now, age).filter(|_| age > 0)?;
        self.forget(id)
    }

    /// Forgets the dead member that is missed least, for want of room, and returns its id. As
    /// [`forget_overdue`](Self::forget_overdue).
    pub(crate) fn forget_first(&mut self) -> Option<NodeId> {
        let id = self.tombstones.first_to_go()?;
        self.forget(id)
    }

    fn forget(&mut self, id: NodeId) -> Option<NodeId> {
        let slot = self.find(id)?;
        let standing = self.entries.get(slot)?.standing;
        self.tombstones.remove(id, standing);
        let entries = &self.entries;
        self.index.remove(key(id), |slot| key_of(entries, slot));
        self.set_metadata(slot, Metadata::default());
        self.vacant.push(slot as u32);
        Some(id)
    }

    /// The `nth` of the members that are declared failed.
    pub(crate) fn failed(&self, nth: usize) -> Option<Member> {
        let id = self.tombstones.failed(nth)?;
        Some(self.entry(self.find(id)?)?.member())
    }

    pub(crate) const fn tombstones(&self) -> &Tombstones {
        &self.tombstones
    }

    pub(crate) fn is_full(&self) -> bool {
        self.index.len() >= self.limit
    }

    /// How many members are not declared failed or left.
    pub(crate) const fn live(&self) -> usize {
        self.live
    }

    /// All slots in use from the hashed id `first` on, with their keys.
    pub(crate) fn starting_at(&self, first: Key) -> impl Iterator<Item = (Key, usize)> + '_ {
        let key_of = |slot| key_of(&self.entries, slot);
        self.index
            .starting_at(first, key_of)
            .map(move |slot| (key_of(slot), slot))
    }

    pub(crate) fn digest(&self) -> Digest {
        self.digests.whole()
    }

    pub(crate) fn bucket_digests(&self) -> [Digest; BUCKETS] {
        self.digests.buckets()
    }

    /// Adds the member to its bucket's digest, or takes it out again; nothing for the dead.
    fn toggle_digest(&mut self, slot: usize) {
        let Some(entry) = self.entries.get(slot) else {
            return;
        };
        if !entry.standing.is_live() {
            return;
        }
        let metadata = self.metadata.get(slot);
        self.digests
            .toggle(entry.member(), entry.revision, metadata);
    }

    pub(crate) const fn weights(&self) -> &WeightTree {
        &self.weights
    }

    pub(crate) fn own_weight(&self, slot: usize) -> u64 {
        self.own_weights.get(slot).copied().unwrap_or_default()
    }

    /// Sets what a member weighs from now on, whenever it is live. O(log N).
    pub(crate) fn set_own_weight(&mut self, slot: usize, weight: u64) {
        if let Some(place) = self.own_weights.get_mut(slot) {
            *place = weight;
            if self
                .entries
                .get(slot)
                .is_some_and(|entry| entry.standing.is_live())
            {
                self.weights.set(slot, weight);
            }
        }
    }

    /// Hides a member from draws, or shows it again, without changing what it weighs.
    pub(crate) fn hide(&mut self, slot: usize) {
        self.weights.set(slot, 0);
    }

    pub(crate) fn show(&mut self, slot: usize) {
        let weight = self.own_weight(slot);
        self.weights.set(slot, weight);
    }

    pub(crate) const fn bag(&self) -> &WeightTree {
        &self.bag
    }

    /// Takes `amount` off what the bag holds of a member.
    pub(crate) fn take_from_bag(&mut self, slot: usize, amount: u64) {
        let rest = self.bag.weight(slot).saturating_sub(amount);
        self.bag.set(slot, rest);
    }

    /// Fills the bag with the weights of all live members. O(N log N).
    pub(crate) fn fill_bag(&mut self) {
        self.bag = WeightTree::with_capacity(self.entries.len());
        for slot in 0..self.entries.len() {
            self.bag.push(self.weights.weight(slot));
        }
    }

    fn add_to_bag(&mut self, slot: usize, weight: u64) {
        if self.bag.is_empty() {
            return;
        }
        while self.bag.len() <= slot {
            self.bag.push(0);
        }
        self.bag.set(slot, weight);
    }

    /// How many slots there are, vacant ones included.
    pub(crate) const fn slots(&self) -> usize {
        self.entries.len()
    }

    /// The slots of all known members, in the order of hashed ids.
    pub(crate) fn all(&self) -> impl Iterator<Item = usize> + '_ {
        self.index.slots()
    }

    pub(crate) fn keys_len(&self) -> usize {
        self.index.len()
    }

    pub(crate) fn nth(&self, nth: usize) -> Option<usize> {
        self.index.nth(nth)
    }

    fn canonical(&self) -> impl Iterator<Item = (&Entry, Option<&Metadata>, u64, u64)> {
        self.all().filter_map(|slot| {
            let entry = self.entries.get(slot)?;
            Some((
                entry,
                self.metadata.get(slot),
                self.own_weight(slot),
                self.bag.weight(slot),
            ))
        })
    }
}

// Which slot a member got depends on the past and changes nothing that can happen, so two lists
// are equal when they hold the same members; what is derived from those is left out.
impl PartialEq for MemberList {
    fn eq(&self, other: &Self) -> bool {
        self.limit == other.limit
            && self.tombstones == other.tombstones
            && self.index.len() == other.index.len()
            && self.canonical().eq(other.canonical())
    }
}

impl Eq for MemberList {}

impl Hash for MemberList {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.limit.hash(state);
        self.tombstones.hash(state);
        self.index.len().hash(state);
        for member in self.canonical() {
            member.hash(state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_24_bytes() {
        assert_eq!(size_of::<Entry>(), 24);
    }

    #[test]
    fn who_comes_and_goes_has_one_tombstone_and_the_latest() {
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

    fn list_of(limit: usize, ids: &[u64]) -> MemberList {
        let mut list = MemberList::new(limit);
        for &id in ids {
            let metadata = Metadata::default();
            list.insert(Member::new(id, 0), 0, metadata, 1, 0).unwrap();
        }
        list
    }

    /// Whatever the slots are; a check takes equal lists for one.
    #[test]
    fn lists_are_equal_that_hold_the_same_under_the_same_limit() {
        let list = list_of(10, &[1, 2, 3]);
        assert_eq!(list, list_of(10, &[3, 1, 2]));
        assert_ne!(list, list_of(11, &[1, 2, 3]), "another limit");
        assert_ne!(list, list_of(10, &[1, 2]), "one less");
        assert_ne!(list, list_of(10, &[1, 2, 4]), "another member");
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
