//! The neighbours of each routine, and ranks that agree with the order of every device.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::num::NonZeroU32;

use selvedge_core::NodeId;
use smallvec::SmallVec;

use crate::Urgency;
use crate::lineage::Entry;
use crate::schedule::place::Draft;
use crate::schedule::reach::Side;

/// The index of a routine in [`Ranks`], while it has places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(NonZeroU32);

impl Slot {
    /// The slot with this number, from 0.
    fn new(number: usize) -> Option<Self> {
        let after = u32::try_from(number).ok()?.checked_add(1)?;
        NonZeroU32::new(after).map(Self)
    }

    pub(crate) const fn number(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// The neighbours on each device of all routines that have places, and a rank for each: a routine
/// in front of another one has a lower rank. So if a routine comes before another one, by way of
/// any others, these have ranks between theirs, and a search visits no others.
///
/// All of it follows from the orders of the devices. Ranks are assigned as in M. Pearce and A.
/// Kelly ("A Dynamic Topological Sort Algorithm for Directed Acyclic Graphs", 2006): a new routine
/// gets one between the ranks of its neighbours; if there is none, routines in front of it that
/// rank above routines behind it exchange their ranks with these. A routine that leaves does not
/// change the others' ranks. The memory for the most routines that had places at a time is kept.
///
/// A bit for each pair of routines would answer at once, but all bits would have to be computed again when a
/// routine is aborted, and 4,000 routines would take 2 MB.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranks {
    /// For each slot, as the fields below.
    ranks: Vec<Rank>,
    notes: Vec<Note>,
    links: Vec<Links>,
    free: Vec<Slot>,
    /// The distance by which the last new rank was shifted.
    moved: u64,
    /// For the search for places.
    pub(crate) draft: Option<Box<Draft>>,
}

/// Most routines have few places.
type Links = SmallVec<[Link; 4]>;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank(u64);

/// The facts about a routine that decide whether others may go before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Note {
    /// Derived from the devices that it [sets](crate::run::Run::sets); 0 if it sets none.
    pub(crate) sets: u32,
    pub(crate) urgency: Urgency,
    /// It has started, or must not be overtaken.
    pub(crate) has_begun: bool,
}

/// The neighbours of a routine on a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    device: NodeId,
    pub(crate) before: Option<Slot>,
    pub(crate) after: Option<Slot>,
}

/// A routine beside another one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Neighbour {
    pub(crate) slot: Slot,
    pub(crate) rank: Rank,
}

/// The distance of ranks where there is room.
const WIDE: u64 = 1 << 32;

