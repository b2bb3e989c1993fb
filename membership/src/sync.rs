//! Comparing whole lists: a two-byte digest on every probe, and pages where lists stay different.

use selvedge_core::{Context, Member};

use crate::Membership;
use crate::digest::bucket_range;
use crate::message::{BUCKETS, Body, Digest, Key, Message};

/// The largest number of differing buckets that are sent in answer to one message: bounds the cost
/// of a question.
const BUCKETS_AT_ONCE: usize = 4;

impl Membership {
    /// Compares our digest with the digest on a probe. Lists differ while news spreads; the lists
    /// are compared only when they stay different: when probes in a row differ, or one does long
    /// after our list last changed. Probes in a row would not be enough: of two nodes that are far
    /// from all others, each is mostly probed by the other, which missed the same news and agrees.
    pub(crate) fn compare_digests(
        &mut self,
        from: Member,
        digest: Digest,
        cx: &mut Context<'_, Self>,
    ) {
        // Switched off, or this list is not whole yet.
        if self.config.sync_after == 0 || !self.presence.is_joined() || self.bootstrap.is_fetching()
        {
            return;
        }
        let is_equal = digest == self.list.digest();
        if self.agreement.note(is_equal, self.config.sync_after) {
            self.counters.syncs += 1;
            let buckets = self.list.bucket_digests();
            cx.send(from, Message::bare(Body::Digests { buckets }));
        }
    }

    /// Takes the digests of another list: sends our records of some of the buckets that differ, and
    /// asks for theirs.
    pub(crate) fn on_digests(
        &mut self,
        to: Member,
        theirs: &[Digest; BUCKETS],
        cx: &mut Context<'_, Self>,
    ) {
        // A node that is leaving compares nothing.
        if !self.presence.is_joined() {
            return;
        }
        let ours = self.list.bucket_digests();
        // Not always the same buckets first: with lists of long buckets each turn fits only some.
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

    /// Fills one frame with our records from `first` to `last`; `page` makes the body, given the
    /// start of the next page. O(records in the frame + log N).
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
            let Some(record) = self.list.full_record(slot, self.tombstone_clock()) else {
                continue;
            };
            // Metadata from a time of larger budgets may fit no frame, and peers refuse it.
            if record.metadata_len() > longest {
                continue;
            }
            if !room.take(record.encoded_len()) {
                debug_assert!(!message.records.is_empty(), "one record fits every page");
                next = Some(key);
                break;
            }
            message.records.push(record);
        }
        message.body = page(next);
        cx.send(to, message);
    }

    /// Takes a page of another list; its records are merged already.
    pub(crate) fn on_records(
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
