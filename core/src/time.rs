//! Time as a host gives it. Nothing here reads a clock.

use core::fmt;
use core::ops::{Add, Mul, Sub};
use core::time::Duration;

// `std::time::Instant` needs std and cannot be made from a number. 64 bits of microseconds last 584,000
// years. Arithmetic saturates, so that a length from a hostile peer cannot panic.

/// A moment on one node's monotonic clock, in microseconds since a start of the host's choosing.
///
/// Moments of two nodes must not be compared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub u64);

/// A length of time in microseconds. Arithmetic saturates.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Span(pub u64);

impl Time {
    /// The start of a host's clock.
    pub const ZERO: Self = Self(0);

    /// The moment that lies `since_start` after the start of the host's clock.
    #[must_use]
    pub fn since_start(since_start: Duration) -> Self {
        Self(Span::from(since_start).0)
    }

    /// The time from `earlier` to this moment; zero when it is not after `earlier`.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// A span of zero.
    pub const ZERO: Self = Self(0);

    /// A span in microseconds.
    #[must_use]
    pub const fn micros(micros: u64) -> Self {
        Self(micros)
    }

    /// A span in milliseconds.
    #[must_use]
    pub const fn millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    /// A span in seconds.
    #[must_use]
    pub const fn secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000))
    }
}

impl From<Duration> for Span {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
    }
}

impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        Self::from_micros(span.0)
    }
}

impl Add<Span> for Time {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Span {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Mul<u64> for Span {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{:?}", Duration::from_micros(self.0))
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", Duration::from_micros(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Time(u64::MAX) + Span(1), Time(u64::MAX));
        assert_eq!(Time(3).since(Time(5)), Span::ZERO);
        assert_eq!(Span::secs(u64::MAX), Span(u64::MAX));
        assert_eq!(Span::from(Duration::MAX), Span(u64::MAX));
        assert_eq!(Span(2) - Span(3), Span::ZERO);
    }
}
