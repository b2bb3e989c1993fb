//! The state machines of a home together: the hub, the triggers, and the records of runs. Without I/O.
//!
//! [`House::take`] handles an input, and collects the changes and the orders that follow from it. The host
//! stores the [changes](House::take_changes) first, and then carries out the [orders](House::take_todo); so
//! no effect of a step is visible before the step is stored.

mod events;
mod record;
mod reports;
mod triggers;
mod view;

use std::collections::BTreeMap;

use chacha20::ChaCha12Rng;
use selvedge_core::{Delta, Driver, Effect, Input, Member, NodeId, Span, Time};
use selvedge_routine::State;
use selvedge_routine::file::Home;
use selvedge_routine::sun::Date;
use selvedge_routine::trigger::{self, Dispatcher, TimeOfDay, TriggerId};
use selvedge_routine::{Catalogue, Location, Routine, Terms};
use selvedge_safehome::{
    Command, Config, ConfigError, Damage, Difference, DurableEvent, DurableHub, Hub, Reject,
    RoutineId, Saved,
};
use serde::Serialize;
use thiserror::Error;

pub use record::{Cause, End, KEPT, Record, Records, Undone};
pub use view::{DeviceView, PlaceView, PreviewView, RunView, TakenView, View};

use crate::device::Report;

/// A moment, on the monotonic clock and on the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The time since the process began.
    pub now: Time,
    /// Milliseconds since 1970.
    pub wall: u64,
}

/// An order to a device, to carry out once all changes are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Todo {
    /// Bring it into this state.
    Set {
        /// The device.
        device: NodeId,
        /// The command's number.
        token: u64,
        /// The state.
        state: State,
        /// The time at which the hub gives up.
        until: Time,
    },
    /// Ask it for its state.
    Ask {
        /// The device.
        device: NodeId,
        /// The command's number.
        token: u64,
    },
}

/// The changes to store before anything is carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The steps of the hub, in this order.
    pub steps: Vec<Difference<State>>,
    /// Runs that are new or changed.
    pub runs: BTreeMap<RoutineId, Record>,
    /// Runs that are not kept any more.
    pub forgotten: Vec<RoutineId>,
}

impl Changes {
    /// Returns true if nothing has to be stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.runs.is_empty() && self.forgotten.is_empty()
    }
}

/// The stored state of a house.
#[derive(Clone, Debug)]
pub struct Memory {
    /// The hub, when it was last written in whole.
    pub base: Saved<State>,
    /// The changes since.
    pub steps: Vec<Difference<State>>,
    /// The earlier runs, some of which may be unfinished.
    pub runs: BTreeMap<RoutineId, Record>,
}

/// An error that keeps a house from starting.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HouseError {
    /// The hub's settings.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The triggers' settings, or a routine or trigger of the file.
    #[error(transparent)]
    Trigger(#[from] trigger::Reject),
    /// Stored data that do not fit together, or do not fit the settings.
    #[error(
        "the stored state cannot be restored ({0}): raise the limits again, or put the folder aside"
    )]
    Damage(#[from] Damage),
    /// A device that the hub rejects.
    #[error(transparent)]
    Device(#[from] Reject),
}

/// The reason why a routine is not run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The routine or the run is unknown.
    #[error("{0}")]
    Unknown(String),
    /// The hub rejects it.
    #[error("{0}")]
    Hub(String),
}

/// An input from a device or from the clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A device reports.
    Report(NodeId, Report),
    /// The local clock has this time and day, and is this many seconds ahead of UTC.
    Clock(TimeOfDay, Date, i32),
}

/// Clocks are set forward or back at a multiple of this many seconds.
const QUARTER: u32 = 900;

/// Counters since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Runs that were accepted.
    pub accepted: u64,
    /// Runs that ended, and are done.
    pub committed: u64,
    /// Runs that ended, and are undone.
    pub aborted: u64,
    /// Commands that were done.
    pub done: u64,
    /// Commands that did nothing.
    pub refused: u64,
    /// Commands with an unknown outcome.
    pub unknown: u64,
}

