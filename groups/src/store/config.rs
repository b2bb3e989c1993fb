//! The settings of the maps, at one node.

use selvedge_core::Span;
use selvedge_core::settings::{self, OutOfRange, Setting};

/// The settings of the maps, at one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct StoreConfig {
    /// The time after which a question without an answer is asked again, and after which a leader looks for sessions
    /// that have ended: above zero. A session with a time to live below three times this may lapse. Default 400 ms.
    pub resend: Span,
    /// The limit of own changes that wait, of questions that wait, of entries and of prefixes that this node watches,
    /// of sessions that it keeps alive, for each map, and of maps that it asks in one life: from 1 each. Default 256.
    pub pending: u16,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl StoreConfig {
    /// The defaults.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            resend: Span::millis(400),
            pending: 256,
        }
    }

    selvedge_core::with_settings! {
        with_resend resend: Span,
        with_pending pending: u16,
    }

    /// Checks that these settings can work.
    ///
    /// # Errors
    /// The first field that is out of its range.
    pub const fn check(&self) -> Result<(), OutOfRange> {
        settings::check(&[
            Setting::time("resend", self.resend, Span(1), Span(u64::MAX)),
            Setting::number("pending", self.pending as u64, 1, u16::MAX as u64),
        ])
    }
}
