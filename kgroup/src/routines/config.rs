//! Settings of a routine's leader.

use selvedge_core::Span;
use selvedge_core::settings::{self, OutOfRange, Setting};

/// The settings of the leaders of routines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct RoutineConfig {
    /// The wait for an answer before a question is asked again: above zero. Default 400 ms.
    pub resend: Span,
    /// The shortest wait after a first optimistic try that found a device held, before the next
    /// try: above zero. It doubles with each try; each wait is drawn at random between this and
    /// twice as long. Default 200 ms.
    pub backoff: Span,
    /// The limit of the doubling: from `backoff`. Default 10 s. The next leader begins with the first wait, so
    /// with [`Locking::Optimistic`](super::Locking::Optimistic) take less than an epoch: else a run that finds its
    /// devices held in each epoch may not go on.
    pub backoff_most: Span,
}

impl Default for RoutineConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl RoutineConfig {
    /// The defaults.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            resend: Span::millis(400),
            backoff: Span::millis(200),
            backoff_most: Span::secs(10),
        }
    }

    selvedge_core::with_settings! {
        with_resend resend: Span,
        with_backoff backoff: Span,
        with_backoff_most backoff_most: Span,
    }

    /// Checks that these settings can work.
    ///
    /// # Errors
    /// The first field that is out of its range.
    pub const fn check(&self) -> Result<(), OutOfRange> {
        let most = Span(u64::MAX / 2);
        settings::check(&[
            Setting::time("resend", self.resend, Span(1), most),
            Setting::time("backoff", self.backoff, Span(1), most),
            Setting::time("backoff_most", self.backoff_most, self.backoff, most),
        ])
    }

    /// The shortest wait before this try.
    pub(super) fn wait_before(&self, attempt: u32) -> Span {
        let doublings = attempt.saturating_sub(2);
        let factor = 1_u64.checked_shl(doublings).unwrap_or(u64::MAX);
        Span(self.backoff.0.saturating_mul(factor)).min(self.backoff_most)
    }
}