type Moved = Result<(), Reject>;

/// The state machines of a home.
#[derive(Debug)]
pub struct House {
    hub: Driver<DurableHub<State>>,
    dispatcher: Driver<Dispatcher<State>>,
    catalogue: Catalogue,
    /// The names of all devices, also of devices that have left the file and that a kept run used.
    names: Catalogue,
    /// The terms of each routine, by its name.
    terms: BTreeMap<String, Terms>,
    /// The place for which sunrise and sunset are computed.
    location: Option<Location>,
    /// The number of seconds that the local clock was ahead of UTC at its last reading.
    ahead: Option<i32>,
    records: Records,
    rng: ChaCha12Rng,
    /// The state of each device as known to the triggers.
    notified: BTreeMap<NodeId, Option<State>>,
    changes: Changes,
    todo: Vec<Todo>,
    refused: u64,
    counts: Counts,
    /// The reasons why devices do not answer.
    troubles: BTreeMap<NodeId, String>,
    /// True if something changed that is shown and not stored.
    has_news: bool,
    /// The moment of the latest step.
    latest: Moment,
}

impl House {
    /// A house with these devices, routines and triggers, and with its memory.
    ///
    /// A device in `gone`, which has left the file, is removed, unless a routine still needs it; then it is
    /// down.
    ///
    /// # Errors
    /// When the settings, the file and the memory do not fit together.
    pub fn new(
        home: &Home,
        config: Config,
        lateness: impl Fn(NodeId) -> Span,
        gone: &[NodeId],
        memory: Option<Memory>,
        rng: ChaCha12Rng,
        moment: Moment,
    ) -> Result<Self, HouseError> {
        let (hub, runs, is_new) = match memory {
            Some(it) => (
                DurableHub::recover(config, it.base, it.steps)?,
                it.runs,
                false,
            ),
            None => (DurableHub::new(Hub::new(config)?), BTreeMap::new(), true),
        };
        let dispatcher = Dispatcher::new(trigger::Config::default());
        let mut house = Self {
            hub: Driver::new(hub),
            dispatcher: Driver::new(dispatcher.map_err(trigger::Reject::from)?),
            catalogue: home.catalogue.clone(),
            names: Catalogue::new(),
            terms: BTreeMap::new(),
            location: home.location,
            ahead: None,
            records: Records::new(runs),
            rng,
            notified: BTreeMap::new(),
            changes: Changes::default(),
            todo: Vec::new(),
            refused: 0,
            counts: Counts::default(),
            troubles: BTreeMap::new(),
            has_news: false,
            latest: moment,
        };
        if !is_new {
            house.command(Command::Resume, moment)?;
        }
        let mut taken_out = Vec::new();
        for &device in gone {
            let removed = house.command(Command::RemoveDevice(device), moment);
            if let Err(Reject::DeviceInUse(_)) = removed {
                let member = Member::new(device.0, 0);
                house.step(Input::Membership(Delta::Failed(member)), moment)?;
            } else {
                taken_out.push(device);
            }
        }
        house.catalogue = without(&home.catalogue, &taken_out);
        // Another device with this number would be taken for it.
        let known = house.records.devices();
        taken_out.retain(|it| !known.contains(it));
        house.names = without(&home.catalogue, &taken_out);
        for (device, _) in home.catalogue.iter().filter(|it| !gone.contains(&it.0)) {
            let state = home.initial.get(&device).cloned();
            match house.command(Command::AddDevice { device, state }, moment) {
                Ok(()) | Err(Reject::KnownDevice(_)) => {}
                Err(reject) => return Err(reject.into()),
            }
            let lateness = home
                .lateness
                .get(&device)
                .copied()
                .unwrap_or_else(|| lateness(device));
            house.command(Command::SetLateness { device, lateness }, moment)?;
        }
        for it in &home.routines {
            let (name, routine) = (it.name.clone(), it.routine.clone());
            house.terms.insert(name.clone(), it.terms());
            house.bank(trigger::Command::AddRoutine { name, routine }, moment)?;
        }
        // The dispatcher numbers triggers in this order.
        for (it, number) in home.triggers.iter().zip(1..) {
            let (name, trigger) = (it.name.clone(), it.trigger.clone());
            house.bank(trigger::Command::AddTrigger { name, trigger }, moment)?;
            let (trigger, span) = (TriggerId(number), it.cool_down);
            house.bank(trigger::Command::SetCoolDown { trigger, span }, moment)?;
        }
        Ok(house)
    }

