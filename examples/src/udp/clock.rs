//! The one place that reads a clock.

use selvedge_core::Time;
use tokio::time::Instant;

/// A host's clock. Hosts that share one can compare their times.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// A clock that starts now.
    #[must_use]
    #[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
    pub fn start() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    /// How late it is.
    #[must_use]
    pub fn now(&self) -> Time {
        Time::since_start(self.start.elapsed())
    }

    /// When a moment of this clock comes; a far one counts as a year from the start.
    #[must_use]
    pub fn instant(&self, time: Time) -> Instant {
        const YEAR: u64 = 365 * 24 * 3_600 * 1_000_000;
        self.start + core::time::Duration::from_micros(time.0.min(YEAR))
    }
}
