//! The terms on which a routine runs beside others: related runs, and urgency.

use alloc::string::String;
use core::fmt;
use core::num::NonZeroU16;

/// The longest key of runs, in bytes.
pub const LONGEST_KEY: usize = 255;

/// The relation of a run to others. By default it stands alone and is not urgent.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Terms {
    /// The series of runs to which it belongs; `None` if it stands alone.
    pub series: Option<Series>,
    /// The urgency: it may preempt runs of lower urgency.
    pub urgency: Urgency,
}

/// A series of related runs, mostly of one routine, and the effect of a new run on the unfinished
/// ones. (Names in other systems: concurrency group, workflow id, job key.)
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Series {
    /// The key of the series, of up to [`LONGEST_KEY`] bytes: the name of the routine, where
    /// routines have names, as in a [`Dispatcher`](crate::trigger::Dispatcher).
    pub key: String,
    /// The effect of a new run.
    pub mode: Mode,
}

/// The effect of a new run on unfinished runs of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Mode {
    /// It runs beside them.
    #[default]
    Parallel,
    /// It is refused.
    Single,
    /// It supersedes them: they are aborted and undone. A device that it sets is not brought back
    /// before.
    Restart,
    /// It begins when they are finished, in the order in which they were submitted.
    Queued {
        /// The number of runs that may be unfinished, this one included; further ones are refused.
        limit: NonZeroU16,
    },
}

/// The urgency of a run: a run preempts runs of lower urgency that are in its way. 0 is the least,
/// and the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Urgency(pub u8);

impl Terms {
    /// The terms of a run with this key.
    #[must_use]
    pub fn of(key: impl Into<String>, mode: Mode) -> Self {
        let key = key.into();
        Self {
            series: Some(Series { key, mode }),
            urgency: Urgency::default(),
        }
    }

    /// The terms of a run that stands alone and has this urgency.
    #[must_use]
    pub const fn urgent(urgency: Urgency) -> Self {
        let series = None;
        Self { series, urgency }
    }

    /// The same terms, with this urgency.
    #[must_use]
    pub fn with_urgency(self, urgency: Urgency) -> Self {
        Self { urgency, ..self }
    }

    /// The key, if it has one.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.series.as_ref().map(|it| it.key.as_str())
    }

    /// The effect on unfinished runs of its key.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.series.as_ref().map_or(Mode::Parallel, |it| it.mode)
    }
}

impl fmt::Display for Urgency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