    /// The whole hub, in the form in which it is stored.
    #[must_use]
    pub const fn saved(&self) -> &Saved<State> {
        self.hub.machine().saved()
    }

    /// The hub, for reading.
    #[must_use]
    pub const fn hub(&self) -> &Hub<State> {
        self.hub.machine().hub()
    }

    /// The names of devices.
    #[must_use]
    pub const fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// The names of devices, also of devices that have left the file and that a kept run used: their numbers
    /// are not free yet.
    #[must_use]
    pub const fn names(&self) -> &Catalogue {
        &self.names
    }

    /// The records of runs.
    #[must_use]
    pub const fn records(&self) -> &Records {
        &self.records
    }

    /// The counters since the process began.
    fn counts(&self) -> Counts {
        let overdue = self.hub().counters().timeouts;
        Counts {
            unknown: self.counts.unknown + overdue,
            ..self.counts
        }
    }

    /// The number of runs of triggers that were refused, and of reports that came too late.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// The names of the routines that can be run, sorted.
    pub fn routines(&self) -> impl Iterator<Item = &str> {
        self.dispatcher.machine().routines()
    }

    /// Runs a routine on a person's request. It runs once [the changes](Self::take_changes) are stored.
    ///
    /// # Errors
    /// When the routine is unknown, or the hub rejects it. Nothing changes then.
    pub fn run(&mut self, name: &str, moment: Moment) -> Result<RoutineId, Refusal> {
        let routine = self.routine(name)?;
        let submitted = self.submit(name.into(), Cause::Hand, routine, moment);
        submitted.map_err(|it| Refusal::Hub(it.explain(&self.catalogue)))
    }

    fn routine(&self, name: &str) -> Result<Routine<State>, Refusal> {
        let found = self.dispatcher.machine().routine(name).cloned();
        found.ok_or_else(|| {
            let why = format!("there is no routine {name:?}: see /api/home for their names");
            Refusal::Unknown(why)
        })
    }

    /// Undoes a run that is not finished.
    ///
    /// # Errors
    /// When the run is unknown, or finished. Nothing changes then.
    pub fn cancel(&mut self, id: RoutineId, moment: Moment) -> Result<(), Refusal> {
        self.command(Command::Cancel(id), moment).map_err(|_| {
            Refusal::Unknown(format!("run {id} is unknown, or finished: see /api/home"))
        })
    }

    /// Undoes a run of this routine: the run with this number, or the latest unfinished run.
    ///
    /// # Errors
    /// When no such run is unfinished. Nothing changes then.
    pub fn cancel_of(
        &mut self,
        name: &str,
        id: Option<RoutineId>,
        moment: Moment,
    ) -> Result<RoutineId, Refusal> {
        let is_meant = |it: &(RoutineId, &Record)| {
            it.1.name == name && it.1.ended.is_none() && id.is_none_or(|id| id == it.0)
        };
        let found = self.records.latest().find(is_meant).map(|it| it.0);
        let found = found.ok_or_else(|| {
            let which = id.map_or_else(|| "no run".into(), |id| format!("no run {id}"));
            Refusal::Unknown(format!("{which} of {name:?} is under way: see /api/home"))
        })?;
        self.cancel(found, moment)?;
        Ok(found)
    }

