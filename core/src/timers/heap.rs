//! A heap of timers from which any timer can be taken out, not only the first.

use alloc::vec::Vec;

use super::Armed;

/// A binary heap that knows where in it each tag is. It keeps the memory of the most timers that
/// were ever in it.
#[derive(Clone, Debug)]
pub(super) struct Heap<T> {
    /// Each item comes out before its two children, at twice its number plus 1 and plus 2.
    items: Vec<Item<T>>,
    /// The slot of each tag, by tag. A tree would not move what lies behind, and takes 2 KB of flash
    /// for each type of tag.
    slots: Vec<(T, usize)>,
    /// For each slot, the number of the item that has it.
    places: Vec<usize>,
    /// Slots that no item has.
    free: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Item<T> {
    timer: Armed<T>,
    slot: usize,
}

impl<T: Copy + Ord> Heap<T> {
    pub(super) const fn new() -> Self {
        Self {
            items: Vec::new(),
            slots: Vec::new(),
            places: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Armed<T>> {
        self.items.iter().map(|it| &it.timer)
    }

    /// All, in order of their tags.
    pub(super) fn by_tag(&self) -> impl Iterator<Item = &Armed<T>> {
        let item = |&(_, slot): &(T, usize)| self.items.get(*self.places.get(slot)?);
        self.slots.iter().filter_map(item).map(|it| &it.timer)
    }

    /// The one that comes out first.
    pub(super) fn first(&self) -> Option<&Armed<T>> {
        self.items.first().map(|it| &it.timer)
    }

    /// Adds a timer with a tag that is not there.
    pub(super) fn insert(&mut self, timer: Armed<T>) {
        let at = self.items.len();
        let slot = self.free.pop().unwrap_or_else(|| {
            self.places.push(at);
            self.places.len() - 1
        });
        let place = self.find(timer.tag);
        debug_assert!(place.is_err(), "a tag is armed once");
        if let Err(place) = place {
            self.slots.insert(place, (timer.tag, slot));
        }
        self.items.push(Item { timer, slot });
        self.rise(at);
    }

    /// Takes a timer out, if it is there.
    pub(super) fn remove(&mut self, tag: T) {
        let Ok(place) = self.find(tag) else {
            return; // It is not armed.
        };
        let (_, slot) = self.slots.remove(place);
        self.free.push(slot);
        if let Some(&at) = self.places.get(slot)
            && at < self.items.len()
        {
            self.items.swap_remove(at);
            self.sink(at);
            self.rise(at);
        }
    }

    /// Where a tag is among the slots, or belongs.
    fn find(&self, tag: T) -> Result<usize, usize> {
        self.slots.binary_search_by(|(other, _)| other.cmp(&tag))
    }

    /// The item with this number goes forward past those that come out after it.
    fn rise(&mut self, mut at: usize) {
        while at > 0 && self.is_before(at, (at - 1) / 2) {
            self.items.swap(at, (at - 1) / 2);
            self.settle(at);
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
            self.items.swap(at, child);
            self.settle(at);
            self.settle(child);
            at = child;
        }
    }

    /// Whether there is an item with the first number, and it comes out before the other.
    fn is_before(&self, one: usize, other: usize) -> bool {
        let timer = |at: usize| self.items.get(at).map(|it| &it.timer);
        timer(one).is_some_and(|one| timer(other).is_some_and(|other| one.turn(other).is_lt()))
    }

    /// The item with this number stays there.
    fn settle(&mut self, at: usize) {
        if let Some(item) = self.items.get(at)
            && let Some(place) = self.places.get_mut(item.slot)
        {
            *place = at;
        }
    }
}
