//! A heap of timers in which any timer can be moved, not only the first.

use alloc::vec::Vec;

use crate::Time;

// Why a heap of slots: a B-tree costs 2 KB of flash for each type of tag. A hash map needs a hasher that
// peers cannot attack, and its order must be kept out of every result. A timer wheel needs a tick and a
// horizon.

/// A binary heap that knows where in it each slot is, and the slots in the order of their tags. It
/// keeps the memory of the most timers that were ever in it.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// Each item comes out before its two children, at twice its number plus 1 and plus 2.
    items: Vec<Item>,
    /// For each slot, the number of the item that has it.
    numbers: Vec<usize>,
    /// The slots of the items, in the order of their tags. A tree would not move the slots behind a
    /// change, but takes 2 KB of flash.
    slots: Vec<usize>,
    /// Slots that no item has.
    vacant: Vec<usize>,
    /// Breaks ties; 2^64 armings do not wrap in any host's life.
    order: u64,
}

/// A timer: its due time, its place in the order of arming, its slot. Timers are removed in this
/// order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Item {
    at: Time,
    order: u64,
    slot: usize,
}

impl Item {
    fn is_before(&self, other: &Self) -> bool {
        self.at < other.at || self.at == other.at && self.order < other.order
    }
}

impl Queue {
    pub(super) const fn new() -> Self {
        Self {
            items: Vec::new(),
            numbers: Vec::new(),
            slots: Vec::new(),
            vacant: Vec::new(),
            order: 0,
        }
    }

    /// Adds a timer with a tag that belongs at `place`. Returns its slot: a vacant one, or the next
    /// after all that there are.
    pub(super) fn insert(&mut self, place: usize, at: Time) -> usize {
        let number = self.items.len();
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.numbers.push(number);
            self.numbers.len() - 1
        });
        self.slots.insert(place, slot);
        self.order += 1;
        let order = self.order;
        let item = Item { at, order, slot };
        self.items.push(item);
        self.rise(item, number);
        slot
    }

    /// Moves the timer with the tag at `place` to another time.
    pub(super) fn move_to(&mut self, place: usize, at: Time) {
        self.order += 1;
        let Some(number) = self.number(place) else {
            return;
        };
        if let Some(&item) = self.items.get(number) {
            let order = self.order;
            self.put(Item { at, order, ..item }, number);
        }
    }

    /// Removes the timer with the tag at `place`.
    pub(super) fn remove(&mut self, place: usize) {
        let Some(number) = self.number(place) else {
            return;
        };
        let slot = self.slots.remove(place);
        self.vacant.push(slot);
        let last = self.items.pop();
        if let Some(last) = last.filter(|_| number < self.items.len()) {
            self.put(last, number);
        }
    }

    pub(super) fn earliest(&self) -> Option<Time> {
        self.items.first().map(|it| it.at)
    }

    /// The order number of the timer that was armed last.
    pub(super) const fn horizon(&self) -> u64 {
        self.order
    }

    /// The slot of the earliest timer that is due at `now` and was armed no later than `horizon`.
    pub(super) fn due(&self, now: Time, horizon: u64) -> Option<usize> {
        let mut next = self.items.first().filter(|it| it.at <= now)?;
        if next.order > horizon {
            let is_due = |it: &&Item| it.at <= now && it.order <= horizon;
            next = self.items.iter().filter(is_due).min()?;
        }
        Some(next.slot)
    }

    /// The slots of all timers, in the order of their tags.
    pub(super) fn slots(&self) -> &[usize] {
        &self.slots
    }

    /// The slots of all timers and when they are due, in the order of their tags.
    pub(super) fn by_tag(&self) -> impl Iterator<Item = (usize, Time)> {
        let item = |&slot: &usize| self.items.get(*self.numbers.get(slot)?);
        self.slots
            .iter()
            .filter_map(item)
            .map(|it| (it.slot, it.at))
    }

    /// The number of the item with the tag at `place`.
    fn number(&self, place: usize) -> Option<usize> {
        let number = self.slots.get(place).and_then(|&it| self.numbers.get(it));
        debug_assert!(number.is_some(), "each slot in order has an item");
        number.copied()
    }

    /// Puts an item where it belongs, from the place with this number.
    fn put(&mut self, item: Item, number: usize) {
        let at = self.sink(item, number);
        if at == number {
            self.rise(item, at);
        } else {
            self.settle(item, at);
        }
    }

    /// Moves back the items in front of this place that are due after the item, and settles it
    /// there.
    fn rise(&mut self, item: Item, mut at: usize) {
        while let Some(parent) = at.checked_sub(1).map(|it| it / 2)
            && let Some(&before) = self.items.get(parent)
            && item.is_before(&before)
        {
            self.settle(before, at);
            at = parent;
        }
        self.settle(item, at);
    }

    /// Moves forward the items behind this place that are due before the item. Returns the place
    /// that is left for it.
    fn sink(&mut self, item: Item, mut at: usize) -> usize {
        while let Some(&child) = self.items.get(2 * at + 1) {
            let (mut first, mut number) = (child, 2 * at + 1);
            if let Some(&other) = self.items.get(number + 1)
                && other.is_before(&first)
            {
                (first, number) = (other, number + 1);
            }
            if item.is_before(&first) {
                break;
            }
            self.settle(first, at);
            at = number;
        }
        at
    }

    /// Gives the item this number.
    fn settle(&mut self, item: Item, at: usize) {
        if let Some(place) = self.items.get_mut(at) {
            *place = item;
        }
        if let Some(number) = self.numbers.get_mut(item.slot) {
            *number = at;
        }
    }
}
