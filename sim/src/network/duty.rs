//! Nodes that sleep.

use selvedge_core::{Span, Time};

use super::NetworkError;

/// A node that is awake for the first part of every period, and sleeps through the rest.
///
/// A node that is asleep receives no message, and its timers wait until it wakes. Commands of its
/// application are handled at once: the application woke it. It still relays messages of other
/// nodes.
///
/// It must not be combined with the `DutyCycle` of `selvedge_pcm`: a follower of PCM sleeps by its own
/// timers, and needs messages to it kept in a mailbox (`selvedge_pcm::node::WithMailbox`), not lost.
///
/// ```
/// use selvedge_core::{Span, Time};
/// use selvedge_sim::network::DutyCycle;
/// let cycle = DutyCycle { period: Span::secs(10), awake: Span::secs(1), offset: Span::ZERO };
/// let noon = Time(12_000_000);
/// assert!(!cycle.is_awake(noon));
/// assert_eq!(cycle.awake_from(noon), Time(20_000_000));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DutyCycle {
    /// The length of a period.
    pub period: Span,
    /// The time that a node is awake in each period. With a whole period or more it never sleeps.
    pub awake: Span,
    /// When the first period begins. Before that, periods run too: only the offset within a
    /// period counts.
    pub offset: Span,
}

impl DutyCycle {
    /// Returns true if the node is awake `at` this time.
    #[must_use]
    pub const fn is_awake(&self, at: Time) -> bool {
        self.within(at) < self.awake.0
    }

    /// The first moment from `at` on at which the node is awake.
    #[must_use]
    pub fn awake_from(&self, at: Time) -> Time {
        if self.is_awake(at) {
            return at;
        }
        at + Span(self.period.0.saturating_sub(self.within(at)))
    }

    pub(super) fn check(&self) -> Result<(), NetworkError> {
        if self.period == Span::ZERO || self.awake == Span::ZERO {
            return Err(NetworkError::NeverAwake {
                awake: self.awake,
                period: self.period,
            });
        }
        Ok(())
    }

    /// The time from the beginning of the period to `at`.
    const fn within(&self, at: Time) -> u64 {
        let Some(offset) = self.offset.0.checked_rem(self.period.0) else {
            return 0;
        };
        let (into, period) = (at.0 % self.period.0, self.period.0);
        if into >= offset {
            into - offset
        } else {
            period - offset + into
        }
    }
}
