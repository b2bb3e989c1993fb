//! Settings, with units, ranges and the sources of the defaults.

use selvedge_core::Span;
use selvedge_core::settings::{self, OutOfRange, Setting};
use thiserror::Error;

/// The isolation of routines that run at the same time (section 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Visibility {
    /// Weak, the model of most hubs. Nothing is promised, nothing is undone.
    Weak,
    /// Global strict: one routine at a time. It is aborted when a device that it needs fails or
    /// restarts while it runs.
    GlobalStrict,
    /// Strong global strict: as `GlobalStrict`, and the failure of any device counts.
    StrongGlobalStrict,
    /// Partitioned strict: routines without a common device run at the same time.
    PartitionedStrict,
    /// Eventual: any routines run at the same time, and the final state is as if they had run one
    /// by one.
    #[default]
    Eventual,
}

/// The place of a new routine in the order, under [`Visibility::Eventual`] (section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Scheduler {
    /// Behind all routines submitted before it.
    FirstCome,
    /// At the earliest place where it can start at once; the routine waits until there is such a
    /// place.
    JustInTime,
    /// In gaps between others, by estimates of how long each needs a device; but not before a
    /// routine that sets the same devices, if neither asks for a state.
    #[default]
    Timeline,
}

/// The settings of a hub. Checked once, by [`Hub::new`](crate::Hub::new).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Config {
    /// Default [`Visibility::Eventual`].
    pub visibility: Visibility,
    /// Default [`Scheduler::Timeline`].
    pub scheduler: Scheduler,
    /// True if a routine may go before another routine that has started and has not touched their
    /// common device yet (section 4.1). Default true.
    pub pre_leases: bool,
    /// True if a device becomes free as soon as its routine no longer needs it, and not only when
    /// that routine is finished (section 4.1). Default true. A device taken by a pre-lease is
    /// always returned as soon as it is no longer needed.
    pub post_leases: bool,
    /// The longest duration of a pre-lease, in percent of the estimate: at least 100. Default 110,
    /// as in section 4.1.
    pub leniency: u16,
    /// The time for which a routine can be overtaken before its first command (section 5): above
    /// zero. Default 60 s; the paper gives none.
    pub patience: Span,
    /// The longest planned duration of a routine, in percent of the time that its commands alone
    /// need, if there is such a plan: at least 100. Default 300; the paper gives none.
    pub stretch: u16,
    /// The number of gaps that the timeline scheduler examines before it puts a routine behind all
    /// others: at least 1. Default 256; random loads need 34 at most (erratum H17).
    pub search_limit: u16,
    /// The estimated duration of a short command: above zero. Default 100 ms, as in section 4.3.
    pub short: Span,
    /// The time to wait for a command's outcome: above zero. After that it is unknown. Default 5 s.
    pub timeout: Span,
    /// The most attempts at a rollback of a device that is up; after that many failures it is left
    /// as it is ([`Stuck`](crate::Event::Stuck)). At least 1. Default 5.
    pub undo_attempts: u8,
    /// The time between a failed rollback and the next attempt: above zero. Default 1 s.
    pub undo_retry: Span,
    /// The most commands of a routine: at least 1. Default 256. Placing a routine takes some 16
    /// bytes for each pair of the devices that it needs, 1 MB for 256, and up to 64 KB besides.
    pub step_limit: u16,
    /// The most unfinished routines: at least 1. Committed routines that wait for the same
    /// unfinished ones count as one. Default 4,096.
    pub routine_limit: u32,
    /// The most committed routines, failures and manual changes that wait for their place in the
    /// order, because a routine before them is unfinished: at least 1. Each takes some 16 bytes and
    /// its state. Default 65,536: a day of routines behind one command that takes a day, one each
    /// 1.3 s.
    pub order_limit: u32,
    /// The most devices: at least 1. Default 4,096.
    pub device_limit: u32,
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
            visibility: Visibility::Eventual,
            scheduler: Scheduler::Timeline,
            pre_leases: true,
            post_leases: true,
            leniency: 110,
            patience: Span::secs(60),
            stretch: 300,
            search_limit: 256,
            short: Span::millis(100),
            timeout: Span::secs(5),
            undo_attempts: 5,
            undo_retry: Span::secs(1),
            step_limit: 256,
            routine_limit: 4_096,
            order_limit: 65_536,
            device_limit: 4_096,
        }
    }

    selvedge_core::with_settings! {
        with_visibility visibility: Visibility,
        with_scheduler scheduler: Scheduler,
        with_pre_leases pre_leases: bool,
        with_post_leases post_leases: bool,
        with_leniency leniency: u16,
        with_patience patience: Span,
        with_stretch stretch: u16,
        with_search_limit search_limit: u16,
        with_short short: Span,
        with_timeout timeout: Span,
        with_undo_attempts undo_attempts: u8,
        with_undo_retry undo_retry: Span,
        with_step_limit step_limit: u16,
        with_routine_limit routine_limit: u32,
        with_order_limit order_limit: u32,
        with_device_limit device_limit: u32,
    }

    /// Checks that each setting is in its range.
    ///
    /// # Errors
    /// The first field that is out of its range.
    pub const fn check(&self) -> Result<(), ConfigError> {
        let ranges = [
            percent("leniency", self.leniency),
            time("patience", self.patience),
            percent("stretch", self.stretch),
            some("search_limit", self.search_limit as u64),
            time("short", self.short),
            time("timeout", self.timeout),
            some("undo_attempts", self.undo_attempts as u64),
            time("undo_retry", self.undo_retry),
            some("step_limit", self.step_limit as u64),
            some("routine_limit", self.routine_limit as u64),
            some("order_limit", self.order_limit as u64),
            some("device_limit", self.device_limit as u64),
        ];
        match settings::check(&ranges) {
            Ok(()) => Ok(()),
            Err(outside) => Err(ConfigError::Range(outside)),
        }
    }
}

/// The reason why settings cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A setting is outside its range.
    #[error("{0}")]
    Range(#[from] OutOfRange),
}

/// A setting for a duration above zero.
const fn time(name: &'static str, span: Span) -> Setting {
    Setting::time(name, span, Span(1), Span(u64::MAX))
}

/// A setting for a number of at least 1.
const fn some(name: &'static str, value: u64) -> Setting {
    Setting::number(name, value, 1, u64::MAX)
}

/// A setting for a percentage of at least 100.
const fn percent(name: &'static str, value: u16) -> Setting {
    Setting::number(name, value as u64, 100, u64::MAX).counts("%")
}
