//! Agreement of this node's list with other lists.

use crate::message::Digest;

/// The number of differing digests in a row, and the time since this list last changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Agreement {
    /// Probes in a row that carried another digest than ours.
    disagreements: u8,
    quiescence: Quiescence,
}

/// The number of periods since our list changed, up to a limit.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
struct Quiescence {
    digest: Digest,
    periods: u8,
}

impl Agreement {
    /// Counts the digest of a probe. Returns true if the lists have to be compared: after
    /// `sync_after` differences in a row, or after one where our list is quiescent. A comparison
    /// resets the count.
    pub(crate) fn note(&mut self, is_equal: bool, sync_after: u8) -> bool {
        if is_equal {
            self.disagreements = 0;
            return false;
        }
        self.disagreements = self.disagreements.saturating_add(1);
        let is_lasting = self.disagreements >= sync_after || self.quiescence.is_long(sync_after);
        if is_lasting {
            *self = Self::default();
        }
        is_lasting
    }

    /// Makes the next difference cause a comparison: a claim that is refused now may be true, and
    /// its sender may not repeat it.
    pub(crate) const fn expect_difference(&mut self) {
        self.disagreements = u8::MAX;
    }

    /// Ends a period.
    pub(crate) fn end_period(&mut self, digest: Digest, sync_after: u8) {
        self.quiescence.end_period(digest, sync_after);
    }
}

impl Quiescence {
    /// News reaches all members in some ln N periods; this multiple of `sync_after` is longer.
    const PATIENCE: u8 = 4;

    const fn limit(sync_after: u8) -> u8 {
        sync_after.saturating_mul(Self::PATIENCE)
    }

    /// Nothing is counted where a single probe causes a comparison anyway.
    fn end_period(&mut self, digest: Digest, sync_after: u8) {
        if sync_after > 1 {
            let periods = if self.digest == digest {
                self.periods.saturating_add(1)
            } else {
                0
            };
            self.periods = periods.min(Self::limit(sync_after));
            self.digest = digest;
        }
    }

    const fn is_long(&self, sync_after: u8) -> bool {
        sync_after > 1 && self.periods >= Self::limit(sync_after)
    }
}
