//! The armed timers and their due times.

mod queue;

use alloc::vec::Vec;
use core::cmp::Ordering;

use self::queue::Queue;
use crate::Time;

/// Armed timers, at most one a tag. Every operation takes O(log n), and moves a few bytes for each
/// tag behind; timers that are due at one moment come out in the order in which they were armed.
///
/// A timer has a slot, a small number, while it is armed. The queue keeps the order and knows slots
/// only, so that a device has its code once for all types of tags.
#[derive(Clone, Debug)]
pub(crate) struct Timers<T> {
    /// The tag of each slot; a vacant slot keeps its last one.
    tags: Vec<T>,
    queue: Queue,
}

impl<T: Copy + Ord> Timers<T> {
    pub(crate) const fn new() -> Self {
        Self {
            tags: Vec::new(),
            queue: Queue::new(),
        }
    }

    pub(crate) fn arm(&mut self, tag: T, at: Time) {
        // A tag, and not a handle that arming returns: no handle can leak or be mixed up with another,
        // and a check sees a small set of tags instead of numbers that never repeat.
        match self.find(tag) {
            Ok(place) => self.queue.move_to(place, at),
            Err(place) => {
                let slot = self.queue.insert(place, at);
                match self.tags.get_mut(slot) {
                    Some(vacant) => *vacant = tag,
                    None => self.tags.push(tag),
                }
            }
        }
    }

    pub(crate) fn disarm(&mut self, tag: T) {
        if let Ok(place) = self.find(tag) {
            self.queue.remove(place);
        }
    }

    pub(crate) fn earliest(&self) -> Option<Time> {
        self.queue.earliest()
    }

    /// The order number that the next timer to be armed will get is above this one.
    pub(crate) const fn horizon(&self) -> u64 {
        self.queue.horizon()
    }

    /// Takes out the earliest timer that is due at `now` and was armed no later than `horizon`. Takes
    /// O(n) while another one comes first that was armed later, and is due already.
    pub(crate) fn pop_due(&mut self, now: Time, horizon: u64) -> Option<T> {
        let slot = self.queue.due(now, horizon)?;
        let tag = *self.tags.get(slot)?;
        self.disarm(tag);
        Some(tag)
    }

    /// All timers, in the order of their tags.
    pub(crate) fn tags(&self) -> impl Iterator<Item = (T, Time)> + '_ {
        let of_slot = |(slot, at)| Some((*self.tags.get(slot)?, at));
        self.queue.by_tag().filter_map(of_slot)
    }

    /// The place of a tag in the order of tags, or where it belongs.
    fn find(&self, tag: T) -> Result<usize, usize> {
        let slots = self.queue.slots();
        slots.binary_search_by(|slot| match self.tags.get(*slot) {
            Some(other) => other.cmp(&tag),
            None => Ordering::Less,
        })
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
        /// Compares with a plain list, with more timers than the array holds and with few.
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
