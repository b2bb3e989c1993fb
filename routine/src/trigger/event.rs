//! The commands and events of the host.

use alloc::string::String;
use core::fmt;

use selvedge_core::{NodeId, Span, Time};
use thiserror::Error;

use super::{Clause, ConfigError, Day, Days, SunEvent};
use crate::Routine;

/// A trigger, by the order in which they were added: from 1, and never twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TriggerId(pub u64);

impl fmt::Display for TriggerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A local time of day, in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct TimeOfDay(u32);

/// An event that runs a routine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Trigger<V> {
    /// Each day, when the local clock reaches this time.
    At(TimeOfDay),
    /// On these days, when the local clock reaches this time. Needs [`Command::SetToday`].
    On {
        /// The days.
        days: Days,
        /// The time of day.
        at: TimeOfDay,
    },
    /// On these days, before or after the sun rises or sets. Needs [`Command::SetToday`]. It does not
    /// come on a day on which the sun does not rise, or set, as in polar days and nights.
    Sun {
        /// The days.
        days: Days,
        /// The event of the sun.
        event: SunEvent,
        /// The offset in milliseconds; negative for earlier. Half a day at most
        /// ([`SUN_OFFSET`](super::SUN_OFFSET)).
        offset_ms: i32,
    },
    /// At intervals, for the first time when this span has passed: above zero.
    Every(Span),
    /// At the moment when this clause becomes true.
    When(Clause<V>),
    /// By [`Command::Run`]: a button. Each routine may be run so; this trigger states that it is
    /// meant for it.
    Manual,
}

impl<V> Trigger<V> {
    /// The days on which it comes at a time of day; `None` for an interval, a clause and a button.
    #[must_use]
    pub const fn days(&self) -> Option<Days> {
        match self {
            Self::At(_) => Some(Days::ALL),
            Self::On { days, .. } | Self::Sun { days, .. } => Some(*days),
            Self::Every(_) | Self::When(_) | Self::Manual => None,
        }
    }

    /// The time after midnight at which it comes, on a day with these times of the sun. `None` where
    /// it does not come at a time of day, or the time of the sun is not known.
    pub fn time_of_day(&self, sun: impl FnOnce(SunEvent) -> Option<TimeOfDay>) -> Option<Span> {
        match self {
            Self::At(at) | Self::On { at, .. } => Some(Span::secs(at.seconds().into())),
            Self::Sun {
                event, offset_ms, ..
            } => {
                let time = i64::from(sun(*event)?.seconds()) * 1_000;
                let millis = i64::from(TimeOfDay::DAY) * 1_000;
                let at = (time + i64::from(*offset_ms)).rem_euclid(millis);
                u64::try_from(at).ok().map(Span::millis)
            }
            Self::Every(_) | Self::When(_) | Self::Manual => None,
        }
    }
}

/// A command or report of the host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command<V> {
    /// Adds a routine, or replaces the routine of this name.
    AddRoutine {
        /// Its name.
        name: String,
        /// Its commands.
        routine: Routine<V>,
    },
    /// Removes the routine of this name, and its triggers.
    RemoveRoutine(String),
    /// Adds a trigger that runs this routine. [`Event::Added`] follows.
    AddTrigger {
        /// The name of the routine.
        name: String,
        /// The trigger.
        trigger: Trigger<V>,
    },
    /// Sets the cool-down of a trigger: the span in which it does not fire again, from the last
    /// time that it did. Zero, which is the default, lets it fire each time.
    SetCoolDown {
        /// The trigger.
        trigger: TriggerId,
        /// The span.
        span: Span,
    },
    /// Removes this trigger.
    RemoveTrigger(TriggerId),
    /// Run this routine now.
    Run(String),
    /// The local clock shows this, now.
    SetClock(TimeOfDay),
    /// The day of the local clock is this one, now. Reported at the start, after the clock is set,
    /// and soon after each midnight, for the sun; weekdays are counted on without a report.
    SetToday(Day),
    /// A device is in this state; `None` if that is not known any more.
    Observed {
        /// The device.
        device: NodeId,
        /// Its state.
        state: Option<V>,
    },
}

