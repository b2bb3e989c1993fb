//! What the host may ask, and what it is told.

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

/// When a routine is run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Trigger<V> {
    /// Each day, when the local clock reaches this time.
    At(TimeOfDay),
    /// On these days, when the local clock reaches this time. Needs [`Command::Today`].
    On {
        /// Which days.
        days: Days,
        /// When.
        at: TimeOfDay,
    },
    /// On these days, before or after the sun rises or sets. Needs [`Command::Today`]. It does not
    /// come on a day on which the sun does not rise, or set, as in polar days and nights.
    Sun {
        /// Which days.
        days: Days,
        /// What the sun does.
        event: SunEvent,
        /// How many milliseconds later; below zero for earlier. Half a day at most
        /// ([`SUN_OFFSET`](super::SUN_OFFSET)).
        offset_ms: i32,
    },
    /// Again and again, for the first time when this has passed: above zero.
    Every(Span),
    /// When this becomes true.
    When(Clause<V>),
    /// When [`Command::Run`] says so: a button. Each routine may be run so; this
    /// says that it is meant to be.
    Manual,
}

/// What the host asks or reports.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Command<V> {
    /// There is a routine of this name from now on; instead of another one, if there was one.
    Routine {
        /// Its name.
        name: String,
        /// What it does.
        routine: Routine<V>,
    },
    /// There is no routine of this name from now on, nor are its triggers.
    Forget(String),
    /// This makes that routine run from now on. [`Event::Added`] follows.
    Trigger {
        /// Which routine, by its name.
        name: String,
        /// When.
        trigger: Trigger<V>,
    },
    /// After it has fired this trigger does not fire again for so long: a cool-down, from the last
    /// time that it did. Zero, which is the default, lets it fire each time.
    CoolDown {
        /// Which one.
        trigger: TriggerId,
        /// How long.
        span: Span,
    },
    /// This trigger is gone.
    Remove(TriggerId),
    /// Run this routine now.
    Run(String),
    /// The local clock shows this, now.
    Clock(TimeOfDay),
    /// The day of the local clock is this one, now. Told at the start, after the clock is set, and
    /// soon after each midnight, for the sun; weekdays go on by themselves.
    Today(Day),
    /// A device is in this state; `None` if that is not known any more.
    Observed {
        /// Which one.
        device: NodeId,
        /// Its state.
        state: Option<V>,
    },
}

/// What the host is told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event<V> {
    /// The trigger has this id.
    Added(TriggerId),
    /// Submit this routine to the protocol that runs routines.
    Submit {
        /// Its name.
        name: String,
        /// What it does, as the bank has it now.
        routine: Routine<V>,
        /// Why.
        cause: Cause,
    },
    /// The trigger would have fired, and [cools down](Command::CoolDown): nothing is submitted, now
    /// or later.
    Cooling {
        /// Which one.
        trigger: TriggerId,
        /// Until when.
        until: Time,
    },
}

/// Why a routine is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Cause {
    /// [`Command::Run`].
    Hand,
    /// This trigger.
    Trigger(TriggerId),
}

/// Why an input was refused. Nothing changed.
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
        /// How many it has.
        found: usize,
        /// How many it may have.
        limit: u16,
    },
    /// No room for a routine.
    #[error("there are {limit} routines: forget one, or raise routine_limit")]
    TooManyRoutines {
        /// How many there may be.
        limit: u32,
    },
    /// No room for a trigger.
    #[error("there are {limit} triggers: remove one, or raise trigger_limit")]
    TooManyTriggers {
        /// How many there may be.
        limit: u32,
    },
    /// No room for a device.
    #[error(
        "the states of {limit} devices are known: forget one with state None, or raise device_limit"
    )]
    TooManyDevices {
        /// How many there may be.
        limit: u32,
    },
    /// The settings cannot work.
    #[error("the settings were refused: {0}")]
    Config(#[from] ConfigError),
}

impl TimeOfDay {
    /// How many seconds a day has, for a dispatcher.
    pub const DAY: u32 = 86_400;

    /// So many seconds after midnight; `None` from [`DAY`](Self::DAY) on.
    #[must_use]
    pub const fn from_seconds(seconds: u32) -> Option<Self> {
        if seconds < Self::DAY {
            Some(Self(seconds))
        } else {
            None
        }
    }

    /// So many seconds after midnight.
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
