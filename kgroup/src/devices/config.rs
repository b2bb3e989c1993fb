//! The settings, with their units and ranges.

use selvedge_core::Span;
use selvedge_core::settings::{self, OutOfRange, Setting};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The amount of state for each device. It is part of the state, for all members must refuse the
/// same updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Limits {
    /// The most claims that wait for a device: from 0. A claim that finds no room is refused
    /// as if it did not wait. Default 64.
    pub queue: u16,
    /// The most routines that ever ask for a device: from 1. Each is remembered for good (20
    /// bytes or so), and a further one never gets the device. Default 256.
    pub routines: u16,
    /// The most routines that watch a device: from 0. Default 64.
    pub watchers: u16,
    /// The longest state that a device reports or is set to, in bytes: from 1. Default 64.
    pub word: u16,
}

impl Default for Limits {
    fn default() -> Self {
        Self::new()
    }
}

impl Limits {
    /// The defaults.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            queue: 64,
            routines: 256,
            watchers: 64,
            word: 64,
        }
    }

    selvedge_core::with_settings! {
        with_queue queue: u16,
        with_routines routines: u16,
        with_watchers watchers: u16,
        with_word word: u16,
    }

    /// Checks that these limits can work.
    ///
    /// # Errors
    /// The first field that is out of its range.
    pub const fn check(&self) -> Result<(), OutOfRange> {
        let most = u16::MAX as u64;
        settings::check(&[
            Setting::number("routines", self.routines as u64, 1, most),
            Setting::number("word", self.word as u64, 1, most).counts("bytes"),
        ])
    }
}

/// The settings of a cluster's leader. Nodes may differ in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Config {
    /// The period of pings to each device: above [`ping_timeout`](Self::ping_timeout). Default 1 s,
    /// as in the paper (section 6).
    pub ping: Span,
    /// The time that an answer to a ping may take: above zero; two round trips to the device
    /// (section 4.1). Default 200 ms.
    pub ping_timeout: Span,
    /// The number of unanswered pings in a row after which a device counts as down: from 1. One that
    /// [sleeps](super#devices-that-sleep) is down after so many wake intervals and one more without a report.
    /// Default 1, as in the paper.
    pub misses: u8,
    /// The wait for a routine to confirm a status, and for the group to decide on a report, before
    /// it is sent again: above zero. Default 500 ms.
    pub resend: Span,
    /// The longest time between two transmissions of a status: from `resend`. The time doubles from
    /// `resend` on while the routine does not confirm. Default 30 s.
    pub resend_most: Span,
    /// The time that a device may take for a command: above zero. It should cover the longest time
    /// for which a command may act late, in a queue or a stack that retries: the device is passed
    /// on then. When another leader takes over, the device is held for twice as long, for the host
    /// of the former one may have the command. Equal on all nodes. Default 3 s.
    pub act_timeout: Span,
}

/// The reason why settings cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A number is out of its range.
    #[error(transparent)]
    Range(#[from] OutOfRange),
    /// The next ping is sent before the last one is overdue.
    #[error("ping is {ping:?} and ping_timeout is {ping_timeout:?}: set ping to more")]
    Ping {
        /// The period of pings.
        ping: Span,
        /// The time that an answer may take.
        ping_timeout: Span,
    },
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

impl Config {
    /// The defaults.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            ping: Span::secs(1),
            ping_timeout: Span::millis(200),
            misses: 1,
            resend: Span::millis(500),
            act_timeout: Span::secs(3),
            resend_most: Span::secs(30),
        }
    }

    selvedge_core::with_settings! {
        with_ping ping: Span,
        with_ping_timeout ping_timeout: Span,
        with_misses misses: u8,
        with_resend resend: Span,
        with_resend_most resend_most: Span,
        with_act_timeout act_timeout: Span,
    }

    /// Checks that these settings can work.
    ///
    /// # Errors
    /// The first field that is out of its range, or [`ConfigError::Ping`].
    pub const fn check(&self) -> Result<(), ConfigError> {
        let most = Span(u64::MAX);
        let ranges = settings::check(&[
            Setting::time("ping_timeout", self.ping_timeout, Span(1), most),
            Setting::number("misses", self.misses as u64, 1, u8::MAX as u64),
            Setting::time("resend", self.resend, Span(1), most),
            Setting::time("resend_most", self.resend_most, self.resend, most),
            Setting::time("act_timeout", self.act_timeout, Span(1), most),
        ]);
        if let Err(range) = ranges {
            return Err(ConfigError::Range(range));
        }
        if self.ping.0 <= self.ping_timeout.0 {
            return Err(ConfigError::Ping {
                ping: self.ping,
                ping_timeout: self.ping_timeout,
            });
        }
        Ok(())
    }
}
