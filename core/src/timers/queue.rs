//! A heap of timers in which any timer can be moved, not only the first.

use alloc::vec::Vec;

use crate::Time;

/// A binary heap that knows where in it each slot is, and the slots in the order of their tags. It
/// keeps the memory of the most timers that were ever in it.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// Each item comes out before its two children, at twice its number plus 1 and plus 2.
    items: Vec<Item>,
    /// For each slot, the number of the item that has it.
    numbers: Vec<usize>,
    /// The slots of the items, in the order of their tags. A tree would not move what lies behind,
    /// and takes 2 KB of flash.
    slots: Vec<usize>,
    /// Slots that no item has.
    vacant: Vec<usize>,
    /// Breaks ties; 2^64 armings do not wrap in any host's life.
    order: u64,
}

/// A timer: when it is due, its place among those armed, its slot. In this order they come out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Item {
    at: Time,
    order: u64,
    slot: usize,
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
        self.items.push(Item { at, order, slot });
        self.rise(number);
        slot
    }

    /// Arms the timer with the tag at `place` anew.
    pub(super) fn move_to(&mut self, place: usize, at: Time) {
        self.order += 1;
        let Some(number) = self.number(place) else {
            return;
        };
        if let Some(item) = self.items.get_mut(number) {
            (item.at, item.order) = (at, self.order);
        }
        self.sink(number);
        self.rise(number);
    }

    /// Takes the timer with the tag at `place` out.
    pub(super) fn remove(&mut self, place: usize) {
        let Some(number) = self.number(place) else {
            return;
        };
        let slot = self.slots.remove(place);
        self.vacant.push(slot);
        self.items.swap_remove(number);
        self.sink(number);
        self.rise(number);
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

    /// The item with this number goes forward past those that come out after it.
    fn rise(&mut self, mut at: usize) {
        while at > 0 && self.is_before(at, (at - 1) / 2) {
            self.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
        self.settle(at);
    }

    /// The item with this number goes back past those that come out before it.
    fn sink(&mut self, mut at: usize) {
        loop {
            let mut child = 2 * at + 1;
            if self.is_before(child + 1, child) {
                child += 1;
            }
            if !self.is_before(child, at) {
                return;
            }
            self.swap(at, child);
            at = child;
        }
    }

    /// Whether there is an item with the first number, and it comes out before the other.
    fn is_before(&self, one: usize, other: usize) -> bool {
        let item = |number| self.items.get(number);
        item(one).is_some_and(|one| item(other).is_some_and(|other| one < other))
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.items.swap(one, other);
        self.settle(one);
        self.settle(other);
    }

    /// The item with this number stays there.
    fn settle(&mut self, at: usize) {
        if let Some(item) = self.items.get(at)
            && let Some(number) = self.numbers.get_mut(item.slot)
        {
            *number = at;
        }
    }
}
