//! The settings of the estimation of c.

use selvedge_core::settings::{self, Setting};
use selvedge_core::{Ratio, Span};

use super::{ConfigError, Source, is_miss};

/// How c is measured and used. Nodes may differ in all these settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Estimation {
    /// What the estimate comes from. Default [`Source::Sampling`].
    pub source: Source,
    /// How many of the known nodes are asked for their lists: from 1. Default 50.
    pub sample: u16,
    /// How many of them are asked at a time: from 1. So many lists are in memory. Default 4.
    pub at_once: u8,
    /// How long a leader waits between samples: above zero. Default 60 s. Its first sample begins a
    /// [`Config::timeout`](crate::Config::timeout) after it was elected.
    pub period: Span,
    /// How many runs are reported before they give an estimate: 1 to 256. Default 20. The step that
    /// takes the last report costs as [`largest_churn`](crate::estimate::Misses::largest_churn)
    /// says, with the misses of all reports added up: its time grows with the square of both the
    /// pool and the answers. A node that reports is believed, so keep the pool small in a large
    /// mesh.
    pub pool: u16,
    /// How often the real c may exceed the bound: above 0, from 1 in 1,000,000 to 1 in 2. Default 1
    /// in 100.
    pub miss: Ratio,
    /// What is added to the bound, in lists: from 0, for what changes between a sample and an
    /// election. Default 1.
    pub margin: u16,
    /// The least c to elect with: from 0. Default 1. A node that knows no other node takes no more
    /// than [`Config::c`](crate::Config::c), so that a host can let it elect itself.
    pub floor: u16,
    /// The largest c to elect with, from `floor`. c is also kept to N - 1 - f, with as many nodes
    /// as are known. Default 65,535. An election with a c that was cut short is told of without a
    /// confidence.
    pub ceiling: u16,
    /// How many of the latest bounds count: the largest of them is used. From 1. Default 3. So c
    /// rises at once and falls slowly.
    pub window: u8,
    /// How long a measured c serves, by a node's own clock, before the node falls back on
    /// [`Config::c`](crate::Config::c): above zero. Should be several times `period`, because what
    /// is told may be lost. Default 5 min.
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
