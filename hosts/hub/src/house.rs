//! The machines of a home together: the hub, the triggers, and what became of runs. Without I/O.
//!
//! [`House::take`] takes what happened, and collects what changed and what is to be done. The host stores the
//! [changes](House::take_changes) first, and then carries out the [orders](House::take_todo); so nothing of a
//! step is seen before it is stored.

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

/// A moment: on the clock that only runs, and on the one that people read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Since the process began.
    pub now: Time,
    /// Milliseconds since 1970.
    pub wall: u64,
}

/// What is to be done at a device, once all changes are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Todo {
    /// Bring it into this state.
    Set {
        /// Which one.
        device: NodeId,
        /// The command's number.
        token: u64,
        /// Which state.
        state: State,
        /// When the hub gives up.
        until: Time,
    },
    /// Ask it for its state.
    Ask {
        /// Which one.
        device: NodeId,
        /// The command's number.
        token: u64,
    },
}

/// What is to be stored before anything is done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Of the hub, in this order.
    pub steps: Vec<Difference<State>>,
    /// Runs that are new or changed.
    pub runs: BTreeMap<RoutineId, Record>,
    /// Runs that are not kept any more.
    pub forgotten: Vec<RoutineId>,
}

impl Changes {
    /// Whether there is nothing to be stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.runs.is_empty() && self.forgotten.is_empty()
    }
}

/// What a house had stored.
#[derive(Clone, Debug)]
pub struct Memory {
    /// The hub, when it was last written in whole.
    pub base: Saved<State>,
    /// What changed since.
    pub steps: Vec<Difference<State>>,
    /// The runs of old, some of which may be unfinished.
    pub runs: BTreeMap<RoutineId, Record>,
}

/// Why a house cannot begin.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HouseError {
    /// The hub's settings.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The triggers' settings, or a routine or trigger of the file.
    #[error(transparent)]
    Trigger(#[from] trigger::Reject),
    /// What was stored does not fit together, or not to the settings.
    #[error(
        "what is stored cannot be restored ({0}): raise the limits again, or put the folder aside"
    )]
    Damage(#[from] Damage),
    /// The hub refuses a device.
    #[error(transparent)]
    Device(#[from] Reject),
}

/// Why a routine is not run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// No such routine, or no such run.
    #[error("{0}")]
    Unknown(String),
    /// The hub refuses it.
    #[error("{0}")]
    Hub(String),
}

/// Something that a person or a device does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A device reports.
    Report(NodeId, Report),
    /// The local clock shows this, on this day, so many seconds ahead of UTC.
    Clock(TimeOfDay, Date, i32),
}

/// Clocks are set forward or back at a multiple of so many seconds.
const QUARTER: u32 = 900;

/// What happened since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Runs that were taken.
    pub accepted: u64,
    /// Runs that ended, and are done.
    pub committed: u64,
    /// Runs that ended, and are undone.
    pub aborted: u64,
    /// Commands that were done.
    pub done: u64,
    /// Commands that did nothing.
    pub refused: u64,
    /// Commands of which nobody knows what they did.
    pub unknown: u64,
}

type Moved = Result<(), Reject>;

/// The machines of a home.
#[derive(Debug)]
pub struct House {
    hub: Driver<DurableHub<State>>,
    dispatcher: Driver<Dispatcher<State>>,
    catalogue: Catalogue,
    /// The names of all devices, also of those that are gone and which a run that is kept had.
    names: Catalogue,
    /// On which terms each routine runs, by its name.
    terms: BTreeMap<String, Terms>,
    /// Where the sun rises.
    location: Option<Location>,
    /// How many seconds ahead of UTC the local clock was when it was told last.
    ahead: Option<i32>,
    records: Records,
    rng: ChaCha12Rng,
    /// What the triggers know of each device.
    told: BTreeMap<NodeId, Option<State>>,
    changes: Changes,
    todo: Vec<Todo>,
    refused: u64,
    counts: Counts,
    /// Why devices do not answer.
    troubles: BTreeMap<NodeId, String>,
    /// Whether something is to be shown that is not stored.
    has_news: bool,
    /// When it last moved.
    latest: Moment,
}

