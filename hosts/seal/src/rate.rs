//! The limit on the datagrams of one sender.

use selvedge_core::Time;

/// A limit for each sender: the datagrams a second in the long run, and the datagrams at once. Both are at
/// least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Datagrams a second.
    pub per_second: u32,
    /// Datagrams at once.
    pub burst: u32,
}

/// The allowance of a sender, in millionths of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bucket {
    level: u64,
    at: Time,
}

/// The value of one datagram.
const ONE: u64 = 1_000_000;

impl Bucket {
    pub(super) fn full(limit: RateLimit, now: Time) -> Self {
        Self {
            level: u64::from(limit.burst.max(1)) * ONE,
            at: now,
        }
    }

    /// Takes one datagram from the allowance; returns false if the allowance is too small.
    pub(super) fn take(&mut self, limit: RateLimit, now: Time) -> bool {
        // Microseconds times datagrams a second are millionths of datagrams.
        let grown = now.since(self.at).0.saturating_mul(limit.per_second.into());
        let most = u64::from(limit.burst.max(1)) * ONE;
        self.level = self.level.saturating_add(grown).min(most);
        self.at = self.at.max(now);
        let Some(rest) = self.level.checked_sub(ONE) else {
            return false;
        };
        self.level = rest;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_core::Span;

    #[test]
    fn a_burst_and_then_the_rate() {
        let limit = RateLimit {
            per_second: 10,
            burst: 3,
        };
        let mut now = Time(5_000_000);
        let mut bucket = Bucket::full(limit, now);
        let mut passed = |now, times: u32| (0..times).filter(|_| bucket.take(limit, now)).count();
        assert_eq!(passed(now, 10), 3);
        now = now + Span::millis(99);
        assert_eq!(passed(now, 10), 0);
        now = now + Span::millis(1);
        assert_eq!(passed(now, 10), 1);
        assert_eq!(passed(Time(0), 10), 0, "time that steps back gives nothing");
        now = now + Span::secs(3_600);
        assert_eq!(passed(now, 10), 3);
    }
}
