//! Comparing whole lists: a two-byte digest on every probe, and pages where lists stay different.

use selvedge_core::{Context, Member};

use crate::digest::bucket_range;
use crate::message::{BUCKETS, Body, Digest, Key, Message};
use crate::{Membership, Phase};

/// How many differing buckets are sent in answer to one message: bounds what a question can cause.
const BUCKETS_AT_ONCE: usize = 4;

/// For how long our list has been as it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Rest {
    digest: Digest,
    periods: u8,
}

impl Rest {
    /// News reaches all in some ln N periods; so many times `sync_after` is longer.
    const PATIENCE: u8 = 4;

    /// A period is over. Where a single probe causes a comparison anyway, nothing is counted.
    pub(crate) fn end_period(&mut self, digest: Digest, sync_after: u8) {
        if sync_after > 1 {
            let same = self.digest == digest;
            self.periods = if same {
                self.periods.saturating_add(1)
            } else {
                0
            };
            self.periods = self.periods.min(sync_after.saturating_mul(Self::PATIENCE));
            self.digest = digest;
        }
    }

    fn is_long(&self, sync_after: u8) -> bool {
        sync_after > 1 && self.periods >= sync_after.saturating_mul(Self::PATIENCE)
    }
}

impl Membership {
    /// A probe showed its sender's digest. Lists differ while news travels; only when they stay
    /// different are they compared: when probes in a row say so, or one does long after our list
    /// has come to rest. A row alone would not do. Of two nodes that are far from all others, each
    /// is mostly probed by the other, which missed the same news and agrees.
    pub(crate) fn compare_digests(
        &mut self,
        from: Member,
        digest: Digest,
        cx: &mut Context<'_, Self>,
    ) {
        if self.config.sync_after == 0 || self.phase != Phase::Joined || self.fetch.is_some() {
            return;
        }
        if digest == self.list.digest() {
            self.disagreements = 0;
            return;
        }
        self.disagreements = self.disagreements.saturating_add(1);
        if self.disagreements >= self.config.sync_after || self.rest.is_long(self.config.sync_after)
        {
            self.disagreements = 0;
            self.rest = Rest::default();
            self.counters.syncs += 1;
            let buckets = self.list.bucket_digests();
            cx.send(from, Message::bare(Body::Digests { buckets }));
        }
    }

    /// Sends our records of some of the buckets that differ, and asks for theirs.
    pub(crate) fn send_differences(
        &mut self,
        to: Member,
        theirs: &[Digest; BUCKETS],
        cx: &mut Context<'_, Self>,
    ) {
        if self.phase != Phase::Joined {
            return;
        }
        let ours = self.list.bucket_digests();
        // Not always the same ones first: with lists of long buckets each turn fits only some.
        let start = usize::from(self.period);
        let differing = (0..BUCKETS)
            .map(|nth| (start + nth) % BUCKETS)
            .filter(|&bucket| ours.get(bucket) != theirs.get(bucket));
        for bucket in differing.take(BUCKETS_AT_ONCE) {
            let (first, last) = bucket_range(bucket);
            self.send_page(to, first, last, true, cx);
        }
    }

    /// Sends a page of our records of a range.
    pub(crate) fn send_page(
        &mut self,
        to: Member,
        first: Key,
        last: Key,
        exchange: bool,
        cx: &mut Context<'_, Self>,
    ) {
        let page = |next| Body::Records {
            first,
            last,
            next,
            exchange,
        };
        self.send_list(to, (first, last), page, cx);
    }

    /// Fills one frame with our records from `first` to `last`; `page` makes the body, given where
    /// the next page begins. O(records in the frame + log N).
    pub(crate) fn send_list(
        &mut self,
        to: Member,
        (first, last): (Key, Key),
        page: impl Fn(Option<Key>) -> Body,
        cx: &mut Context<'_, Self>,
    ) {
        let mut message = Message::bare(page(Some(last)));
        let mut room = self.room(&message);
        let longest = usize::from(self.config.metadata_limit);
        let mut next = None;
        for (key, slot) in self.list.starting_at(first) {
            if key > last {
                break;
            }
            let Some(record) = self.list.full_record(slot, self.burial_clock()) else {
                continue;
            };
            // Metadata from a time of larger budgets may fit no frame, and peers refuse it.
            if record.metadata_len() > longest {
                continue;
            }
            if !room.take(record.encoded_len()) {
                debug_assert!(!message.records.0.is_empty(), "one record fits every page");
                next = Some(key);
                break;
            }
            message.records.0.push(record);
        }
        message.body = page(next);
        cx.send(to, message);
    }

    /// A page came; its records are merged already.
    pub(crate) fn take_page(
        &mut self,
        from: Member,
        (first, last): (Key, Key),
        next: Option<Key>,
        exchange: bool,
        cx: &mut Context<'_, Self>,
    ) {
        if exchange {
            self.send_page(from, first, last, false, cx);
        }
        if let Some(next) = next.filter(|&next| next > first && next <= last) {
            let first = next;
            cx.send(from, Message::bare(Body::Pull { first, last }));
        }
    }
}
