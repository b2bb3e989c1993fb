//! The machine that keeps routines and triggers.

use alloc::string::String;
use alloc::vec::Vec;
use core::convert::Infallible;

use selvedge_core::settings::{self, OutOfRange, Setting};
use selvedge_core::{BoundedMap, Context, Input, Machine, NodeId, Span, Time};
use thiserror::Error;

use super::{Cause, Command, Day, Event, Reject, TimeOfDay, Trigger, TriggerId, Weekday};
use crate::{Routine, Value};

/// The largest correction of the local clock by which no times of day are left out or repeated.
pub const CORRECTION: Span = Span::secs(60);

/// The largest distance of a trigger from sunrise or sunset, in milliseconds: half a day.
pub const SUN_OFFSET: i32 = 43_200_000;

const DAY: u64 = TimeOfDay::DAY as u64 * 1_000_000;

/// The limits of a dispatcher. Checked once, by [`Dispatcher::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Config {
    /// The number of routines that the bank may have: from 1. Default 4,096.
    pub routine_limit: u32,
    /// The number of triggers: from 1. Default 4,096.
    pub trigger_limit: u32,
    /// The number of parts that a clause may have: from 1. Default 64.
    pub clause_limit: u16,
    /// The number of devices with a known state: from 1. Default 4,096.
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
            routine_limit: 4_096,
            trigger_limit: 4_096,
            clause_limit: 64,
            device_limit: 4_096,
        }
    }

    selvedge_core::with_settings! {
        with_routine_limit routine_limit: u32,
        with_trigger_limit trigger_limit: u32,
        with_clause_limit clause_limit: u16,
        with_device_limit device_limit: u32,
    }

    /// Checks that these limits can work.
    ///
    /// # Errors
    /// The first field that is out of its range.
    pub const fn check(&self) -> Result<(), ConfigError> {
        const fn some(name: &'static str, value: u64) -> Setting {
            Setting::number(name, value, 1, u64::MAX)
        }
        let ranges = [
            some("routine_limit", self.routine_limit as u64),
            some("trigger_limit", self.trigger_limit as u64),
            some("clause_limit", self.clause_limit as u64),
            some("device_limit", self.device_limit as u64),
        ];
        match settings::check(&ranges) {
            Ok(()) => Ok(()),
            Err(outside) => Err(ConfigError::Range(outside)),
        }
    }
}

/// The reason why limits cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A limit is outside its range.
    #[error("{0}")]
    Range(#[from] OutOfRange),
}

/// A bank of routines by name, and the triggers that make them run.
///
/// A step takes O(log n) of the stored entries, except for [`Command::Observed`] and
/// [`Command::SetClock`], which look at each trigger.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dispatcher<V> {
    config: Config,
    routines: BoundedMap<String, Routine<V>>,
    triggers: BoundedMap<TriggerId, Armed<V>>,
    /// The last that was added.
    last: TriggerId,
    states: BoundedMap<NodeId, V>,
    /// The time at which the local clock was set, and its time of day then.
    clock: Option<(Time, TimeOfDay)>,
    /// The calendar's report, and the number of midnights by then since the local clock was set.
    today: Option<(Day, u64)>,
}

/// A trigger with its state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Armed<V> {
    name: String,
    trigger: Trigger<V>,
    /// True if its clause was true at the last evaluation.
    is_true: bool,
    /// The time at which its time of day last came.
    fired: Option<Time>,
    /// The time at which its time of day comes next, if the local clock is known.
    due: Option<Time>,
    /// The span in which it does not fire again, and its start.
    cool_down: Span,
    cools: Option<Time>,
}

impl<V> Armed<V> {
    fn cools_until(&self) -> Option<Time> {
        let since = self.cools.filter(|_| self.cool_down > Span::ZERO)?;
        Some(since + self.cool_down)
    }
}

