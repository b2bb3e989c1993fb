//! The followers: the global topology table (PCM, section 4.3.1).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use selvedge_core::{Member, NodeId};
use serde::{Deserialize, Serialize};

use crate::clustering::{Seat, Slot, Standing};
use crate::task::Library;
use crate::{DutyCycle, Libraries};

/// A follower's report of itself to its gateway.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Attachment {
    /// The follower in its present life.
    pub member: Member,
    /// The number of the attachment in this life. The follower takes the next number each time that it
    /// attaches to a gateway, changes its report, or learns that it was purged. So the later one of two
    /// entries is known (erratum Q3).
    pub number: u32,
    /// The gateway that has its mailbox.
    pub gateway: NodeId,
    /// Its duty cycle.
    pub duty: DutyCycle,
    /// The libraries that it keeps: functions that need them go to its unit rather than to another one.
    pub libraries: Libraries,
}

impl Attachment {
    /// Returns true if this report is later than `other`, of the same node.
    #[must_use]
    pub fn is_later(&self, other: &Self) -> bool {
        let is_same_life = self.member == other.member;
        self.member.supersedes(other.member) || is_same_life && self.number > other.number
    }

    /// The number of these libraries that it keeps.
    pub(crate) fn keeps(&self, libraries: &[Library]) -> usize {
        let kept = libraries.iter().filter(|it| self.libraries.contains(it));
        kept.count()
    }
}

/// A follower that is in the table.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Entry {
    follower: Attachment,
    seat: Option<Seat>,
}

/// A follower that left.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Left {
    follower: Attachment,
    /// The value of [`Followers::purged`] when it left.
    nth: u64,
}

/// All followers, and the followers that left last.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Followers {
    limit: u32,
    /// The number of former followers that are remembered.
    tombstones: u32,
    slots: Vec<Option<Entry>>,
    /// Slots without a follower; the last one is taken first.
    free: Vec<Slot>,
    by_id: BTreeMap<NodeId, Slot>,
    /// The number of followers of each gateway.
    gateways: BTreeMap<NodeId, u32>,
    /// The followers that left last, so that late messages bring none of them back.
    left: BTreeMap<NodeId, Left>,
    /// The order in which they left.
    order: BTreeMap<u64, NodeId>,
    /// The number of followers that left.
    purged: u64,
}

/// The outcome of an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Attached {
    /// It is new, and sits in this slot.
    Joined(Slot),
    /// It was attached, in this life or an earlier one, and the report is newer than the known one.
    Changed {
        /// The life that was known before.
        former: Member,
        /// True if its availability has changed.
        is_other: bool,
    },
    /// The known report is as new, or newer.
    Stale,
    /// The limit of followers is reached.
    Full,
}

impl Followers {
    pub(crate) const fn new(limit: u32, tombstones: u32) -> Self {
        Self {
            limit,
            tombstones,
            slots: Vec::new(),
            free: Vec::new(),
            by_id: BTreeMap::new(),
            gateways: BTreeMap::new(),
            left: BTreeMap::new(),
            order: BTreeMap::new(),
            purged: 0,
        }
    }

    /// Takes the report of a follower, if it is later than the known one. O(log n).
    pub(crate) fn attach(&mut self, follower: Attachment) -> Attached {
        let id = follower.member.id;
        if let Some(left) = self.left.get(&id)
            && !follower.is_later(&left.follower)
        {
            return Attached::Stale;
        }
        let known = self.by_id.get(&id).copied();
        if let Some(entry) = known.and_then(|slot| self.entry_mut(slot)) {
            if !follower.is_later(&entry.follower) {
                return Attached::Stale;
            }
            let gateway = follower.gateway;
            let availability = follower.duty.availability();
            let former = core::mem::replace(&mut entry.follower, follower);
            self.count(former.gateway, false);
            self.count(gateway, true);
            return Attached::Changed {
                former: former.member,
                is_other: former.duty.availability() != availability,
            };
        }
        if self.is_full() {
            return Attached::Full;
        }
        let slot = self.free.pop().unwrap_or(self.slots.len() as Slot);
        let gateway = follower.gateway;
        let entry = Entry {
            follower,
            seat: None,
        };
        match self.slots.get_mut(slot as usize) {
            Some(place) => *place = Some(entry),
            None => self.slots.push(Some(entry)),
        }
        self.by_id.insert(id, slot);
        self.count(gateway, true);
        if let Some(left) = self.left.remove(&id) {
            self.order.remove(&left.nth);
        }
        Attached::Joined(slot)
    }

