//! Triggers of routines: a time of day, an interval, states of devices, a command.
//!
//! A [`Dispatcher`] stands beside the protocol that runs routines. It keeps a bank of routines by
//! name and the triggers that start them, and emits each routine when it has to be submitted.
//! Replacing a routine in the bank changes later submissions only: routines that the protocol has
//! taken run unchanged.
//!
//! # Time of day
//! A machine knows no calendar. The host reports the local [`TimeOfDay`] with [`Command::SetClock`]:
//! once at the start, and again whenever the local clock is set. From there on the dispatcher
//! counts days of 24 hours.
//! - A correction of up to [`CORRECTION`] in either direction leaves nothing out and repeats
//!   nothing.
//! - A larger step is a new clock: times that it steps over do not run, times that have come by the
//!   old clock and were not ticked yet do not either, and times that it steps back over run again.
//!   So a host that may have slept reports the clock before it ticks the timers that are due.
//!   Summer time is up to the host, for only the host knows the rules: it sets the clock by them,
//!   and runs with [`Command::Run`] the routines that should not be left out.
//!
//! # Days and the sun
//! Nor does a machine know the day or its own place. [`Command::SetToday`] reports the day of the week
//! and the times at which the sun rises and sets, by the local clock; module `sun` (feature `sun`)
//! computes them from a date and a place. The dispatcher counts weekdays on at each midnight; it
//! keeps the times of the sun until the next report, which are a few minutes off on the next day.
//! - Until the first report, triggers with days or the sun do not run.
//! - Where the sun does not rise or set, such a trigger does not run on that day.
//!
//! # States of devices
//! A [`Clause`] runs its routine when it becomes true, and not while it stays so. A comparison with
//! an unknown state is neither true nor false, and a clause that depends on it does not run its
//! routine. The host reports to the dispatcher the same as to the protocol: outcomes and
//! observations.
//!
//! # Cool-down
//! A trigger may have a [cool-down](Command::SetCoolDown): a span after it has fired in which it does
//! not fire again. Events in that span are left out and not made up for: a clause that became true
//! meanwhile must become false first, an interval or a time of day comes again when it is due.
//! [`Event::Cooling`] reports each. The span is counted by the clock of the steps, so setting the
//! local clock neither shortens nor lengthens it, and a time of day that comes again because the
//! clock was set back is left out within it. [`Command::Run`] fires no trigger, and does not wait.
//!
//! # After a restart
//! A dispatcher is not stored: the host keeps its routines and triggers as it got them, in a file
//! or otherwise, and adds them again.
//! - First it reports the states that the protocol remembers, then it adds the
//!   triggers, and then it reports the states that it finds. So a clause that became true while
//!   the host was stopped runs its routine, and one that was true before does not.
//! - Intervals begin again. A time of day that passed meanwhile does not run.
//! - Cool-downs have to be set again. None has begun: a trigger may fire once sooner than without
//!   the restart, and never later.

mod day;
mod dispatcher;
mod event;

pub use crate::Clause;
pub use day::{Day, Days, SunEvent, Weekday};
pub use dispatcher::{CORRECTION, Config, ConfigError, Dispatcher, SUN_OFFSET};
pub use event::{Cause, Command, Event, Reject, TimeOfDay, Trigger, TriggerId};
