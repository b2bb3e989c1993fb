//! On which terms a routine runs beside others: which runs belong together, and what is urgent.

use alloc::string::String;
use core::fmt;
use core::num::NonZeroU16;

/// The longest key of runs, in bytes.
pub const LONGEST_KEY: usize = 255;

/// How a run stands to others. By default it stands alone and is not urgent.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Terms {
    /// To which runs it belongs; `None` if it stands alone.
    pub series: Option<Series>,
    /// What it may preempt.
    pub urgency: Urgency,
}

/// The runs that belong together, mostly those of one routine, and what a new one does about those
/// that are unfinished. (Other systems say concurrency group, workflow id, job key.)
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Series {
    /// By which they belong together, of up to [`LONGEST_KEY`] bytes: the name of the routine, where
    /// routines have names, as in a [`Dispatcher`](crate::trigger::Dispatcher).
    pub key: String,
    /// What the new run does.
    pub mode: Mode,
}

/// What a new run does about unfinished runs of its key.
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
        /// How many may be unfinished, itself included; one beyond is refused.
        limit: NonZeroU16,
    },
}

/// How urgent a run is: one preempts those of lower urgency that stand in its way. 0 is the least,
/// and the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Urgency(pub u8);

impl Terms {
    /// Those of a run with this key.
    #[must_use]
    pub fn of(key: impl Into<String>, mode: Mode) -> Self {
        let key = key.into();
        Self {
            series: Some(Series { key, mode }),
            urgency: Urgency::default(),
        }
    }

    /// Those of a run that stands alone and is so urgent.
    #[must_use]
    pub const fn urgent(urgency: Urgency) -> Self {
        let series = None;
        Self { series, urgency }
    }

    /// The same, and so urgent.
    #[must_use]
    pub fn with_urgency(self, urgency: Urgency) -> Self {
        Self { urgency, ..self }
    }

    /// The key, if it has one.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.series.as_ref().map(|it| it.key.as_str())
    }

    /// What it does about unfinished runs of its key.
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
