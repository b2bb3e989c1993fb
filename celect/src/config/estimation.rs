//! The settings of the estimation of c.

use selvedge_core::settings::{self, Setting};
use selvedge_core::{Ratio, Span};

use super::{ConfigError, Source, is_miss};

/// Settings for the measurement of c. Nodes may differ in all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Estimation {
    /// The source of the estimate. Default [`Source::Sampling`].
    pub source: Source,
    /// The number of known nodes that are asked for their lists: from 1. Default 50.
    pub sample: u16,
    /// The number of nodes that are asked at a time, and of lists in memory: from 1. Default 4.
    pub at_once: u8,
    /// The time between a leader's samples: above zero. Default 60 s. Its first sample begins a
    /// [`Config::timeout`](crate::Config::timeout) after it was elected.
    pub period: Span,
    /// The number of reported runs that give an estimate: 1 to 256. Default 20. The step that takes
    /// the last report has the cost of
    /// [`largest_churn`](crate::estimate::Misses::largest_churn), with the misses of all reports
    /// added up: its time grows with the square of both the pool and the answers. A node that
    /// reports is believed, so keep the pool small in a large mesh.
    pub pool: u16,
    /// The probability that the real c exceeds the bound: from 1 in 1,000,000 to 1 in 2. Default 1
    /// in 100.
    pub miss: Ratio,
    /// The number of lists added to the bound, for changes between a sample and an election: from 0.
    /// Default 1.
    pub margin: u16,
    /// The smallest c to elect with: from 0. Default 1. A node that knows no other node takes no more
    /// than [`Config::missing_from`](crate::Config::missing_from), so that a host can let it elect itself.
    pub floor: u16,
    /// The largest c to elect with, from `floor`. c is also limited to N - 1 - f, where N is the
    /// number of nodes on the list, this node included. Default 65,535. An election with a c that
    /// was cut short is reported without a `miss`.
    pub ceiling: u16,
    /// The number of latest bounds of which the largest is used: from 1. Default 3. So c rises at
    /// once and falls slowly.
    pub window: u8,
    /// The time that a measured c is valid, by a node's own clock, before the node falls back on
    /// [`Config::missing_from`](crate::Config::missing_from): above zero. Should be several times `period`, because
    /// estimates may be lost on the way. Default 5 min.
    pub valid: Span,
}

impl Default for Estimation {
    fn default() -> Self {
        Self::new()
    }
}

impl Estimation {
    /// The defaults.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            source: Source::Sampling,
            sample: 50,
            at_once: 4,
            period: Span::secs(60),
            pool: 20,
            miss: Ratio::new(1, 100),
            margin: 1,
            floor: 1,
            ceiling: u16::MAX,
            window: 3,
            valid: Span::secs(300),
        }
    }

    selvedge_core::with_settings! {
        with_source source: Source,
        with_sample sample: u16,
        with_at_once at_once: u8,
        with_period period: Span,
        with_pool pool: u16,
        with_miss miss: Ratio,
        with_margin margin: u16,
        with_floor floor: u16,
        with_ceiling ceiling: u16,
        with_window window: u8,
        with_valid valid: Span,
    }

    pub(super) const fn check(&self) -> Result<(), ConfigError> {
        let floor = self.floor as u64;
        let ranges = [
            Setting::number("estimation.sample", self.sample as u64, 1, u16::MAX as u64),
            Setting::number("estimation.at_once", self.at_once as u64, 1, u8::MAX as u64),
            Setting::time("estimation.period", self.period, Span(1), Span(u64::MAX)),
            Setting::number("estimation.pool", self.pool as u64, 1, 256),
            Setting::number(
                "estimation.ceiling",
                self.ceiling as u64,
                floor,
                u16::MAX as u64,
            ),
            Setting::number("estimation.window", self.window as u64, 1, u8::MAX as u64),
            Setting::time("estimation.valid", self.valid, Span(1), Span(u64::MAX)),
        ];
        if let Err(outside) = settings::check(&ranges) {
            return Err(ConfigError::Range(outside));
        }
        if is_miss(self.miss) {
            Ok(())
        } else {
            Err(ConfigError::Miss(self.miss))
        }
    }
}
