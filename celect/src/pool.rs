//! The nodes that may be asked, stored as the few nodes that may not, to avoid a copy of the list.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::{Context, Machine, Member};

use crate::peers::Peers;
use crate::{Attribute, sorted};

/// The members of our list except a few, plus a few nodes that are not on it.
#[derive(Debug)]
pub(crate) struct Pool<'a> {
    by_rank: &'a [Member],
    /// The places in it of the nodes that are not in the pool, in order.
    gaps: Vec<usize>,
    more: Vec<Member>,
}

impl<'a> Pool<'a> {
    /// Returns the nodes on the list of `peers` except the owner, and the nodes in `met`, but no node
    /// in `without`. Ranks O(log n) members for each of `without`.
    pub(crate) fn new(
        peers: &'a Peers,
        attribute: &impl Attribute,
        met: &[Member],
        without: impl Iterator<Item = Member> + Clone,
    ) -> Self {
        let mut gaps = vec![peers.owner_at()];
        for gap in without
            .clone()
            .filter_map(|it| peers.place(it, attribute).ok())
        {
            sorted::insert(&mut gaps, gap);
        }
        let more = met.iter().copied().filter(|&it| {
            !peers.is_listed(it)
                && !peers.has_ended(it)
                && !without.clone().any(|other| other == it)
        });
        Self {
            by_rank: peers.by_rank(),
            gaps,
            more: more.collect(),
        }
    }

    /// Returns a pool of `members`.
    pub(crate) fn of(members: &[Member]) -> Self {
        Self {
            by_rank: &[],
            gaps: Vec::new(),
            more: members.into(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_rank.len() - self.gaps.len() + self.more.len()
    }

    /// Draws `count` nodes, each set with equal chances, and returns them by id; all, without a draw,
    /// if the pool has no more. O(count log count) and `count` draws (Floyd's sampling).
    pub(crate) fn draw<M: Machine>(&self, count: usize, cx: &mut Context<'_, M>) -> Vec<Member> {
        let len = self.len();
        let mut chosen: Vec<usize> = Vec::with_capacity(count.min(len));
        for last in len.saturating_sub(count)..len {
            let drawn = if count < len {
                usize::try_from(cx.below(last as u64 + 1)).unwrap_or(last)
            } else {
                last
            };
            // All earlier draws are below `last`.
            match chosen.binary_search(&drawn) {
                Ok(_) => chosen.push(last),
                Err(at) => chosen.insert(at, drawn),
            }
        }
        let mut members = Vec::with_capacity(chosen.len());
        for member in chosen.iter().filter_map(|&nth| self.nth(nth)) {
            sorted::insert(&mut members, member);
        }
        members
    }

    fn nth(&self, nth: usize) -> Option<Member> {
        let listed = self.by_rank.len() - self.gaps.len();
        if let Some(nth) = nth.checked_sub(listed) {
            return self.more.get(nth).copied();
        }
        let (mut low, mut high) = (0, self.gaps.len());
        // Finds the number of gaps before it.
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.gaps.get(middle).is_some_and(|gap| gap - middle <= nth) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        self.by_rank.get(nth + low).copied()
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use selvedge_core::{Choose, Outbox, Ratio, Time, Weights};

    use super::*;
    use crate::{Celect, Lowest};
    use selvedge_core::roster::Standing;

    /// Gives the outcomes of one path through a tree of choices, and moves to the next one.
    #[derive(Default)]
    struct Odometer {
        path: Vec<(u64, u64)>,
        at: usize,
    }

    impl Odometer {
        fn next(&mut self) -> bool {
            self.at = 0;
            while let Some((outcome, bound)) = self.path.pop() {
                if outcome + 1 < bound {
                    self.path.push((outcome + 1, bound));
                    return true;
                }
            }
            false
        }
    }

    impl Choose for Odometer {
        fn below(&mut self, bound: u64) -> u64 {
            if self.at == self.path.len() {
                self.path.push((0, bound));
            }
            self.at += 1;
            self.path[self.at - 1].0
        }

        fn chance(&mut self, _: Ratio) -> bool {
            false
        }

        fn weighted(&mut self, _: &dyn Weights) -> Option<usize> {
            None
        }
    }

    fn member(id: u64) -> Member {
        Member::new(id, 0)
    }

    /// Node 0 lists 1 to 9 and has met 5, 10, 11 and 12; 2, 7 and 11 are left out, and 12 failed.
    fn with_pool<T>(use_it: impl FnOnce(&Pool<'_>) -> T) -> T {
        let by_hash: Lowest = Lowest::default();
        let mut peers = Peers::new(99, member(0));
        for id in 1..10 {
            peers.set(member(id), Standing::Listed, &by_hash).unwrap();
        }
        peers.set(member(12), Standing::Failed, &by_hash).unwrap();
        let met = [5, 10, 11, 12].map(member);
        let without = [7, 11, 2, 7].map(member);
        use_it(&Pool::new(&peers, &by_hash, &met, without.iter().copied()))
    }

    const RIGHT: [u64; 8] = [1, 3, 4, 5, 6, 8, 9, 10];

    #[test]
    fn a_pool_lacks_whom_it_is_told_to_and_has_each_once() {
        let (len, all) = with_pool(|pool| {
            let mut no_node = Odometer::default();
            let mut outbox = Outbox::<Celect>::new();
            let mut cx = Context::new(Time::ZERO, &mut no_node, &mut outbox);
            (pool.len(), pool.draw(99, &mut cx))
        });
        assert_eq!(len, RIGHT.len());
        assert_eq!(all, RIGHT.map(member));
    }

    #[test]
    fn each_set_is_drawn_as_often_as_any_other() {
        for (count, sets) in [(0, 1), (1, 8), (2, 28), (3, 56), (7, 8), (8, 1)] {
            let mut drawn: BTreeMap<Vec<Member>, u32> = BTreeMap::new();
            let mut odometer = Odometer::default();
            loop {
                let mut outbox = Outbox::<Celect>::new();
                let mut cx = Context::new(Time::ZERO, &mut odometer, &mut outbox);
                let members = with_pool(|pool| pool.draw(count, &mut cx));
                assert_eq!(members.len(), count);
                assert!(members.is_sorted_by(|one, other| one < other));
                assert!(members.iter().all(|it| RIGHT.contains(&it.id.0)));
                *drawn.entry(members).or_default() += 1;
                if !odometer.next() {
                    break;
                }
            }
            assert_eq!(drawn.len(), sets);
            let first = drawn.values().next().copied();
            assert!(drawn.values().all(|&times| Some(times) == first));
        }
    }
}
