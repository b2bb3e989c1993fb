//! The search for routines before or behind a routine, by way of any others.

use alloc::vec::Vec;

use crate::schedule::ranks::{Link, Rank, Ranks, Slot};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Before,
    After,
}

/// A search from routine to routine. Its memory is used again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reach {
    /// The number of the search that last visited each slot.
    seen: Vec<u32>,
    /// The number of the search.
    search: u32,
    stack: Vec<Slot>,
}

impl Reach {
    /// A routine of `these` that is this routine, or is on this side of it. None of them ranks
    /// beyond the limit. O(`these`, plus the neighbours of the routines with ranks between).
    pub(crate) fn finds(
        &mut self,
        ranks: &Ranks,
        from: Slot,
        side: Side,
        limit: Rank,
        these: impl Iterator<Item = Slot>,
    ) -> Option<Slot> {
        // The routines searched for are marked with the number before.
        self.begin(ranks);
        for it in these {
            self.see(it);
        }
        let wanted = self.search;
        self.search += 1;
        if self.seen.get(from.number()) == Some(&wanted) {
            return Some(from);
        }
        self.stack.push(from);
        // Once for each side, so that a step makes no needless comparison.
        match side {
            Side::Before => self.walk(ranks, wanted, |it| it.before, |rank| rank >= limit),
            Side::After => self.walk(ranks, wanted, |it| it.after, |rank| rank <= limit),
        }
    }

    /// The first routine with this number on the way from the routines on the stack.
    fn walk(
        &mut self,
        ranks: &Ranks,
        wanted: u32,
        beside: impl Fn(&Link) -> Option<Slot>,
        is_within: impl Fn(Rank) -> bool,
    ) -> Option<Slot> {
        while let Some(at) = self.stack.pop() {
            for next in ranks.links(at).iter().filter_map(&beside) {
                let Some(seen) = self.seen.get_mut(next.number()) else {
                    debug_assert!(false, "each slot has a number");
                    continue;
                };
                if *seen == wanted {
                    return Some(next);
                }
                if *seen != self.search && is_within(ranks.rank_of(next)) {
                    *seen = self.search;
                    self.stack.push(next);
                }
            }
        }
        None
    }

    /// The routines on this side of a routine with ranks that are not beyond this one.
    pub(crate) fn collect(
        &mut self,
        ranks: &Ranks,
        from: Slot,
        side: Side,
        limit: Rank,
    ) -> Vec<Slot> {
        let mut found = Vec::new();
        self.begin(ranks);
        self.stack.push(from);
        while let Some(at) = self.stack.pop() {
            for next in ranks.beside(at, side) {
                if is_within(ranks.rank_of(next), side, limit) && self.see(next) {
                    found.push(next);
                    self.stack.push(next);
                }
            }
        }
        found
    }

    /// Begins a search. It has two numbers.
    fn begin(&mut self, ranks: &Ranks) {
        if self.search > u32::MAX - 4 {
            self.search = 0;
            self.seen.clear();
        }
        self.seen.resize(ranks.len(), 0);
        self.search += 2;
        self.stack.clear();
    }

    /// Returns true if it was not visited yet.
    fn see(&mut self, slot: Slot) -> bool {
        let search = self.search;
        let seen = self.seen.get_mut(slot.number());
        seen.is_some_and(|it| core::mem::replace(it, search) != search)
    }
}

/// Returns true if a rank is not beyond this limit.
fn is_within(rank: Rank, side: Side, limit: Rank) -> bool {
    match side {
        Side::Before => rank >= limit,
        Side::After => rank <= limit,
    }
}