impl Ranks {
    /// A slot for a routine that has no places yet; `None` if there are 2^32 - 1.
    pub(crate) fn add(&mut self, note: Note) -> Option<Slot> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                let slot = Slot::new(self.ranks.len())?;
                self.ranks.push(Rank::default());
                self.notes.push(Note::default());
                self.links.push(Links::new());
                slot
            }
        };
        if let Some(place) = self.notes.get_mut(slot.number()) {
            *place = note;
        }
        Some(slot)
    }

    /// Links a routine to its neighbours on this device. O(places of the three).
    pub(crate) fn link(
        &mut self,
        slot: Slot,
        device: NodeId,
        before: Option<Slot>,
        after: Option<Slot>,
    ) {
        if let Some(before) = self.link_mut(before, device) {
            before.after = Some(slot);
        }
        if let Some(after) = self.link_mut(after, device) {
            after.before = Some(slot);
        }
        if let Some(links) = self.links.get_mut(slot.number()) {
            links.push(Link {
                device,
                before,
                after,
            });
        }
    }

    /// Removes a routine's place on this device. Without any place, its slot is free. O(places of
    /// the three).
    pub(crate) fn unlink(&mut self, slot: Slot, device: NodeId) {
        let Some(links) = self.links.get_mut(slot.number()) else {
            debug_assert!(false, "a slot is one of these");
            return;
        };
        let Some(at) = links.iter().position(|it| it.device == device) else {
            debug_assert!(false, "it has a place on the device");
            return;
        };
        let ended = links.swap_remove(at);
        if links.is_empty() {
            self.free.push(slot);
        }
        if let Some(before) = self.link_mut(ended.before, device) {
            before.after = ended.after;
        }
        if let Some(after) = self.link_mut(ended.after, device) {
            after.before = ended.before;
        }
    }

    /// Assigns an entry on this device to the routine in this slot, if there is one; else its
    /// routine keeps its slot. Returns the slot.
    pub(crate) fn move_to<V>(
        &mut self,
        slot: Option<Slot>,
        entry: &mut Entry<V>,
        device: NodeId,
    ) -> Option<Slot> {
        let (Some(slot), Some(former)) = (slot, *entry.slot) else {
            return *entry.slot;
        };
        if slot == former {
            return Some(slot);
        }
        let mut links = self.links.get(former.number())?.iter();
        let link = *links.find(|it| it.device == device)?;
        self.unlink(former, device);
        self.link(slot, device, link.before, link.after);
        entry.slot.0 = Some(slot);
        Some(slot)
    }

    /// Gives a routine its rank, after all its places are linked. O(1) for each of them if there is
    /// a rank between its neighbours; otherwise it visits the neighbours of the routines in front
    /// of it that rank above one behind it, and the other way round.
    pub(crate) fn rank(&mut self, slot: Slot) {
        let (last, first) = self.bounds(slot);
        if let (Some(last), Some(first)) = (last, first)
            && last >= first
        {
            self.make_room(slot, last, first);
        }
        // Different values, so that few ranks are equal.
        self.moved = self
            .moved
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(1);
        let found = self.between(slot).unwrap_or_else(|| {
            self.spread();
            self.between(slot).unwrap_or_default()
        });
        if let Some(rank) = self.ranks.get_mut(slot.number()) {
            *rank = found;
        }
    }

    /// Removes an entry from this device.
    pub(crate) fn leave<V>(&mut self, entry: &Entry<V>, device: NodeId) {
        if let Some(slot) = *entry.slot {
            self.unlink(slot, device);
        }
    }

    /// Notes that its routine has started, or must not be overtaken.
    pub(crate) fn begin(&mut self, slot: Option<Slot>) {
        if let Some(note) = slot.and_then(|it| self.notes.get_mut(it.number())) {
            note.has_begun = true;
        }
    }

    /// Returns true if a routine that sets these devices may have to go behind this one. Most
    /// others have not begun, and set other devices.
    pub(crate) fn may_stay(&self, slot: Slot, sets: u32, urgency: Urgency) -> bool {
        self.notes
            .get(slot.number())
            .is_some_and(|it| it.has_begun || it.urgency > urgency || it.sets == sets && sets != 0)
    }

    pub(crate) fn note(&self, slot: Slot) -> Note {
        self.notes.get(slot.number()).copied().unwrap_or_default()
    }

    pub(crate) fn rank_of(&self, slot: Slot) -> Rank {
        self.ranks.get(slot.number()).copied().unwrap_or_default()
    }

    pub(crate) fn neighbour(&self, slot: Slot) -> Neighbour {
        let rank = self.rank_of(slot);
        Neighbour { slot, rank }
    }

    /// The number of slots, including free ones.
    pub(crate) const fn len(&self) -> usize {
        self.ranks.len()
    }

    /// Its neighbours on this side.
    pub(crate) fn beside(&self, slot: Slot, side: Side) -> impl Iterator<Item = Slot> + '_ {
        self.links(slot).iter().filter_map(move |it| match side {
            Side::Before => it.before,
            Side::After => it.after,
        })
    }

    /// Its places.
    pub(crate) fn links(&self, slot: Slot) -> &[Link] {
        self.links
            .get(slot.number())
            .map_or(&[], |it| it.as_slice())
    }

    /// The neighbours of a routine on a device, if it has a place there.
    pub(crate) fn on(&self, slot: Slot, device: NodeId) -> Option<[Option<Slot>; 2]> {
        let mut links = self.links.get(slot.number())?.iter();
        let link = links.find(|it| it.device == device)?;
        Some([link.before, link.after])
    }

    /// The number of places.
    pub(crate) fn places(&self) -> usize {
        self.links.iter().map(|it| it.len()).sum()
    }

    fn link_mut(&mut self, slot: Option<Slot>, device: NodeId) -> Option<&mut Link> {
        let mut links = self.links.get_mut(slot?.number())?.iter_mut();
        links.find(|it| it.device == device)
    }

    /// The highest rank in front of it, and the lowest one behind it.
    fn bounds(&self, slot: Slot) -> (Option<Rank>, Option<Rank>) {
        let ranks = |side| self.beside(slot, side).map(|it| self.rank_of(it));
        (ranks(Side::Before).max(), ranks(Side::After).min())
    }

    /// A rank between those, if there is one: somewhere in the middle.
    fn between(&self, slot: Slot) -> Option<Rank> {
        let (low, high) = match self.bounds(slot) {
            (None, None) => (1 << 63, (1 << 63) + WIDE),
            (Some(last), None) => (last.0, last.0.checked_add(WIDE)?),
            (None, Some(first)) => (first.0.checked_sub(WIDE)?, first.0),
            (Some(last), Some(first)) => (last.0, first.0),
        };
        let quarter = high.checked_sub(low)? / 4;
        let moved = (self.moved >> 16).checked_rem(quarter)?;
        Some(Rank(low + quarter + moved))
    }

    /// Exchanges the ranks of the routines in front of it from `first` on, and of those behind it
    /// up to `last`: the ones in front get the lower ranks.
    fn make_room(&mut self, slot: Slot, last: Rank, first: Rank) {
        let mut draft = self.draft.take().unwrap_or_default();
        let reach = &mut draft.memory.reach;
        let front = reach.collect(self, slot, Side::Before, first);
        let behind = reach.collect(self, slot, Side::After, last);
        self.draft = Some(draft);
        let mut order = [front, behind];
        for side in &mut order {
            side.sort_unstable_by_key(|it| self.rank_of(*it));
        }
        let order = order.concat();
        let mut ranks: Vec<Rank> = order.iter().map(|it| self.rank_of(*it)).collect();
        ranks.sort_unstable();
        if ranks.windows(2).any(|it| it.first() == it.last()) {
            // At other positions they might equal the ranks of neighbours.
            self.spread();
            ranks = order.iter().map(|it| self.rank_of(*it)).collect();
            ranks.sort_unstable();
        }
        for (slot, rank) in order.iter().zip(ranks) {
            if let Some(place) = self.ranks.get_mut(slot.number()) {
                *place = rank;
            }
        }
    }

    /// Assigns ranks in the same order with the largest possible distances. O(n log n).
    fn spread(&mut self) {
        let mut order: Vec<usize> = (0..self.ranks.len()).collect();
        order.sort_unstable_by_key(|it| self.ranks.get(*it));
        let wide = u64::MAX / (order.len() as u64 + 1);
        for (number, at) in order.into_iter().zip(1..) {
            if let Some(rank) = self.ranks.get_mut(number) {
                *rank = Rank(at * wide);
            }
        }
    }
}