/// An event for the host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event<V> {
    /// The trigger has this id.
    Added(TriggerId),
    /// Submit this routine to the protocol that runs routines.
    Submit {
        /// Its name.
        name: String,
        /// Its commands, as the bank has them now.
        routine: Routine<V>,
        /// The cause of the run.
        cause: Cause,
    },
    /// The trigger would have fired, and [cools down](Command::SetCoolDown): nothing is submitted, now
    /// or later.
    Cooling {
        /// The trigger.
        trigger: TriggerId,
        /// The end of the cool-down.
        until: Time,
    },
}

/// The cause of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Cause {
    /// [`Command::Run`].
    Hand,
    /// This trigger.
    Trigger(TriggerId),
}

/// The reason why an input was refused. Nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Reject {
    /// No such routine.
    #[error("there is no routine {0:?}: add it with Command::Routine first, or correct the name")]
    UnknownRoutine(String),
    /// No such trigger.
    #[error("there is no trigger {0}: use an id from Event::Added")]
    UnknownTrigger(TriggerId),
    /// The routine has no command.
    #[error("routine {0:?} has no command: give it one")]
    Empty(String),
    /// It would run without end.
    #[error("the interval is zero: give one above zero")]
    NoInterval,
    /// Too far from sunrise or sunset.
    #[error("the offset from sunrise or sunset is {0} ms: give half a day at most")]
    Offset(i32),
    /// Too long a question.
    #[error(
        "the clause has {found} parts and may have {limit}: simplify it, or raise clause_limit"
    )]
    ClauseTooLong {
        /// The number of parts.
        found: usize,
        /// The limit, in parts.
        limit: u16,
    },
    /// No room for a routine.
    #[error("there are {limit} routines: forget one, or raise routine_limit")]
    TooManyRoutines {
        /// The limit.
        limit: u32,
    },
    /// No room for a trigger.
    #[error("there are {limit} triggers: remove one, or raise trigger_limit")]
    TooManyTriggers {
        /// The limit.
        limit: u32,
    },
    /// No room for a device.
    #[error(
        "the states of {limit} devices are known: forget one with state None, or raise device_limit"
    )]
    TooManyDevices {
        /// The limit.
        limit: u32,
    },
    /// The settings cannot work.
    #[error("the settings were refused: {0}")]
    Config(#[from] ConfigError),
}

impl TimeOfDay {
    /// The number of seconds in a day, for a dispatcher.
    pub const DAY: u32 = 86_400;

    /// The time of day this many seconds after midnight; `None` from [`DAY`](Self::DAY) on.
    #[must_use]
    pub const fn from_seconds(seconds: u32) -> Option<Self> {
        if seconds < Self::DAY {
            Some(Self(seconds))
        } else {
            None
        }
    }

    /// The number of seconds after midnight.
    #[must_use]
    pub const fn seconds(self) -> u32 {
        self.0
    }

    /// A time as people write it, `06:30` or `06:30:15`, from `00:00` to `23:59:59`; else `None`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let two = |text: &str| {
            let is_plain = text.len() == 2 && text.bytes().all(|it| it.is_ascii_digit());
            text.parse::<u32>().ok().filter(|_| is_plain)
        };
        let mut parts = text.split(':');
        let (hours, minutes) = (two(parts.next()?)?, two(parts.next()?)?);
        let seconds = parts.next().map_or(Some(0), two)?;
        let is_time = hours < 24 && minutes < 60 && seconds < 60 && parts.next().is_none();
        is_time.then_some(Self((hours * 60 + minutes) * 60 + seconds))
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for TimeOfDay {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let seconds = u32::deserialize(deserializer)?;
        let error = || serde::de::Error::custom("a time of day beyond 23:59:59");
        Self::from_seconds(seconds).ok_or_else(error)
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hours, minutes, seconds) = (self.0 / 3_600, self.0 / 60 % 60, self.0 % 60);
        write!(f, "{hours:02}:{minutes:02}")?;
        if seconds > 0 {
            write!(f, ":{seconds:02}")?;
        }
        Ok(())
    }
}
