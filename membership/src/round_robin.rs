//! The part of [`Selection::BoundedMix`](crate::Selection::BoundedMix) that goes through the list
//! in turn.

use alloc::vec::Vec;

use selvedge_core::{Context, Machine, NodeId};

/// An order in which every member comes once a round. Members enter at a random place and keep it,
/// so none waits longer than one round.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct RoundRobin {
    /// Each member once.
    order: Vec<NodeId>,
    /// The place of the next one; at the end, the first is next.
    next: usize,
    /// Probes since the last one in turn.
    since: u16,
}

impl RoundRobin {
    /// Adds a new member, at a random place. Moves 8 bytes for each member behind it.
    pub(crate) fn enter<M: Machine>(&mut self, id: NodeId, cx: &mut Context<'_, M>) {
        let place = cx.below(self.order.len() as u64 + 1) as usize;
        self.order.insert(place, id);
        if place < self.next {
            self.next += 1;
        }
        self.debug_assert_place();
    }

    /// Removes a forgotten member. O(N): at the end of a period, or where the list is full and a
    /// newcomer takes the place of a dead member.
    pub(crate) fn leave(&mut self, id: NodeId) {
        if let Some(place) = self.order.iter().position(|&other| other == id) {
            self.order.remove(place);
            if place < self.next {
                self.next -= 1;
            }
        }
        self.debug_assert_place();
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns true if the probe of this period, which is counted, is one in turn.
    pub(crate) const fn is_due(&mut self, every: u16) -> bool {
        self.since += 1;
        let is_due = self.since >= every;
        if is_due {
            self.since = 0;
        }
        is_due
    }

    /// The next member in turn that has a slot: others cannot be probed and are skipped.
    pub(crate) fn draw(&mut self, slot_of: impl Fn(NodeId) -> Option<usize>) -> Option<usize> {
        for _ in 0..self.order.len() {
            if self.next >= self.order.len() {
                self.next = 0;
            }
            let &id = self.order.get(self.next)?;
            self.next += 1;
            if let Some(slot) = slot_of(id) {
                return Some(slot);
            }
        }
        None
    }

    fn debug_assert_place(&self) {
        debug_assert!(self.next <= self.order.len(), "the next place exists");
    }
}
