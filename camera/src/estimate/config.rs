//! The settings.

use selvedge_core::settings::{self, OutOfRange, Setting};
use selvedge_core::{Ratio, Span};
use thiserror::Error;

use super::bound::MOST_NODES;

/// The settings of one node. Checked once, by [`Estimator::new`](super::Estimator::new).
///
/// All but `hop_limit` and `neighbour_limit` matter only to the node that asks, so nodes of one
/// mesh may differ; a node's `hop_limit` should not be below the `hop_limit` of the nodes that ask.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Config {
    /// The share of estimates in which N may exceed the upper bound: from 1 in 100,000 to 1 in 2.
    /// Default 1 in 1,000.
    pub miss: Ratio,
    /// The excess over 1 / N with which a node may be drawn, as a share of 1 / N; the upper bound
    /// is raised by this share: 0 to 1. Default 1 in 50: more than the unevenness caused by lists
    /// that miss a quarter of 49 members at random, see the [module](super).
    pub skew: Ratio,
    /// The number of hits after which to stop, the paper's l: 1 to 255. The relative variance is about
    /// 1 / `hits`, less with long lists. Default 64: the upper bound is then about 1.1 N with
    /// complete lists, 1.2 N with lists of nine tenths, 1.4 N with nearly empty lists.
    pub hits: u8,
    /// The number of samples after which to stop in any case: from `hits` to 16,384. With an empty list about
    /// sqrt(2 hits N) are needed. Default 4,096, enough for N = 131,072.
    pub sample_limit: u16,
    /// True if the collection begins with this node's own list. Default true. The paper begins with
    /// an empty collection, and so should a node that did not learn its list from the overlay of the
    /// walks.
    pub count_known: bool,
    /// The mean number of hops of a walk, if degrees are alike: 4 to 1,024. The number that is needed
    /// depends on the overlay, see the [module](super). Default 8: for lists that hold most of the
    /// members. (From 4 on a walk always leaves home.)
    pub length: u16,
    /// The number of hops that a walk may take: from twice the `length`. A walk with a length of 8
    /// takes more than 23 hops once in a million times, if degrees are alike. Default 64.
    pub hop_limit: u16,
    /// The number of walks under way at once: 1 to 64. Up to this many are wasted when an estimate
    /// ends. Default 8: core keeps up to eight timers in a row, without a heap.
    pub at_once: u8,
    /// The time after which a walk is started again: above the time that `length` hops and the answer usually
    /// take. An answer that comes later is still taken. Default 1 s (20 hops of 50 ms).
    pub timeout: Span,
    /// The number of restarts in a row, with no sample between them, after which an estimate is given
    /// up: at least one. Default 64: with one message in ten lost, 4 of 10 walks are answered, and
    /// 64 in a row fail once in 10^14 times.
    pub patience: u16,
    /// The number of neighbours that can be remembered: 1 to 2^20. Default 4,096.
    pub neighbour_limit: u32,
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
            miss: Ratio::new(1, 1_000),
            skew: Ratio::new(1, 50),
            hits: 64,
            sample_limit: 4_096,
            count_known: true,
            length: 8,
            hop_limit: 64,
            at_once: 8,
            timeout: Span::secs(1),
            patience: 64,
            neighbour_limit: 4_096,
        }
    }

    selvedge_core::with_settings! {
        with_miss miss: Ratio,
        with_skew skew: Ratio,
        with_hits hits: u8,
        with_sample_limit sample_limit: u16,
        with_count_known count_known: bool,
        with_length length: u16,
        with_hop_limit hop_limit: u16,
        with_at_once at_once: u8,
        with_timeout timeout: Span,
        with_patience patience: u16,
        with_neighbour_limit neighbour_limit: u32,
    }

    /// Checks that these settings can work.
    ///
    /// # Errors
    /// The first setting that is out of its range.
    pub const fn check(&self) -> Result<(), ConfigError> {
        let (miss, of) = (self.miss.numerator as u64, self.miss.denominator as u64);
        if miss * 2 > of || miss * 100_000 < of || of == 0 {
            return Err(ConfigError::Miss(self.miss));
        }
        if self.skew.numerator > self.skew.denominator || self.skew.denominator == 0 {
            return Err(ConfigError::Skew(self.skew));
        }
        let (hits, length) = (self.hits as u64, self.length as u64);
        // With a full list and all samples new there is room for a bound.
        let most_neighbours = MOST_NODES as u64 >> 4;
        let (micro, for_ever) = (Span::micros(1), Span(u64::MAX));
        let settings = [
            Setting::number("hits", hits, 1, u8::MAX as u64),
            Setting::number("sample_limit", self.sample_limit as u64, hits, 1 << 14),
            Setting::number("length", length, 4, 1 << 10),
            Setting::number(
                "hop_limit",
                self.hop_limit as u64,
                2 * length,
                u16::MAX as u64,
            ),
            Setting::number("at_once", self.at_once as u64, 1, 64),
            Setting::time("timeout", self.timeout, micro, for_ever),
            Setting::number("patience", self.patience as u64, 1, u16::MAX as u64),
            Setting::number(
                "neighbour_limit",
                self.neighbour_limit as u64,
                1,
                most_neighbours,
            ),
        ];
        match settings::check(&settings) {
            Ok(()) => Ok(()),
            Err(outside) => Err(ConfigError::Range(outside)),
        }
    }
}

/// Settings that cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// `miss` is outside its range.
    #[error("miss is {0:?}: set it to at least 1 in 100,000 and at most 1 in 2")]
    Miss(Ratio),
    /// `skew` is outside its range.
    #[error("skew is {0:?}: set it to at least 0 and at most 1 in 1")]
    Skew(Ratio),
    /// A number is outside its range.
    #[error(transparent)]
    Range(#[from] OutOfRange),
}
