//! Which timers are armed, and when they are due.

use alloc::collections::{BTreeMap, BTreeSet};

use crate::Time;

/// Armed timers, at most one a tag. Every operation takes O(log n); timers that are due at one
/// moment come out in the order in which they were armed.
#[derive(Clone, Debug)]
pub(crate) struct Timers<T> {
    due: BTreeSet<(Time, u64, T)>,
    armed: BTreeMap<T, (Time, u64)>,
    /// Breaks ties; 2^64 armings do not wrap in any host's life.
    order: u64,
}

impl<T: Copy + Ord> Timers<T> {
    pub(crate) const fn new() -> Self {
        Self {
            due: BTreeSet::new(),
            armed: BTreeMap::new(),
            order: 0,
        }
    }

    pub(crate) fn arm(&mut self, timer: T, at: Time) {
        self.order += 1;
        if let Some((old, order)) = self.armed.insert(timer, (at, self.order)) {
            self.due.remove(&(old, order, timer));
        }
        self.due.insert((at, self.order, timer));
    }

    pub(crate) fn disarm(&mut self, timer: T) {
        if let Some((at, order)) = self.armed.remove(&timer) {
            self.due.remove(&(at, order, timer));
        }
    }

    pub(crate) fn earliest(&self) -> Option<Time> {
        self.due.first().map(|&(at, _, _)| at)
    }

    /// The order number that the next timer to be armed will get is above this one.
    pub(crate) const fn horizon(&self) -> u64 {
        self.order
    }

    /// Takes out the earliest timer that is due at `now` and was armed no later than `horizon`.
    pub(crate) fn pop_due(&mut self, now: Time, horizon: u64) -> Option<T> {
        let &(at, order, timer) = self
            .due
            .iter()
            .take_while(|&&(at, _, _)| at <= now)
            .find(|&&(_, order, _)| order <= horizon)?;
        self.due.remove(&(at, order, timer));
        self.armed.remove(&timer);
        Some(timer)
    }

    pub(crate) fn tags(&self) -> impl Iterator<Item = (T, Time)> + '_ {
        self.armed.iter().map(|(&timer, &(at, _))| (timer, at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

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
}
