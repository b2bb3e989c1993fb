//! Whether this node's list and those of others agree.

use crate::message::Digest;

/// How often digests differed in a row, and for how long our own has been as it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Agreement {
    /// Probes in a row that showed another digest than ours.
    disagreements: u8,
    quiescence: Quiescence,
}

/// For how many periods our list has been as it is, up to what matters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
struct Quiescence {
    digest: Digest,
    periods: u8,
}

impl Agreement {
    /// A probe showed a digest. Returns whether the lists are to be compared: after as many
    /// differences in a row as `sync_after`, or after one where our list is quiescent. A comparison
    /// begins the count anew.
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

    /// The next difference is one too many: what is refused now may be true, and its sender may not
    /// say it again.
    pub(crate) const fn expect_difference(&mut self) {
        self.disagreements = u8::MAX;
    }

    /// A period is over.
    pub(crate) fn end_period(&mut self, digest: Digest, sync_after: u8) {
        self.quiescence.end_period(digest, sync_after);
    }
}

impl Quiescence {
    /// News reaches all members in some ln N periods; so many times `sync_after` is longer.
    const PATIENCE: u8 = 4;

    const fn limit(sync_after: u8) -> u8 {
        sync_after.saturating_mul(Self::PATIENCE)
    }

    /// Where a single probe causes a comparison anyway, nothing is counted.
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
