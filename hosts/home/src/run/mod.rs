//! Runs a hub with virtual devices in virtual time.

mod device;
mod judge;
mod plan;
mod record;
mod triggers;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use selvedge_core::{Choose, Delta, Driver, Effect, Input, Member, NodeId, Time};
use selvedge_routine::State;
use selvedge_routine::trigger::{self, Dispatcher};
use selvedge_safehome::{Command, Hub, Placed, Reject, Routine, RoutineId, Terms};

use super::trace::Trace;
use device::Thing;
use record::Running;

pub(crate) use judge::Outcomes;
pub use plan::{Outage, Plan};

/// An observer of a run.
pub trait Watch {
    /// Reports the present time; an observer that wants a slower run waits here.
    fn reach(&mut self, now: Time);

    /// Reports an event.
    fn say(&mut self, now: Time, what: &str);
}

/// An observer that does nothing.
impl Watch for () {
    fn reach(&mut self, _: Time) {}
    fn say(&mut self, _: Time, _: &str) {}
}

/// An event at a set time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Fails(NodeId),
    Restarts(NodeId),
    NoticeFailed(NodeId),
    NoticeRestarted(NodeId),
    Lands(NodeId, u64),
    Arrives(usize),
    Hand(NodeId, State),
}

/// Runs the plan to its end and returns the outcome.
///
/// # Errors
/// If the hub refuses a setting, a device or a routine.
pub fn run<C: Choose>(
    plan: &Plan,
    choices: C,
    watch: &mut impl Watch,
) -> Result<super::Report, Reject> {
    let mut dispatcher = Dispatcher::new(trigger::Config::default())
        .map_err(|_| Reject::Empty)
        .map(Driver::new)?;
    let mut stage = Stage {
        plan,
        choices,
        hub: Driver::new(Hub::new(plan.config)?),
        now: Time::ZERO,
        due: BinaryHeap::new(),
        things: BTreeMap::new(),
        trace: Trace::default(),
        runs: BTreeMap::new(),
        placed: Vec::new(),
        coming: None,
        observed: VecDeque::new(),
        watch,
    };
    stage.set_up()?;
    stage.triggers(&mut dispatcher);
    stage.play(&mut dispatcher)?;
    let explained = stage.explained();
    let devices = stage.things.iter();
    let devices = devices.map(|(&id, it)| (id, (it.state.clone(), it.is_up)));
    let mut outcomes = Outcomes {
        devices: devices.collect(),
        explained,
        trace: stage.trace,
    };
    outcomes.trace.end = stage.now;
    Ok(super::Report::new(
        plan,
        outcomes,
        *stage.hub.machine().counters(),
    ))
}

struct Stage<'a, C, W> {
    plan: &'a Plan,
    choices: C,
    hub: Driver<Hub<State>>,
    now: Time,
    due: BinaryHeap<Reverse<(Time, Due)>>,
    things: BTreeMap<NodeId, Thing>,
    trace: Trace,
    runs: BTreeMap<RoutineId, Running>,
    /// The serial order, with everything that has a place in it.
    placed: Vec<Placed<State>>,
    /// The routine that the hub is about to accept.
    coming: Option<(String, Routine<State>)>,
    /// Observations for the dispatcher.
    observed: VecDeque<(NodeId, State)>,
    watch: &'a mut W,
}

impl<C: Choose, W: Watch> Stage<'_, C, W> {
    fn set_up(&mut self) -> Result<(), Reject> {
        for (device, _) in self.plan.home.catalogue.iter() {
            let state = self.plan.home.initial.get(&device).cloned();
            let thing = Thing {
                state: state.clone(),
                is_up: true,
                life: 0,
                noticed: false,
                flight: None,
            };
            self.things.insert(device, thing);
            self.input(Input::Command(Command::AddDevice { device, state }))?;
            if let Some(&lateness) = self.plan.home.lateness.get(&device) {
                let command = Command::SetLateness { device, lateness };
                self.input(Input::Command(command))?;
            }
            let member = Member::new(device.0, 0);
            self.input(Input::Membership(Delta::Joined(member)))?;
        }
        for outage in Outage::merged(&self.plan.outages) {
            self.after(outage.from, Due::Fails(outage.device));
            self.after(outage.until, Due::Restarts(outage.device));
        }
        for &(at, nth) in &self.plan.arrivals {
            self.after(at, Due::Arrives(nth));
        }
        for (at, device, state) in &self.plan.hands {
            self.after(*at, Due::Hand(*device, state.clone()));
        }
        Ok(())
    }

    fn play(&mut self, dispatcher: &mut Driver<Dispatcher<State>>) -> Result<(), Reject> {
        loop {
            let happens = self.due.peek().map(|Reverse((at, _))| *at);
            let hub = self.hub.deadline();
            let end = Time::ZERO + self.plan.length;
            let triggered = dispatcher.deadline().filter(|it| *it <= end);
            let Some(next) = [happens, hub, triggered].into_iter().flatten().min() else {
                return Ok(());
            };
            self.now = self.now.max(next);
            self.watch.reach(self.now);
            if happens.is_some_and(|it| it <= self.now) {
                if let Some(Reverse((_, due))) = self.due.pop() {
                    self.happen(due)?;
                }
            } else if hub.is_some_and(|it| it <= self.now) {
                let mut effects = Vec::new();
                self.hub
                    .expire_into(self.now, &mut self.choices, &mut effects);
                self.carry_out(effects);
            } else {
                let mut effects = Vec::new();
                dispatcher.expire_into(self.now, &mut self.choices, &mut effects);
                self.submit_all(effects)?;
            }
            self.tell_changes(dispatcher, end)?;
        }
    }

    fn happen(&mut self, due: Due) -> Result<(), Reject> {
        match due {
            Due::Arrives(nth) => {
                if let Some(it) = self.plan.home.routines.get(nth) {
                    let (name, routine) = (it.name.clone(), it.routine.clone());
                    let terms = it.terms();
                    self.submit(name, routine, terms)?;
                }
            }
            Due::Hand(device, state) => self.by_hand(device, state)?,
            Due::Fails(device) => self.fails(device),
            Due::Restarts(device) => self.restarts(device),
            Due::NoticeFailed(device) => self.notice_failed(device)?,
            Due::NoticeRestarted(device) => self.notice_restarted(device)?,
            Due::Lands(device, token) => self.land(device, token)?,
        }
        Ok(())
    }

    /// Submits a routine. A refusal by its mode is no fault of the home.
    fn submit(
        &mut self,
        name: String,
        routine: Routine<State>,
        terms: Terms,
    ) -> Result<(), Reject> {
        self.coming = Some((name, routine.clone()));
        let submit = Command::SubmitAs { routine, terms };
        match self.input(Input::Command(submit)) {
            Err(reject @ (Reject::Unfinished { .. } | Reject::QueueFull { .. })) => {
                self.coming = None;
                self.watch.say(self.now, &reject.to_string());
                Ok(())
            }
            notified => notified,
        }
    }

    fn after(&mut self, at: Time, due: Due) {
        self.due.push(Reverse((at, due)));
    }

    fn input(&mut self, input: Input<Hub<State>>) -> Result<(), Reject> {
        let mut effects = Vec::new();
        let notified = self
            .hub
            .step_into(self.now, &mut self.choices, input, &mut effects);
        self.carry_out(effects);
        notified
    }

    fn carry_out(&mut self, effects: Vec<Effect<Hub<State>>>) {
        for effect in effects {
            // A hub sends no messages.
            let Effect::Event(event) = effect;
            self.take(event);
        }
    }
}
