//! The clock of a host.

use selvedge_core::Time;
use tokio::time::Instant;

/// A clock of a host. Hosts that share one can compare their times.
///
/// It is [`std::time::Instant`]: it continues while the process is stopped. On Linux and macOS it
/// stands still while the machine is suspended, which leases of leaders do not survive.
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

    /// The present time.
    #[must_use]
    pub fn now(&self) -> Time {
        Time::since_start(self.start.elapsed())
    }

    /// The moment of a time of this clock; a time in the far future counts as a year from the
    /// start.
    #[must_use]
    pub fn instant(&self, time: Time) -> Instant {
        const YEAR: u64 = 365 * 24 * 3_600 * 1_000_000;
        self.start + core::time::Duration::from_micros(time.0.min(YEAR))
    }
}