    /// Handles an input.
    pub fn take(&mut self, happening: Happening, moment: Moment) {
        let moved = match happening {
            Happening::Clock(time, date, ahead) => {
                if self.ahead.replace(ahead).is_some_and(|it| it != ahead) {
                    // Summer time begins or ends at a full quarter of an hour: triggers since then run.
                    let quarter = TimeOfDay::from_seconds(time.seconds() / QUARTER * QUARTER);
                    let quarter = quarter.unwrap_or(time);
                    self.trigger(trigger::Command::SetClock(quarter), moment);
                }
                self.trigger(trigger::Command::SetClock(time), moment);
                if let Some(day) = self.day(date, ahead) {
                    self.trigger(trigger::Command::SetToday(day), moment);
                }
                Ok(())
            }
            Happening::Report(device, report) => self.on_report(device, report, moment),
        };
        if moved.is_err() {
            // The report came after the hub had given up the command.
            self.refuse();
        }
    }

    /// The time at which [`expire`](Self::expire) is due next.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        let both = [self.hub.deadline(), self.dispatcher.deadline()];
        both.into_iter().flatten().min()
    }

    /// Returns true if a trigger is due, so that the local clock must be read first.
    #[must_use]
    pub fn is_trigger_due(&self, now: Time) -> bool {
        self.dispatcher.deadline().is_some_and(|it| it <= now)
    }

    /// Handles the passing of time.
    pub fn expire(&mut self, moment: Moment) {
        self.latest = moment;
        let mut events = Vec::new();
        self.hub
            .expire(moment.now, &mut self.rng, |Effect::Event(it)| {
                events.push(it)
            });
        self.carry_out(events, moment);
        let mut submits = Vec::new();
        self.dispatcher
            .expire(moment.now, &mut self.rng, |Effect::Event(it)| {
                submits.push(it)
            });
        self.on_triggers(submits, moment);
        self.tell_triggers(moment);
    }

    /// Takes the changes, to store before [`take_todo`](Self::take_todo) is carried out and answers are
    /// given.
    pub fn take_changes(&mut self) -> Changes {
        self.changes.forgotten.extend(self.records.take_forgotten());
        core::mem::take(&mut self.changes)
    }

    /// Returns true if something changed that is shown and not stored, since the last call.
    pub const fn take_news(&mut self) -> bool {
        core::mem::replace(&mut self.has_news, false)
    }

    /// Takes the orders to devices.
    pub fn take_todo(&mut self) -> Vec<Todo> {
        core::mem::take(&mut self.todo)
    }

    fn command(&mut self, command: Command<State>, moment: Moment) -> Moved {
        self.step(Input::Command(command), moment)
    }

    fn step(&mut self, input: Input<DurableHub<State>>, moment: Moment) -> Moved {
        self.hub_step(input, moment)?;
        self.tell_triggers(moment);
        Ok(())
    }

    fn hub_step(&mut self, input: Input<DurableHub<State>>, moment: Moment) -> Moved {
        let events = self.hub_events(input, moment)?;
        self.carry_out(events, moment);
        Ok(())
    }

    /// The hub's result of an input.
    fn hub_events(
        &mut self,
        input: Input<DurableHub<State>>,
        moment: Moment,
    ) -> Result<Vec<DurableEvent<State>>, Reject> {
        self.latest = moment;
        let mut events = Vec::new();
        let effects = |Effect::Event(it)| events.push(it);
        self.hub.step(moment.now, &mut self.rng, input, effects)?;
        Ok(events)
    }
}

/// The names of all other devices.
fn without(catalogue: &Catalogue, devices: &[NodeId]) -> Catalogue {
    let mut others = Catalogue::new();
    for (id, name) in catalogue.iter().filter(|it| !devices.contains(&it.0)) {
        let assigned = others.assign(name, id);
        debug_assert!(assigned.is_ok(), "names and ids are there once");
    }
    others
}
