//! Which timers are armed, and when they are due.

mod heap;

use core::cmp::Ordering;

use self::heap::Heap;
use crate::Time;

/// Armed timers, at most one a tag. Every operation takes O(log n), and moves the places of tags that
/// lie behind; timers that are due at one moment come out in the order in which they were armed.
///
/// Most machines have a few timers armed. These are kept in an array, which is scanned faster than
/// any tree. Timers that find no room there are kept in a heap.
#[derive(Clone, Debug)]
pub(crate) struct Timers<T> {
    few: [Option<Armed<T>>; FEW],
    many: Heap<T>,
    /// The timer that comes out first of all.
    first: Option<Armed<T>>,
    /// Breaks ties; 2^64 armings do not wrap in any host's life.
    order: u64,
}

const FEW: usize = 8;

/// A timer: when it is due, its place among those armed, its tag.
#[derive(Clone, Copy, Debug)]
struct Armed<T> {
    at: Time,
    order: u64,
    tag: T,
}

impl<T> Armed<T> {
    /// Which one comes out first. No two have the same place among those armed.
    fn turn(&self, other: &Self) -> Ordering {
        (self.at.cmp(&other.at)).then_with(|| self.order.cmp(&other.order))
    }
}

impl<T: Copy + Ord> Timers<T> {
    pub(crate) const fn new() -> Self {
        Self {
            few: [None; FEW],
            many: Heap::new(),
            first: None,
            order: 0,
        }
    }

    pub(crate) fn arm(&mut self, tag: T, at: Time) {
        self.disarm(tag);
        self.order += 1;
        let order = self.order;
        let timer = Armed { at, order, tag };
        match self.few.iter_mut().find(|it| it.is_none()) {
            Some(vacant) => *vacant = Some(timer),
            None => self.many.insert(timer),
        }
        // Of two that are due at one moment, the one that was armed before comes out first.
        if self.first.is_none_or(|first| at < first.at) {
            self.first = Some(timer);
        }
    }

    pub(crate) fn disarm(&mut self, tag: T) {
        let is_it = |it: &&mut Option<Armed<T>>| it.as_ref().is_some_and(|timer| timer.tag == tag);
        match self.few.iter_mut().find(is_it) {
            Some(place) => *place = None,
            None => self.many.remove(tag),
        }
        if self.first.as_ref().is_some_and(|it| it.tag == tag) {
            let few = self.few.iter().flatten();
            self.first = few
                .chain(self.many.first())
                .min_by(|a, b| a.turn(b))
                .copied();
        }
    }

    pub(crate) fn earliest(&self) -> Option<Time> {
        self.first.map(|timer| timer.at)
    }

    /// The order number that the next timer to be armed will get is above this one.
    pub(crate) const fn horizon(&self) -> u64 {
        self.order
    }

    /// Takes out the earliest timer that is due at `now` and was armed no later than `horizon`. Takes
    /// O(n) while another one comes first that was armed later, and is due already.
    pub(crate) fn pop_due(&mut self, now: Time, horizon: u64) -> Option<T> {
        let mut next = self.first.filter(|it| it.at <= now)?;
        if next.order > horizon {
            let all = self.few.iter().flatten().chain(self.many.iter());
            let is_due = |it: &&Armed<T>| it.at <= now && it.order <= horizon;
            next = *all.filter(is_due).min_by(|a, b| a.turn(b))?;
        }
        self.disarm(next.tag);
        Some(next.tag)
    }

    pub(crate) fn tags(&self) -> impl Iterator<Item = (T, Time)> + '_ {
        let mut few = self.few;
        few.sort_unstable_by_key(|it| it.map(|timer| timer.tag));
        // Both are in order of their tags.
        let mut few = few.into_iter().flatten().peekable();
        let mut many = self.many.by_tag().peekable();
        core::iter::from_fn(move || match (few.peek(), many.peek()) {
            (Some(timer), Some(other)) if timer.tag > other.tag => many.next().copied(),
            (Some(_), _) => few.next(),
            (None, _) => many.next().copied(),
        })
        .map(|timer| (timer.tag, timer.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn pop_all(timers: &mut Timers<u8>, now: u64) -> Vec<u8> {
        let horizon = timers.horizon();
        core::iter::from_fn(|| timers.pop_due(Time(now), horizon)).collect()
    }

    #[test]
    fn due_timers_come_out_by_time_then_by_arming() {
        let mut timers = Timers::new();
        timers.arm(1, Time(5));
        timers.arm(2, Time(3));
        timers.arm(0, Time(5));
        timers.arm(9, Time(6));
        assert_eq!(timers.earliest(), Some(Time(3)));
        assert_eq!(pop_all(&mut timers, 5), [2, 1, 0]);
        assert_eq!(timers.earliest(), Some(Time(6)));
    }

    #[test]
    fn arming_again_moves_and_disarming_forgets() {
        let mut timers = Timers::new();
        timers.arm(1, Time(5));
        timers.arm(1, Time(9));
        timers.arm(2, Time(1));
        timers.disarm(2);
        assert_eq!(timers.earliest(), Some(Time(9)));
        assert!(pop_all(&mut timers, 8).is_empty());
        assert_eq!(pop_all(&mut timers, 9), [1]);
        assert_eq!(timers.tags().count(), 0);
    }

    proptest! {
        /// With more timers than the array holds, and with few; against the plainest model.
        #[test]
        fn behaves_like_a_list(
            steps in proptest::collection::vec((0_u8..5, 0_u8..40, 0_u64..30), 0..300),
        ) {
            let mut timers = Timers::new();
            let mut list: Vec<(u64, u64, u8)> = Vec::new();
            for (what, tag, at) in steps {
                match what {
                    0..3 => {
                        list.retain(|it| it.2 != tag);
                        timers.arm(tag, Time(at));
                        list.push((at, timers.horizon(), tag));
                    }
                    3 => {
                        list.retain(|it| it.2 != tag);
                        timers.disarm(tag);
                    }
                    _ => {
                        list.sort_unstable();
                        let horizon = timers.horizon().saturating_sub(tag.into());
                        let mut due = list.iter().filter(|it| it.0 <= at);
                        let due = due.find(|it| it.1 <= horizon).copied();
                        list.retain(|it| Some(*it) != due);
                        prop_assert_eq!(timers.pop_due(Time(at), horizon), due.map(|it| it.2));
                    }
                }
                prop_assert_eq!(timers.earliest(), list.iter().map(|it| Time(it.0)).min());
                let mut tags: Vec<_> = list.iter().map(|it| (it.2, Time(it.0))).collect();
                tags.sort_unstable();
                prop_assert_eq!(timers.tags().collect::<Vec<_>>(), tags);
            }
        }
    }
}