impl House {
    /// A house with these devices, routines and triggers, with what it remembers.
    ///
    /// A device of the catalogue that is `gone` from the file is taken out, unless a routine still
    /// needs it; then it is down.
    ///
    /// # Errors
    /// When settings, the file or what is remembered do not fit together.
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
            told: BTreeMap::new(),
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
            let removed = house.command(Command::Remove(device), moment);
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
            match house.command(Command::Device { device, state }, moment) {
                Ok(()) | Err(Reject::KnownDevice(_)) => {}
                Err(reject) => return Err(reject.into()),
            }
            let lateness = home
                .lateness
                .get(&device)
                .copied()
                .unwrap_or_else(|| lateness(device));
            house.command(Command::Lateness { device, lateness }, moment)?;
        }
        for it in &home.routines {
            let (name, routine) = (it.name.clone(), it.routine.clone());
            house.terms.insert(name.clone(), it.terms());
            house.bank(trigger::Command::Routine { name, routine }, moment)?;
        }
        // A dispatcher counts them so.
        for (it, number) in home.triggers.iter().zip(1..) {
            let (name, trigger) = (it.name.clone(), it.trigger.clone());
            house.bank(trigger::Command::Trigger { name, trigger }, moment)?;
            let (trigger, span) = (TriggerId(number), it.cool_down);
            house.bank(trigger::Command::CoolDown { trigger, span }, moment)?;
        }
        Ok(house)
    }

    /// The hub as it is to be stored in whole.
    #[must_use]
    pub const fn saved(&self) -> &Saved<State> {
        self.hub.machine().saved()
    }

    /// The hub, to read from.
    #[must_use]
    pub const fn hub(&self) -> &Hub<State> {
        self.hub.machine().hub()
    }

    /// The names of devices.
    #[must_use]
    pub const fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// The devices by name, and those that are gone and which a run that is kept had: their numbers are not
    /// free yet.
    #[must_use]
    pub const fn names(&self) -> &Catalogue {
        &self.names
    }

    /// What became of runs.
    #[must_use]
    pub const fn records(&self) -> &Records {
        &self.records
    }

    /// What was counted since the process began.
    fn counts(&self) -> Counts {
        let overdue = self.hub().counters().timeouts;
        Counts {
            unknown: self.counts.unknown + overdue,
            ..self.counts
        }
    }

    /// How many runs that triggers asked for were refused, and reports that came too late.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// The names of the routines that can be run, sorted.
    pub fn routines(&self) -> impl Iterator<Item = &str> {
        self.dispatcher.machine().routines()
    }

    /// Runs a routine, because a person says so. It runs once [the changes](Self::take_changes) are stored.
    ///
    /// # Errors
    /// When there is no such routine, or the hub refuses it. Nothing changed.
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
    /// When there is no such run, or it is finished. Nothing changed.
    pub fn cancel(&mut self, id: RoutineId, moment: Moment) -> Result<(), Refusal> {
        self.command(Command::Cancel(id), moment).map_err(|_| {
            Refusal::Unknown(format!("run {id} is unknown, or finished: see /api/home"))
        })
    }

    /// Undoes a run of this routine: the one with this number, or the latest that is not finished.
    ///
    /// # Errors
    /// When there is none, or it is finished. Nothing changed.
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

    /// Takes what happened.
    pub fn take(&mut self, happening: Happening, moment: Moment) {
        let moved = match happening {
            Happening::Clock(time, date, ahead) => {
                if self.ahead.replace(ahead).is_some_and(|it| it != ahead) {
                    // Summer time begins or ends at a full quarter of an hour: what comes from then on runs.
                    let quarter = TimeOfDay::from_seconds(time.seconds() / QUARTER * QUARTER);
                    let quarter = quarter.unwrap_or(time);
                    self.trigger(trigger::Command::Clock(quarter), moment);
                }
                self.trigger(trigger::Command::Clock(time), moment);
                if let Some(day) = self.day(date, ahead) {
                    self.trigger(trigger::Command::Today(day), moment);
                }
                Ok(())
            }
            Happening::Report(device, report) => self.on_report(device, report, moment),
        };
        if moved.is_err() {
            // What the hub does not expect any more came after it gave up.
            self.refuse();
        }
    }

    /// When time has to pass next.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        let both = [self.hub.deadline(), self.dispatcher.deadline()];
        both.into_iter().flatten().min()
    }

    /// Whether a trigger is about to come, so that the local clock is to be told before.
    #[must_use]
    pub fn is_trigger_due(&self, now: Time) -> bool {
        self.dispatcher.deadline().is_some_and(|it| it <= now)
    }

    /// Time has passed.
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

    /// What is to be stored before [`take_todo`](Self::take_todo) is carried out and answers are given.
    pub fn take_changes(&mut self) -> Changes {
        self.changes.forgotten.extend(self.records.take_forgotten());
        core::mem::take(&mut self.changes)
    }

    /// Whether something is to be shown that is not stored.
    pub const fn take_news(&mut self) -> bool {
        core::mem::replace(&mut self.has_news, false)
    }

    /// What is to be done.
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
