//! Pending events: messages and actions in a heap, and one alarm for each node.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;

use selvedge_core::Time;

/// A queue in order of time, then of arrival. Push and pop take O(log n). Items lie in slots that
/// are used again, so that the heap moves small keys only.
#[derive(Clone, Debug)]
pub(crate) struct Queue<T> {
    heap: BinaryHeap<Reverse<(Time, u64, usize)>>,
    slots: Vec<Option<T>>,
    free: Vec<usize>,
    pushed: u64,
}

impl<T> Queue<T> {
    pub(crate) const fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            pushed: 0,
        }
    }

    pub(crate) fn push(&mut self, at: Time, item: T) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        if let Some(place) = self.slots.get_mut(slot) {
            *place = Some(item);
        }
        self.heap.push(Reverse((at, self.pushed, slot)));
        self.pushed += 1;
    }

    pub(crate) fn next_at(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, _, _))| *at)
    }

    pub(crate) fn pop(&mut self) -> Option<(Time, T)> {
        let Reverse((at, _, slot)) = self.heap.pop()?;
        self.free.push(slot);
        Some((at, self.slots.get_mut(slot)?.take()?))
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }
}

/// The time at which each node wants to be woken: never more than one entry a node, so that moved
/// timers leave nothing behind. Every change takes O(log nodes), reading the earliest O(1).
#[derive(Clone, Debug)]
pub(super) struct Alarms {
    /// A tree of winners: the second half are the nodes, and each place of the first half has the
    /// earlier of the two below it (2n and 2n + 1), the former one of equals.
    tree: Vec<Time>,
}

/// No alarm. Nothing is ever due then: time ends with it.
const NEVER: Time = Time(u64::MAX);

impl Alarms {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            tree: vec![NEVER; nodes.next_power_of_two().max(1) * 2],
        }
    }

    /// Moves the alarm of `node`, or removes it.
    pub(super) fn set(&mut self, node: usize, at: Option<Time>) {
        let nodes = self.tree.len() / 2;
        let mut place = nodes + node;
        let mut earliest = at.unwrap_or(NEVER);
        while let Some(here) = self.tree.get_mut(place) {
            if *here == earliest {
                return;
            }
            *here = earliest;
            if place <= 1 {
                return;
            }
            earliest = earliest.min(self.at(place ^ 1));
            place /= 2;
        }
    }

    fn at(&self, place: usize) -> Time {
        self.tree.get(place).copied().unwrap_or(NEVER)
    }

    pub(super) fn next_at(&self) -> Option<Time> {
        Some(self.at(1)).filter(|&at| at != NEVER)
    }

    pub(super) fn pop(&mut self) -> Option<(Time, usize)> {
        let at = self.next_at()?;
        let nodes = self.tree.len() / 2;
        let mut place = 1;
        while place < nodes {
            place *= 2;
            if self.at(place) != at {
                place += 1;
            }
        }
        self.set(place - nodes, None);
        Some((at, place - nodes))
    }

    pub(super) fn len(&self) -> usize {
        let nodes = self.tree.iter().skip(self.tree.len() / 2);
        nodes.filter(|&&at| at != NEVER).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn comes_out_by_time_then_by_arrival(
            // `None` takes an entry out in between, so that slots are used again in another order.
            steps in proptest::collection::vec(proptest::option::weighted(0.7, 0_u64..8), 0..60),
        ) {
            let mut queue = Queue::new();
            let mut expected: Vec<(Time, usize)> = Vec::new();
            for (index, step) in steps.into_iter().enumerate() {
                if let Some(at) = step {
                    queue.push(Time(at), index);
                    expected.push((Time(at), index));
                    expected.sort();
                } else {
                    let first = (!expected.is_empty()).then(|| expected.remove(0));
                    prop_assert_eq!(queue.next_at(), first.map(|(at, _)| at));
                    prop_assert_eq!(queue.pop(), first);
                }
            }
            let rest: Vec<_> = core::iter::from_fn(|| queue.pop()).collect();
            prop_assert_eq!(rest, expected);
        }
    }

    proptest! {
        #[test]
        fn alarms_come_by_time_then_by_node(
            nodes in 1_usize..20,
            steps in proptest::collection::vec((0_usize..20, proptest::option::of(0_u64..9)), 0..80),
        ) {
            let mut alarms = Alarms::new(nodes);
            let mut expected = alloc::collections::BTreeMap::new();
            for (node, at) in steps {
                let node = node % nodes;
                alarms.set(node, at.map(Time));
                match at {
                    Some(at) => drop(expected.insert(node, Time(at))),
                    None => drop(expected.remove(&node)),
                }
                prop_assert_eq!(alarms.next_at(), expected.values().min().copied());
                prop_assert_eq!(alarms.len(), expected.len());
            }
            let mut sorted: Vec<_> = expected.into_iter().map(|(node, at)| (at, node)).collect();
            sorted.sort_unstable();
            let popped: Vec<_> = core::iter::from_fn(|| alarms.pop()).collect();
            prop_assert_eq!(popped, sorted);
        }
    }

    #[test]
    fn slots_are_used_again() {
        let mut queue = Queue::new();
        for round in 0..1_000 {
            queue.push(Time(round), round);
            queue.push(Time(round), round);
            queue.pop();
            queue.pop();
        }
        assert_eq!(
            (queue.slots.len(), queue.free.len(), queue.len()),
            (2, 2, 0)
        );
    }

    #[test]
    fn a_moved_alarm_leaves_nothing_behind() {
        let mut alarms = Alarms::new(2);
        for at in 0..1_000 {
            alarms.set(0, Some(Time(1_000 - at)));
            alarms.set(1, Some(Time(at)));
        }
        assert_eq!(alarms.len(), 2);
        assert_eq!(alarms.pop(), Some((Time(1), 0)));
        alarms.set(1, None);
        assert_eq!((alarms.next_at(), alarms.len()), (None, 0));
    }
}
