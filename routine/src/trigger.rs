//! What makes routines run: a time of day, an interval, states of devices, a hand.
//!
//! A [`Dispatcher`] stands beside the protocol that runs routines. It keeps a bank of routines by
//! name and the triggers that start them, and says which routine is to be submitted when. Replacing
//! a routine in the bank changes later submissions only: what the protocol has taken runs as it
//! was.
//!
//! # Time of day
//! A machine knows no calendar. The host tells the local [`TimeOfDay`] with [`Command::Clock`]:
//! once at the start, and again whenever the local clock is set. From there on the dispatcher
//! counts days of 24 hours.
//! - A correction of up to [`CORRECTION`] in either direction leaves nothing out and repeats
//!   nothing.
//! - A larger step is a new clock: what it steps over does not run, what has come by the old clock
//!   and was not ticked yet does not either, and what it steps back over runs again. So a host that
//!   may have slept tells the clock before it ticks what is due. Summer time is the host's matter,
//!   for only the host knows the rules: it sets the clock when they say so, and runs with
//!   [`Command::Run`] what should not be left out.
//!
//! # Days and the sun
//! Nor does a machine know which day it is, and where it is. [`Command::Today`] tells the day of the
//! week and when the sun rises and sets, by the local clock; module `sun` (feature `sun`) finds that
//! out from a date and a place. The dispatcher counts weekdays on at each midnight; it keeps the
//! times of the sun until it is told others, which are a few minutes off on the next day.
//! - Until it is told, triggers with days or the sun do not run.
//! - Where the sun does not rise or set, such a trigger does not run on that day.
//!
//! # States of devices
//! A [`Clause`] runs its routine when it becomes true, and not while it stays so. What is unknown
//! makes a comparison neither true nor false, and what depends on it does not run. The host
//! reports to the dispatcher what it reports to the protocol: outcomes and observations.
//!
//! # Cool-down
//! A trigger may have a [cool-down](Command::CoolDown): a span after it has fired in which it does
//! not fire again. What it would have fired for is left out and not made up for: a clause that
//! became true meanwhile must become false first, an interval or a time of day comes again when it
//! is due. [`Event::Cooling`] tells of each. The span is counted by the clock of the steps, so setting
//! the local clock neither shortens nor lengthens it, and a time of day that comes again because the
//! clock was set back is left out within it. [`Command::Run`] fires no trigger, and does not wait.
//!
//! # After a restart
//! A dispatcher is not stored: the host keeps its routines and triggers as it got them, in a file
//! or otherwise, and adds them again.
//! - First it reports the states that the protocol remembers, then it adds the
//!   triggers, and then it reports the states that it finds. So a clause that became true while
//!   the host was away runs its routine, and one that was true before does not.
//! - Intervals begin anew. A time of day that passed meanwhile does not run.
//! - Cool-downs are told again. None has begun: a trigger may fire once sooner than without the
//!   restart, and never later.

mod day;
mod dispatcher;
mod event;

pub use crate::Clause;
pub use day::{Day, Days, SunEvent, Weekday};
pub use dispatcher::{CORRECTION, Config, ConfigError, Dispatcher, SUN_OFFSET};
pub use event::{Cause, Command, Event, Reject, TimeOfDay, Trigger, TriggerId};
