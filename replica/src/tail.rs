//! Entries on their way, with the length of each.

use alloc::collections::VecDeque;

use serde::Serialize;

use crate::Entry;
use crate::encoding::encoded_len;

/// What is accepted and not known to be committed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tail<U> {
    entries: VecDeque<(Entry<U>, usize)>,
}

impl<U> Tail<U> {
    pub(crate) const fn new() -> Self {
        Self {
            entries: VecDeque::new(),
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

    /// What those take in a frame.
    pub(crate) fn len_behind(&self, skipped: usize) -> usize {
        let skipped = skipped.min(self.entries.len());
        self.entries.range(skipped..).map(|it| it.1).sum()
    }

    pub(crate) fn pop_front(&mut self) -> Option<Entry<U>> {
        self.entries.pop_front().map(|it| it.0)
    }

    pub(crate) fn forget(&mut self, count: usize) {
        self.entries.drain(..count.min(self.entries.len()));
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }
}

impl<U: Serialize> Tail<U> {
    /// Appends an entry, if all behind `skipped` and this one take no more than `room`.
    pub(crate) fn push(&mut self, entry: Entry<U>, skipped: usize, room: usize) -> bool {
        let len = encoded_len(&entry);
        let fits = self.len_behind(skipped).saturating_add(len) <= room;
        if fits {
            self.entries.push_back((entry, len));
        }
        fits
    }
}
