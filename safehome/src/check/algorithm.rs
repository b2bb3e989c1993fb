//! Algorithm 1 of the paper as it is printed, to show where it does not end.

use alloc::vec;
use alloc::vec::Vec;

/// A time for which a device is planned for a routine: from `start` until before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Whose.
    pub routine: u64,
    /// From then.
    pub start: u64,
    /// Until then.
    pub end: u64,
}

impl Slot {
    /// A slot.
    #[must_use]
    pub const fn new(routine: u64, start: u64, end: u64) -> Self {
        Self {
            routine,
            start,
            end,
        }
    }
}

/// Which mends are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Algorithm1 {
    /// Whether the routine's end is tested before its command is read (erratum H16).
    pub tests_first: bool,
    /// Whether there is no gap behind the endless one (erratum H15).
    pub ends: bool,
}

/// Where the commands of a routine go, each a device and a length, and after how many calls.
/// `None` if the routine is read beyond its end, or after `limit` calls.
///
/// Each lineage is in order of time.
#[must_use]
pub fn algorithm_1(
    rules: Algorithm1,
    lineages: &[Vec<Slot>],
    routine: &[(usize, u64)],
    limit: u64,
) -> Option<(Vec<u64>, u64)> {
    let mut search = Search {
        rules,
        lineages,
        routine,
        limit,
        calls: 0,
        places: vec![0; routine.len()],
    };
    let found = search.schedule(0, 0, &[], &[])?;
    found.then_some((search.places, search.calls))
}

struct Search<'a> {
    rules: Algorithm1,
    lineages: &'a [Vec<Slot>],
    routine: &'a [(usize, u64)],
    limit: u64,
    calls: u64,
    places: Vec<u64>,
}

impl Search<'_> {
    fn schedule(&mut self, index: usize, start: u64, pre: &[u64], post: &[u64]) -> Option<bool> {
        let mut start = start;
        // The last line calls the function again with the next gap: a loop.
        loop {
            self.calls += 1;
            if self.calls > self.limit {
                return None;
            }
            if self.rules.tests_first && index == self.routine.len() {
                return Some(true);
            }
            let &(device, length) = self.routine.get(index)?;
            let lineage = self.lineages.get(device)?;
            let (gap, is_endless) = gap(lineage, start, length);
            let of = |slots: &[Slot]| -> Vec<u64> { slots.iter().map(|it| it.routine).collect() };
            let at = lineage.partition_point(|it| it.start < gap);
            let (left, right) = lineage.split_at_checked(at)?;
            let mut before = of(left);
            let mut after = of(right);
            before.extend(pre);
            after.extend(post);
            if !before.iter().any(|it| after.contains(it))
                && self.schedule(index + 1, gap + length, &before, &after)?
            {
                if let Some(place) = self.places.get_mut(index) {
                    *place = gap;
                }
                return Some(true);
            }
            if is_endless && self.rules.ends {
                return Some(false);
            }
            let next = lineage.get(at).map_or(gap + length, |it| it.end);
            start = if is_endless { gap + length } else { next };
        }
    }
}

/// The first gap from then on that is long enough, and whether it is the endless one.
fn gap(lineage: &[Slot], start: u64, length: u64) -> (u64, bool) {
    let mut start = start;
    for slot in lineage {
        if start + length <= slot.start {
            return (start, false);
        }
        start = start.max(slot.end);
    }
    (start, true)
}
