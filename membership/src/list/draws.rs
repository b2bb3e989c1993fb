//! The weights by which members are drawn.

use alloc::vec::Vec;

use selvedge_core::{WeightTree, Weights};

/// The weights of all slots, and the thesis' bag.
///
/// A slot weighs either nothing (it is vacant, dead, hidden, or this node) or its own weight. The
/// bag is empty where it is not used, and holds at most the own weight of each slot.
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    weights: WeightTree,
    /// The weight of a member whenever it is live.
    own: Vec<u64>,
    bag: WeightTree,
    /// The weight that a draw takes off a slot in the bag: the smallest weight when the bag was
    /// filled.
    step: u64,
}

impl Draws {
    pub(super) fn new() -> Self {
        Self {
            weights: WeightTree::default(),
            own: Vec::new(),
            bag: WeightTree::default(),
            step: 1,
        }
    }

    /// Adds the member in a slot, an existing slot or the next: it is live and weighs `own`. O(log
    /// N).
    pub(super) fn insert(&mut self, slot: usize, own: u64) {
        debug_assert!(slot <= self.own.len(), "slots are taken one by one");
        if slot >= self.own.len() {
            self.own.push(0);
            self.weights.push(0);
        }
        if let Some(place) = self.own.get_mut(slot) {
            *place = own;
        } else {
            debug_assert!(false, "no member has slot {slot}");
        }
        self.begin(slot);
    }

    /// Makes the member in a slot live again. O(log N).
    pub(super) fn begin(&mut self, slot: usize) {
        let own = self.own(slot);
        self.weights.set(slot, own);
        if !self.bag.is_empty() {
            while self.bag.len() <= slot {
                self.bag.push(0);
            }
            self.bag.set(slot, own);
        }
        debug_assert_eq!(
            self.own.len(),
            self.weights.len(),
            "one weight for each slot"
        );
    }

    /// Ends the member in a slot: it is not live any more. O(log N).
    pub(super) fn end(&mut self, slot: usize) {
        self.weights.set(slot, 0);
        self.bag.set(slot, 0);
    }

    /// Sets the weight of a member whenever it is live. O(log N).
    pub(super) fn set_own(&mut self, slot: usize, own: u64, is_live: bool) {
        if let Some(place) = self.own.get_mut(slot) {
            *place = own;
            if is_live {
                self.weights.set(slot, own);
            }
        } else {
            debug_assert!(false, "no member has slot {slot}");
        }
    }

    /// Hides a member from draws, and keeps its weight.
    pub(crate) fn hide(&mut self, slot: usize) {
        self.weights.set(slot, 0);
    }

    /// Shows a hidden member again.
    pub(crate) fn show(&mut self, slot: usize) {
        let own = self.own(slot);
        self.weights.set(slot, own);
    }

    /// Fills the bag with the weights of all live members, if nothing is left in it. O(N log N).
    pub(crate) fn refill_bag(&mut self) {
        if self.bag.total() > 0 {
            return;
        }
        self.bag = WeightTree::with_capacity(self.own.len());
        let mut least = None;
        for slot in 0..self.own.len() {
            let weight = self.weights.weight(slot);
            self.bag.push(weight);
            least = [least, Some(weight).filter(|&weight| weight > 0)]
                .into_iter()
                .flatten()
                .min();
        }
        self.step = least.unwrap_or(1);
    }

    /// Takes the weight of one draw from this slot of the bag.
    pub(crate) fn take_from_bag(&mut self, slot: usize) {
        let rest = self.bag.weight(slot).saturating_sub(self.step);
        self.bag.set(slot, rest);
    }

    pub(crate) const fn weights(&self) -> &WeightTree {
        &self.weights
    }

    pub(crate) const fn bag(&self) -> &WeightTree {
        &self.bag
    }

    /// The weight that one draw takes off in the bag.
    pub(super) const fn step(&self) -> u64 {
        self.step
    }

    /// Returns true if a draw may find this slot.
    pub(crate) fn has(&self, slot: usize) -> bool {
        self.weights.weight(slot) > 0
    }

    pub(crate) fn own(&self, slot: usize) -> u64 {
        self.own.get(slot).copied().unwrap_or_default()
    }
}