impl<V: Value> Dispatcher<V> {
    /// A dispatcher without routines.
    ///
    /// # Errors
    /// The first limit that cannot work.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            config,
            routines: BoundedMap::new(config.routine_limit as usize),
            triggers: BoundedMap::new(config.trigger_limit as usize),
            last: TriggerId(0),
            states: BoundedMap::new(config.device_limit as usize),
            clock: None,
            today: None,
        })
    }

    /// The routine of this name.
    #[must_use]
    pub fn routine(&self, name: &str) -> Option<&Routine<V>> {
        self.routines.get(&name.into())
    }

    /// The names of all routines, sorted.
    pub fn routines(&self) -> impl Iterator<Item = &str> {
        self.routines.iter().map(|(name, _)| name.as_str())
    }

    /// All triggers, each with the name of its routine.
    pub fn triggers(&self) -> impl Iterator<Item = (TriggerId, &str, &Trigger<V>)> {
        let shown = |(&id, it): (&TriggerId, _)| {
            let it: &Armed<V> = it;
            (id, it.name.as_str(), &it.trigger)
        };
        self.triggers.iter().map(shown)
    }

    /// The end of a trigger's cool-down, which may be over. `None` if it has not fired since it
    /// cools down, or does not cool down, or is unknown.
    #[must_use]
    pub fn cools_until(&self, id: TriggerId) -> Option<Time> {
        self.triggers.get(&id)?.cools_until()
    }

    /// The time of the local clock, in microseconds after midnight.
    fn local(&self, now: Time) -> Option<u64> {
        let (set, shown) = self.clock?;
        Some((u64::from(shown.seconds()) * 1_000_000 + now.since(set).0 % DAY) % DAY)
    }

    /// The number of midnights that have passed since the local clock was set.
    fn midnights(&self, now: Time) -> u64 {
        self.clock.map_or(0, |(set, shown)| {
            let shown = u64::from(shown.seconds()) * 1_000_000;
            shown.saturating_add(now.since(set).0) / DAY
        })
    }

    /// The day of the week.
    fn weekday(&self, now: Time) -> Option<Weekday> {
        let (day, then) = self.today?;
        Some(day.weekday.after(self.midnights(now).saturating_sub(then)))
    }

    /// The time of day at which this trigger comes, in microseconds after midnight.
    fn daily(&self, trigger: &Trigger<V>) -> Option<u64> {
        let at = trigger.time_of_day(|event| self.today?.0.sun(event))?;
        Some(at.0)
    }

    /// Returns true if the time of day that comes now belongs to a day on which it runs.
    fn is_its_day(&self, trigger: &Trigger<V>, now: Time) -> bool {
        let days = match trigger {
            Trigger::On { days, .. } | Trigger::Sun { days, .. } => *days,
            Trigger::At(_) | Trigger::Every(_) | Trigger::When(_) | Trigger::Manual => return true,
        };
        let (Some(day), Some(local), Some(at)) =
            (self.weekday(now), self.local(now), self.daily(trigger))
        else {
            return false;
        };
        // A correction of the clock, or a late tick, has gone over midnight.
        let day = if at > local + DAY / 2 {
            day.after(6)
        } else {
            day
        };
        days.has(day)
    }

    fn command(&mut self, command: Command<V>, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match command {
            Command::AddRoutine { name, routine } => {
                if routine.steps.is_empty() {
                    return Err(Reject::Empty(name));
                }
                let limit = self.config.routine_limit;
                let taken = self.routines.insert(name, routine);
                taken.map_err(|_| Reject::TooManyRoutines { limit })?;
            }
            Command::RemoveRoutine(name) => {
                if self.routines.remove(&name).is_none() {
                    return Err(Reject::UnknownRoutine(name));
                }
                self.triggers.retain(|&id, it| {
                    let stays = it.name != name;
                    if !stays {
                        cx.disarm(id);
                    }
                    stays
                });
            }
            Command::AddTrigger { name, trigger } => self.add_trigger(name, trigger, cx)?,
            Command::RemoveTrigger(id) => {
                if self.triggers.remove(&id).is_none() {
                    return Err(Reject::UnknownTrigger(id));
                }
                cx.disarm(id);
            }
            Command::SetCoolDown { trigger, span } => {
                let known = self.triggers.get_mut(&trigger);
                let armed = known.ok_or(Reject::UnknownTrigger(trigger))?;
                armed.cool_down = span;
            }
            Command::Run(name) => {
                let Some(routine) = self.routines.get(&name).cloned() else {
                    return Err(Reject::UnknownRoutine(name));
                };
                cx.event(Event::Submit {
                    name,
                    routine,
                    cause: Cause::Hand,
                });
            }
            Command::SetClock(time) => self.on_clock(time, cx),
            Command::SetToday(day) => self.on_today(day, cx),
            Command::Observed { device, state } => self.on_observed(device, state, cx)?,
        }
        Ok(())
    }

    fn add_trigger(
        &mut self,
        name: String,
        trigger: Trigger<V>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        if !self.routines.contains(&name) {
            return Err(Reject::UnknownRoutine(name));
        }
        let mut is_true = false;
        match &trigger {
            Trigger::Every(Span::ZERO) => return Err(Reject::NoInterval),
            Trigger::When(clause) => {
                let (found, limit) = (clause.size(), self.config.clause_limit);
                if found > limit.into() {
                    return Err(Reject::ClauseTooLong { found, limit });
                }
                // A clause that is true already does not become true.
                is_true = clause.holds(&|it| self.states.get(&it)) == Some(true);
            }
            Trigger::Sun { offset_ms, .. }
                if offset_ms.unsigned_abs() > SUN_OFFSET.unsigned_abs() =>
            {
                return Err(Reject::Offset(*offset_ms));
            }
            Trigger::At(_)
            | Trigger::On { .. }
            | Trigger::Sun { .. }
            | Trigger::Every(_)
            | Trigger::Manual => {}
        }
        let id = TriggerId(self.last.0 + 1);
        let armed = Armed {
            name,
            trigger,
            is_true,
            fired: None,
            due: None,
            cool_down: Span::ZERO,
            cools: None,
        };
        let limit = self.config.trigger_limit;
        let taken = self.triggers.insert(id, armed);
        taken.map_err(|_| Reject::TooManyTriggers { limit })?;
        self.last = id;
        cx.event(Event::Added(id));
        self.arm(id, true, cx);
        Ok(())
    }

    /// Sets the timer of a trigger that has one. A time of day that is now comes now, or tomorrow.
    fn arm(&mut self, id: TriggerId, now_counts: bool, cx: &mut Context<'_, Self>) {
        let local = self.local(cx.now());
        let trigger = self.triggers.get(&id).map(|it| &it.trigger);
        let daily = trigger.and_then(|it| self.daily(it));
        let Some(armed) = self.triggers.get_mut(&id) else {
            return;
        };
        match (&armed.trigger, daily, local) {
            (Trigger::Every(every), ..) => {
                let every = *every;
                cx.arm(id, every);
            }
            (_, Some(at), Some(local)) => {
                let mut wait = (at + DAY - local) % DAY;
                if wait == 0 && !now_counts {
                    wait = DAY;
                }
                armed.due = Some(cx.now() + Span(wait));
                cx.arm(id, Span(wait));
            }
            (_, None, _) if armed.due.take().is_some() => cx.disarm(id),
            _ => {}
        }
    }

    /// Takes the calendar's report of the day.
    fn on_today(&mut self, day: Day, cx: &mut Context<'_, Self>) {
        let before = self.today.replace((day, self.midnights(cx.now())));
        let is_sun = |it: &Armed<V>| matches!(it.trigger, Trigger::Sun { .. });
        let suns = self.triggers.iter().filter(|it| is_sun(it.1));
        let suns: Vec<_> = suns.map(|it| *it.0).collect();
        let times = |it: Day| (it.sunrise, it.sunset);
        if before.is_some_and(|it| times(it.0) == times(day)) {
            return;
        }
        for id in suns {
            self.arm(id, true, cx);
        }
    }

    /// Takes a new time of the local clock.
    fn on_clock(&mut self, time: TimeOfDay, cx: &mut Context<'_, Self>) {
        let before = self.local(cx.now());
        let shown = u64::from(time.seconds()) * 1_000_000;
        let weekday = self.weekday(cx.now());
        self.clock = Some((cx.now(), time));
        if let (Some((day, then)), Some(weekday)) = (&mut self.today, weekday) {
            // The shorter way from one time to the other: perhaps over midnight.
            let over = match before {
                Some(before) if before > shown + DAY / 2 => 1,
                Some(before) if shown > before + DAY / 2 => 6,
                Some(_) | None => 0,
            };
            day.weekday = weekday.after(over);
            *then = 0;
        }
        let forward = before.map(|before| (shown + DAY - before) % DAY);
        // A larger step is a new clock: no time was due by it.
        let is_corrected = forward.is_some_and(|it| it.min(DAY - it) <= CORRECTION.0);
        let daily = self
            .triggers
            .iter()
            .map(|(&id, it)| (id, self.daily(&it.trigger)));
        let all: Vec<_> = daily.filter_map(|(id, at)| Some((id, at?))).collect();
        for (id, at) in all {
            let due = self.triggers.get(&id).and_then(|it| it.due);
            if is_corrected && due.is_some_and(|it| it <= cx.now()) {
                // Sets its timer, which was not ticked yet, again.
                self.on_time_of_day(id, cx);
            }
            if let (Some(before), Some(forward)) = (before, forward) {
                let passed = (at + DAY - before) % DAY;
                if forward <= CORRECTION.0 && passed > 0 && passed < forward {
                    self.on_time_of_day(id, cx);
                }
            }
            self.arm(id, true, cx);
        }
    }

    /// Runs the routine of a time of day, but not twice because the clock was corrected.
    fn on_time_of_day(&mut self, id: TriggerId, cx: &mut Context<'_, Self>) {
        let is_its_day = self
            .triggers
            .get(&id)
            .is_some_and(|it| self.is_its_day(&it.trigger, cx.now()));
        let Some(armed) = self.triggers.get_mut(&id) else {
            return;
        };
        // The sun's times differ from day to day, so two of them are the same event within a longer
        // span.
        let apart = match armed.trigger {
            Trigger::Sun { .. } => Span(DAY / 2),
            Trigger::At(_)
            | Trigger::On { .. }
            | Trigger::Every(_)
            | Trigger::When(_)
            | Trigger::Manual => CORRECTION,
        };
        let again = armed.fired.is_some_and(|it| cx.now().since(it) <= apart);
        if !is_its_day {
            return;
        }
        // Also after several corrections in a row.
        armed.fired = Some(cx.now());
        if !again {
            self.fire(id, cx);
        }
    }

    fn fire(&mut self, id: TriggerId, cx: &mut Context<'_, Self>) {
        let now = cx.now();
        let Some(armed) = self.triggers.get_mut(&id) else {
            return;
        };
        if let Some(until) = armed.cools_until().filter(|until| now < *until) {
            cx.event(Event::Cooling { trigger: id, until });
            return;
        }
        armed.cools = (armed.cool_down > Span::ZERO).then_some(now);
        // Forgetting a routine forgets its triggers, so the routine exists.
        if let Some(routine) = self.routines.get(&armed.name) {
            cx.event(Event::Submit {
                name: armed.name.clone(),
                routine: routine.clone(),
                cause: Cause::Trigger(id),
            });
        }
    }

    fn on_observed(
        &mut self,
        device: NodeId,
        state: Option<V>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        if let Some(state) = state {
            let limit = self.config.device_limit;
            let taken = self.states.insert(device, state);
            taken.map_err(|_| Reject::TooManyDevices { limit })?;
        } else {
            self.states.remove(&device);
        }
        let concerned = |(&id, it): (&TriggerId, _)| {
            let it: &Armed<V> = it;
            match &it.trigger {
                Trigger::When(clause) if clause.asks(device) => {
                    Some((id, clause.holds(&|it| self.states.get(&it)) == Some(true)))
                }
                Trigger::When(_)
                | Trigger::At(_)
                | Trigger::On { .. }
                | Trigger::Sun { .. }
                | Trigger::Every(_)
                | Trigger::Manual => None,
            }
        };
        let answers: Vec<_> = self.triggers.iter().filter_map(concerned).collect();
        for (id, is_true) in answers {
            let Some(armed) = self.triggers.get_mut(&id) else {
                continue;
            };
            let becomes = is_true && !armed.is_true;
            armed.is_true = is_true;
            if becomes {
                self.fire(id, cx);
            }
        }
        Ok(())
    }

    fn on_tick(&mut self, id: TriggerId, cx: &mut Context<'_, Self>) {
        match self.triggers.get(&id).map(|it| &it.trigger) {
            Some(Trigger::At(_) | Trigger::On { .. } | Trigger::Sun { .. }) => {
                self.on_time_of_day(id, cx);
            }
            Some(Trigger::Every(_)) => self.fire(id, cx),
            Some(Trigger::When(_) | Trigger::Manual) | None => {}
        }
        self.arm(id, false, cx);
    }
}

impl<V: Value> Machine for Dispatcher<V> {
    type Message = Infallible;
    type Timer = TriggerId;
    type Command = Command<V>;
    type Event = Event<V>;
    type Reject = Reject;

    fn handle(
        &mut self,
        input: Input<Self>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Self::Reject> {
        match input {
            Input::Message { message, .. } => match message {},
            // Membership concerns the protocol that runs routines.
            Input::Membership(_) => Ok(()),
            Input::Command(command) => self.command(command, cx),
            Input::Tick(id) => {
                self.on_tick(id, cx);
                Ok(())
            }
        }
    }
}
