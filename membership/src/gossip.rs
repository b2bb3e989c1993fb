//! The data that waits to be passed on: updates about members, and the application's broadcasts.
//!
//! Both are piggybacked on other messages, a bounded number of times each, newest first and then in
//! turn. The first update comes first, then the first broadcast, then the others: updates with long
//! metadata may fill frames for minutes when many nodes join, and broadcasts do not wait for that.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use selvedge_core::wire::Room;
use selvedge_core::{BoundedQueue, Full, Member, NodeId};

use crate::message::{Broadcast, Message, Record};

/// The members with a waiting update, each once, and the number of times that it was sent. The
/// record itself is read from the list when it is sent, so it is never older than the list.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Updates {
    queue: VecDeque<(NodeId, u16)>,
    limit: usize,
}

impl Updates {
    pub(crate) const fn new(limit: usize) -> Self {
        Self {
            queue: VecDeque::new(),
            limit,
        }
    }

    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Puts an update about `id` in front of the queue. Returns true if another one had to be given
    /// up for it. O(limit).
    pub(crate) fn add(&mut self, id: NodeId) -> bool {
        self.queue.retain(|&(other, _)| other != id);
        self.queue.push_front((id, 0));
        let full = self.queue.len() > self.limit;
        self.queue.truncate(self.limit);
        full
    }

    /// Piggybacks the first `count` records, as far as there is `room` for them; each is sent `copies`
    /// times in all. A record whose metadata is longer than `longest` is given up: it may fit no
    /// message, and then nothing behind it would be sent. O(records that are piggybacked).
    pub(crate) fn load(
        &mut self,
        count: usize,
        message: &mut Message,
        room: &mut Room,
        copies: u16,
        longest: usize,
        record_of: impl Fn(NodeId) -> Option<Record>,
    ) {
        for _ in 0..count {
            let Some((id, sent)) = self.queue.pop_front() else {
                break;
            };
            // Members may have been forgotten since.
            let Some(record) = record_of(id) else {
                continue;
            };
            if record.metadata_len() > longest {
                continue;
            }
            if !room.take(record.encoded_len()) {
                self.queue.push_front((id, sent));
                break;
            }
            // The record that the receiver has to refute was piggybacked first.
            if message.records.first() != Some(&record) {
                message.records.push(record);
            }
            if sent + 1 < copies {
                self.queue.push_back((id, sent + 1));
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.queue.clear();
    }
}

/// The application's broadcasts that wait, each with the number of times it was sent, and the
/// broadcasts that were seen. A broadcast that waits was seen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Broadcasting {
    queue: VecDeque<(Broadcast, u16)>,
    seen: BoundedQueue<(Member, u32)>,
    limit: usize,
    next_number: u32,
}

impl Broadcasting {
    pub(crate) const fn new(limit: usize) -> Self {
        Self {
            queue: VecDeque::new(),
            seen: Self::memory(limit),
            limit,
            next_number: 0,
        }
    }

    /// The memory of seen broadcasts: eight times as many as may wait.
    const fn memory(limit: usize) -> BoundedQueue<(Member, u32)> {
        BoundedQueue::new(limit.saturating_mul(8))
    }

    /// Sets the limits: at most `limit` broadcasts wait, of at most `longest` bytes each. Longer
    /// ones are given up; returns their number. O(limit).
    pub(crate) fn set_limits(&mut self, limit: usize, longest: usize) -> u64 {
        self.limit = limit;
        let mut seen = Self::memory(limit);
        for &id in self.seen.iter() {
            seen.push_over(id);
        }
        self.seen = seen;
        let before = self.queue.len();
        self.queue
            .retain(|(broadcast, _)| broadcast.payload.len() <= longest);
        (before - self.queue.len()) as u64
    }

    /// Starts a broadcast of our own.
    pub(crate) fn start(&mut self, origin: Member, payload: Box<[u8]>) -> Result<(), Full> {
        if self.queue.len() >= self.limit {
            return Err(Full { limit: self.limit });
        }
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        self.seen.push_over((origin, number));
        self.queue.push_front((
            Broadcast {
                origin,
                number,
                payload,
            },
            0,
        ));
        Ok(())
    }

    /// Takes in a broadcast. Returns whether it is new to us, and whether another had to be given
    /// up for it. O(limit).
    pub(crate) fn receive(&mut self, broadcast: &Broadcast) -> (bool, bool) {
        let id = (broadcast.origin, broadcast.number);
        if self.limit == 0 || self.seen.iter().any(|&seen| seen == id) {
            return (false, false);
        }
        self.seen.push_over(id);
        self.queue.push_front((broadcast.clone(), 0));
        let full = self.queue.len() > self.limit;
        self.queue.truncate(self.limit);
        (true, full)
    }

    /// Piggybacks the first `count` broadcasts, as far as there is `room` for them; each is sent
    /// `copies` times in all.
    pub(crate) fn load(
        &mut self,
        count: usize,
        message: &mut Message,
        room: &mut Room,
        copies: u16,
    ) {
        for _ in 0..count {
            let Some((broadcast, sent)) = self.queue.pop_front() else {
                break;
            };
            if !room.take(broadcast.encoded_len()) {
                self.queue.push_front((broadcast, sent));
                break;
            }
            if sent + 1 < copies {
                message.broadcasts.push(broadcast.clone());
                self.queue.push_back((broadcast, sent + 1));
            } else {
                message.broadcasts.push(broadcast);
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.queue.clear();
    }
}
