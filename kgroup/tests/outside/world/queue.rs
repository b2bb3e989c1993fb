//! Events to come, in the order of their times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use selvedge_core::NodeId;

use super::Ev;

/// Events are large, so the heap moves their slots alone.
#[derive(Default)]
pub(super) struct Queue {
    /// The time, the number of the event, its slot.
    heap: BinaryHeap<Reverse<(u64, u64, usize)>>,
    slots: Vec<Option<Ev>>,
    vacant: Vec<usize>,
    events: u64,
    /// The time and the slot of the event that was added last.
    last: (u64, usize),
}

impl Queue {
    /// Events of one time come in the order in which they were added.
    pub(super) fn push(&mut self, at: u64, ev: Ev) {
        self.events += 1;
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(ev);
        self.last = (at, slot);
        self.heap.push(Reverse((at, self.events, slot)));
    }

    /// Adds alarms of a node. It has many at one time, and most of them find nothing due. Each counts, as a node
    /// that sleeps draws for each.
    pub(super) fn push_wake(&mut self, at: u64, node: NodeId, life: u32, times: u64) {
        if let Some(Some(Ev::Wake {
            node: of,
            life: in_life,
            times: before,
        })) = self.slots.get_mut(self.last.1)
            && (self.last.0, *of, *in_life) == (at, node, life)
        {
            *before += times;
            return;
        }
        self.push(at, Ev::Wake { node, life, times });
    }

    /// The first event that is due at `until`, with its time.
    pub(super) fn pop(&mut self, until: u64) -> Option<(u64, Ev)> {
        let Reverse((at, _, slot)) = *self.heap.peek()?;
        if at > until {
            return None;
        }
        self.heap.pop();
        self.vacant.push(slot);
        Some((at, self.slots[slot].take()?))
    }
}
