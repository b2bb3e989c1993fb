//! The duty cycle of a follower.

use selvedge_core::Span;
use selvedge_core::settings::{self, OutOfRange, Setting};
use serde::{Deserialize, Serialize};

/// The periodic phases of a follower: it can be used, it does work of its own, it sleeps (PCM, Figure 2).
/// Together at least 1 ms, and at most [`PERIOD_MAX`](Self::PERIOD_MAX).
///
/// It must not be combined with the `DutyCycle` of `selvedge_sim::network`: that one loses messages to a node
/// that sleeps, and PCM needs them kept in a mailbox, as [`WithMailbox`](crate::node::WithMailbox) does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct DutyCycle {
    /// The time in which it can be used, in ms.
    pub active_ms: u32,
    /// The time in which it does work of its own, in ms.
    pub busy_ms: u32,
    /// The time in which it sleeps, in ms.
    pub asleep_ms: u32,
}

impl DutyCycle {
    /// The longest cycle: 120 s.
    pub const PERIOD_MAX: Span = Span::secs(120);

    /// A follower that can always be used, and sends a keep-alive each second.
    #[must_use]
    pub const fn always() -> Self {
        Self {
            active_ms: 1_000,
            busy_ms: 0,
            asleep_ms: 0,
        }
    }

    /// The length of the cycle.
    #[must_use]
    pub const fn period(self) -> Span {
        Span::millis(self.period_ms())
    }

    const fn period_ms(self) -> u64 {
        self.active_ms as u64 + self.busy_ms as u64 + self.asleep_ms as u64
    }

    /// The share of its time in which it can be used, in parts per million, rounded down.
    #[must_use]
    pub const fn availability(self) -> u32 {
        let parts = self.active_ms as u64 * MILLION;
        match parts.checked_div(self.period_ms()) {
            Some(share) => share as u32,
            None => 0,
        }
    }

    /// Checks that the cycle is possible.
    ///
    /// # Errors
    /// Its period, if that is out of its range.
    pub const fn check(self) -> Result<(), OutOfRange> {
        let period = Setting::time(
            "active, busy and asleep together",
            self.period(),
            Span::millis(1),
            Self::PERIOD_MAX,
        );
        settings::check(&[period])
    }
}

const MILLION: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;

    const fn cycle(active_ms: u32, busy_ms: u32, asleep_ms: u32) -> DutyCycle {
        DutyCycle {
            active_ms,
            busy_ms,
            asleep_ms,
        }
    }

    #[test]
    fn availability_is_the_share_of_time_for_others() {
        assert_eq!(DutyCycle::always().availability(), 1_000_000);
        assert_eq!(cycle(1_000, 2_000, 7_000).availability(), 100_000);
        assert_eq!(cycle(1, 1, 1).availability(), 333_333);
        assert_eq!(cycle(0, 0, 5).availability(), 0);
        assert_eq!(cycle(0, 0, 0).availability(), 0);
        let all = cycle(u32::MAX, u32::MAX, u32::MAX);
        assert_eq!(all.availability(), 333_333);
    }

    #[test]
    fn a_cycle_has_a_length_and_ends_within_two_minutes() {
        assert_eq!(cycle(100_000, 10_000, 10_000).check(), Ok(()));
        assert_eq!(cycle(0, 0, 1).check(), Ok(()));
        let none = cycle(0, 0, 0).check().unwrap_err();
        assert_eq!(
            none.to_string(),
            "active, busy and asleep together is 0 us: set it to 1000 us or more, up to 120000000 us",
        );
        assert!(cycle(100_000, 10_000, 10_001).check().is_err());
        assert!(cycle(u32::MAX, u32::MAX, u32::MAX).check().is_err());
    }
}