    /// Removes a follower, unless a later report than `follower` is known. Returns its life and its seat, if it
    /// was removed. While it is remembered only a report later than the removed one attaches it again.
    /// O(log n).
    pub(crate) fn purge(&mut self, follower: &Attachment) -> Option<(Member, Option<Seat>)> {
        let id = follower.member.id;
        let &slot = self.by_id.get(&id)?;
        if self.entry(slot)?.follower.is_later(follower) {
            return None;
        }
        let entry = self.slots.get_mut(slot as usize)?.take()?;
        self.by_id.remove(&id);
        self.free.push(slot);
        self.count(entry.follower.gateway, false);
        let member = entry.follower.member;
        self.bury(entry.follower);
        Some((member, entry.seat))
    }

    /// Sets a follower's seat.
    pub(crate) fn seat(&mut self, slot: Slot, seat: Option<Seat>) {
        if let Some(entry) = self.entry_mut(slot) {
            entry.seat = seat;
        }
    }

    /// The attachment of a follower. O(log n).
    pub(crate) fn get(&self, id: NodeId) -> Option<&Attachment> {
        Some(&self.entry(*self.by_id.get(&id)?)?.follower)
    }

    /// The attachment of a follower when it left last, while that is remembered. O(log n).
    pub(crate) fn left(&self, id: NodeId) -> Option<&Attachment> {
        self.left.get(&id).map(|it| &it.follower)
    }

    /// The follower in a slot.
    pub(crate) fn at(&self, slot: Slot) -> Option<&Attachment> {
        Some(&self.entry(slot)?.follower)
    }

    /// A follower's seat. O(log n).
    pub(crate) fn seat_of(&self, id: NodeId) -> Option<Seat> {
        self.entry(*self.by_id.get(&id)?)?.seat
    }

    /// The number of followers.
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Returns true if the limit of followers is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.len() >= self.limit as usize
    }

    /// The number of followers of each gateway that has any, by id.
    pub(crate) fn gateways(&self) -> impl Iterator<Item = (NodeId, u32)> + '_ {
        self.gateways.iter().map(|(&id, &count)| (id, count))
    }

    /// All of them, by slot.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Attachment> + Clone {
        self.slots.iter().flatten().map(|it| &it.follower)
    }

    /// All of them, as clustering sees them.
    pub(crate) fn standings(&self) -> impl Iterator<Item = Standing> + Clone {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(slot, entry)| {
            let Entry { follower, seat } = entry.as_ref()?;
            Some(Standing {
                slot: slot as Slot,
                id: follower.member.id,
                availability: follower.duty.availability(),
                seat: *seat,
            })
        })
    }

    /// The first contradiction, if there is one. O(n log n).
    #[cfg(feature = "check")]
    pub(crate) fn broken_invariant(&self) -> Option<&'static str> {
        let taken = self.slots.iter().filter(|it| it.is_some()).count();
        let is_found = |(&id, &slot): (&NodeId, &Slot)| {
            self.entry(slot)
                .is_some_and(|it| it.follower.member.id == id)
        };
        let mut gateways = BTreeMap::new();
        for follower in self.iter() {
            *gateways.entry(follower.gateway).or_insert(0) += 1;
        }
        let is_ordered = |(nth, id): (&u64, &NodeId)| {
            let left = self.left.get(id);
            left.is_some_and(|it| it.nth == *nth && it.follower.member.id == *id)
        };
        let promises = [
            (
                self.by_id.len() == taken && self.by_id.iter().all(is_found),
                "an id leads to another follower's slot",
            ),
            (
                taken + self.free.len() == self.slots.len(),
                "a slot is neither taken nor free",
            ),
            (
                gateways == self.gateways,
                "followers of gateways are miscounted",
            ),
            (
                self.left.len() == self.order.len() && self.order.iter().all(is_ordered),
                "a tombstone is not in its order",
            ),
            (
                self.left.keys().all(|it| !self.by_id.contains_key(it)),
                "a follower is present and has left",
            ),
            (
                taken <= self.limit as usize && self.left.len() <= self.tombstones as usize,
                "followers are beyond their limits",
            ),
        ];
        promises.into_iter().find(|it| !it.0).map(|it| it.1)
    }

    fn bury(&mut self, follower: Attachment) {
        let id = follower.member.id;
        self.purged += 1;
        let nth = self.purged;
        debug_assert!(!self.left.contains_key(&id), "a follower leaves once");
        self.left.insert(id, Left { follower, nth });
        self.order.insert(nth, id);
        if self.order.len() > self.tombstones as usize
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.left.remove(&oldest);
        }
    }

    fn count(&mut self, gateway: NodeId, more: bool) {
        let count = self.gateways.entry(gateway).or_default();
        *count = match more {
            true => count.saturating_add(1),
            false => count.saturating_sub(1),
        };
        if *count == 0 {
            self.gateways.remove(&gateway);
        }
    }

    fn entry(&self, slot: Slot) -> Option<&Entry> {
        self.slots.get(slot as usize)?.as_ref()
    }

    fn entry_mut(&mut self, slot: Slot) -> Option<&mut Entry> {
        self.slots.get_mut(slot as usize)?.as_mut()
    }
}
