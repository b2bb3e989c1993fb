//! Entries in flight, with the length of each.
//!
//! All of them fit into one frame, so a member takes a ballot over with all entries that its leader
//! adopted, and entries need no ballots of their own, as Raft's need terms. The price is that a
//! frame, and not a number, bounds the updates in flight.

use alloc::collections::VecDeque;

use serde::Serialize;

use crate::Entry;
use crate::encoding::encoded_len;

/// The entries that are accepted and not known to be committed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tail<U> {
    entries: VecDeque<(Entry<U>, usize)>,
    /// The sum of the lengths.
    encoded_len: usize,
}

impl<U> Tail<U> {
    pub(crate) const fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            encoded_len: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn back(&self) -> Option<&Entry<U>> {
        self.entries.back().map(|it| &it.0)
    }

    /// The entries behind the first `skipped` ones.
    pub(crate) fn behind(&self, skipped: usize) -> impl DoubleEndedIterator<Item = &Entry<U>> {
        let skipped = skipped.min(self.entries.len());
        self.entries.range(skipped..).map(|it| &it.0)
    }

    /// The bytes that all of them take in a frame.
    pub(crate) const fn encoded_len(&self) -> usize {
        self.encoded_len
    }

    pub(crate) fn pop_front(&mut self) -> Option<Entry<U>> {
        let (entry, len) = self.entries.pop_front()?;
        self.encoded_len -= len;
        Some(entry)
    }

    pub(crate) fn forget(&mut self, count: usize) {
        let forgotten = self.entries.drain(..count.min(self.entries.len()));
        self.encoded_len -= forgotten.map(|it| it.1).sum::<usize>();
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.encoded_len = 0;
    }
}

impl<U: Serialize> Tail<U> {
    /// Appends an entry, if all behind `skipped` and this one take no more than `room`.
    pub(crate) fn push(&mut self, entry: Entry<U>, skipped: usize, room: usize) -> bool {
        let len = encoded_len(&entry);
        let before: usize = self.entries.iter().take(skipped).map(|it| it.1).sum();
        let fits = self.encoded_len - before + len <= room;
        if fits {
            self.entries.push_back((entry, len));
            self.encoded_len += len;
        }
        fits
    }
}
