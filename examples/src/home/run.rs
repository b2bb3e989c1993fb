//! Runs a hub with virtual devices in virtual time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use selvedge_core::{Choose, Delta, Driver, Effect, Input, Member, NodeId, Span, Time};
use selvedge_safehome::file::Home;
use selvedge_safehome::trigger::{self, Dispatcher, TimeOfDay};
use selvedge_safehome::{
    Command, Config, Event, Hub, Outcome, Placed, Reject, Routine, RoutineId, Skip, State,
};

use super::trace::{Access, End, Happened, Occurrence, Restore, Trace};

/// How often the hub asks a device whether it is there, and how long it waits for the answer
/// (section 6).
const PING: Span = Span::secs(1);
const PING_TIMEOUT: Span = Span::millis(100);
/// How long a device takes to do a command: from this, and up to so much longer.
const FASTEST: Span = Span::millis(30);
const SLOWER: u64 = 70_000;

/// What is to happen.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Devices, routines and triggers.
    pub home: Home,
    /// Which routines come when.
    pub arrivals: Vec<(Time, usize)>,
    /// Which devices are down when. A device is down as long as one of them says so.
    pub outages: Vec<Outage>,
    /// The hub's settings.
    pub config: Config,
    /// What the local clock shows at the start. With it the triggers of the home run.
    pub clock: Option<TimeOfDay>,
    /// Until when triggers run.
    pub length: Span,
}

/// A device is down for a while. Its state survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// Which device.
    pub device: NodeId,
    /// From when.
    pub from: Time,
    /// Until when.
    pub until: Time,
}

impl Outage {
    /// Those of one device that overlap, or follow each other at once, are one: else it would be
    /// back at the end of the first, though another one says that it is down.
    fn merged(outages: &[Self]) -> Vec<Self> {
        let mut sorted = outages.to_vec();
        sorted.sort_by_key(|it| (it.device, it.from));
        let mut merged: Vec<Self> = Vec::new();
        for outage in sorted {
            match merged.last_mut() {
                Some(last) if last.device == outage.device && outage.from <= last.until => {
                    last.until = last.until.max(outage.until);
                }
                _ => merged.push(outage),
            }
        }
        merged
    }
}

/// Somebody who watches a run.
pub trait Watch {
    /// It is this late now; whoever wants a slower run waits here.
    fn reach(&mut self, now: Time);

    /// Something happened.
    fn say(&mut self, now: Time, what: &str);
}

/// Who watches nothing.
impl Watch for () {
    fn reach(&mut self, _: Time) {}
    fn say(&mut self, _: Time, _: &str) {}
}

/// What comes at its time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Fails(NodeId),
    Restarts(NodeId),
    NoticeFailed(NodeId),
    NoticeRestarted(NodeId),
    Lands(NodeId, u64),
    Arrives(usize),
}

/// A device as it is.
#[derive(Clone, Debug)]
struct Thing {
    state: Option<State>,
    is_up: bool,
    life: u32,
    noticed: bool,
    /// The command that it works on.
    flight: Option<(u64, State)>,
}

/// How it went.
#[derive(Clone, Debug)]
pub(crate) struct Outcomes {
    /// What happened.
    pub(crate) trace: Trace,
    /// The state of each device at the end, and whether it is up.
    pub(crate) devices: BTreeMap<NodeId, (Option<State>, bool)>,
    /// Whether the serial order that the hub told gives the states that devices are in; `None` if
    /// it tells none, or if a device could not be restored.
    pub(crate) explained: Option<bool>,
}

/// Runs the plan to its end and says what happened.
///
/// # Errors
/// When the hub refuses a setting, a device or a routine.
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
        stage.hub.machine().counters(),
    ))
}

/// What is remembered of a run besides the trace.
struct Running {
    /// The next command.
    at: usize,
    /// Since when it could have been issued.
    ready: Time,
    /// The place of its last command in the trace.
    last: Option<usize>,
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
    /// The serial order with all that has its place there.
    placed: Vec<Placed<State>>,
    /// The routine that the hub is about to take.
    coming: Option<(String, Routine<State>)>,
    /// What the dispatcher is to be told.
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
            self.input(Input::Command(Command::Device { device, state }))?;
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
        Ok(())
    }

    fn triggers(&mut self, dispatcher: &mut Driver<Dispatcher<State>>) {
        let Some(clock) = self.plan.clock else {
            return;
        };
        let home = &self.plan.home;
        let states = home.initial.iter();
        let states = states.map(|(&device, state)| trigger::Command::Observed {
            device,
            state: Some(state.clone()),
        });
        let routines = home.routines.iter().map(|it| trigger::Command::Routine {
            name: it.name.clone(),
            routine: it.routine.clone(),
        });
        let triggers = home.triggers.iter().map(|it| trigger::Command::Trigger {
            name: it.name.clone(),
            trigger: it.trigger.clone(),
        });
        let clock = [trigger::Command::Clock(clock)];
        for command in states.chain(routines).chain(triggers).chain(clock) {
            let told =
                dispatcher.step(self.now, &mut self.choices, Input::Command(command), |_| {});
            if let Err(reject) = told {
                self.watch.say(self.now, &reject.to_string());
            }
        }
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
                    .expire(self.now, &mut self.choices, |it| effects.push(it));
                self.carry_out(effects);
            } else {
                let mut effects = Vec::new();
                dispatcher.expire(self.now, &mut self.choices, |it| effects.push(it));
                self.submit_all(effects)?;
            }
            while let Some((device, state)) = self.observed.pop_front() {
                if self.plan.clock.is_none() || self.now > end {
                    continue;
                }
                let state = Some(state);
                let command = trigger::Command::Observed { device, state };
                let mut effects = Vec::new();
                let input = Input::Command(command);
                let told =
                    dispatcher.step(self.now, &mut self.choices, input, |it| effects.push(it));
                if let Err(reject) = told {
                    self.watch.say(self.now, &reject.to_string());
                }
                self.submit_all(effects)?;
            }
        }
    }

    fn submit_all(&mut self, effects: Vec<Effect<Dispatcher<State>>>) -> Result<(), Reject> {
        for effect in effects {
            if let Effect::Event(trigger::Event::Submit { name, routine, .. }) = effect {
                self.coming = Some((name, routine.clone()));
                self.input(Input::Command(Command::Submit(routine)))?;
            }
        }
        Ok(())
    }

    fn happen(&mut self, due: Due) -> Result<(), Reject> {
        match due {
            Due::Arrives(nth) => {
                if let Some(it) = self.plan.home.routines.get(nth) {
                    self.coming = Some((it.name.clone(), it.routine.clone()));
                    let submit = Command::Submit(it.routine.clone());
                    self.input(Input::Command(submit))?;
                }
            }
            Due::Fails(device) => {
                self.note(device, Happened::Failed);
                if let Some(thing) = self.things.get_mut(&device) {
                    thing.is_up = false;
                    thing.flight = None;
                }
                let next = (self.now.0 / PING.0 + 1) * PING.0;
                self.after(Time(next) + PING_TIMEOUT, Due::NoticeFailed(device));
            }
            Due::Restarts(device) => {
                self.note(device, Happened::Restarted);
                if let Some(thing) = self.things.get_mut(&device) {
                    thing.is_up = true;
                    thing.life += 1;
                }
                let next = (self.now.0 / PING.0 + 1) * PING.0;
                self.after(Time(next), Due::NoticeRestarted(device));
            }
            Due::NoticeFailed(device) => {
                let Some(thing) = self.things.get_mut(&device) else {
                    return Ok(());
                };
                if !thing.is_up && !thing.noticed {
                    thing.noticed = true;
                    let member = Member::new(device.0, thing.life);
                    self.note(device, Happened::FailureNoticed);
                    self.input(Input::Membership(Delta::Failed(member)))?;
                }
            }
            Due::NoticeRestarted(device) => {
                let Some(thing) = self.things.get_mut(&device) else {
                    return Ok(());
                };
                if thing.is_up {
                    thing.noticed = false;
                    let member = Member::new(device.0, thing.life);
                    self.note(device, Happened::RestartNoticed);
                    self.input(Input::Membership(Delta::Joined(member)))?;
                }
            }
            Due::Lands(device, token) => self.land(device, token)?,
        }
        Ok(())
    }

    /// A device has done what it was told.
    fn land(&mut self, device: NodeId, token: u64) -> Result<(), Reject> {
        let Some(thing) = self.things.get_mut(&device) else {
            return Ok(());
        };
        // What it was told before it failed, it forgot.
        let Some((_, state)) = thing.flight.take_if(|it| it.0 == token) else {
            return Ok(());
        };
        thing.state = Some(state.clone());
        self.observed.push_back((device, state));
        self.landed(device);
        let outcome = Outcome::Done;
        self.input(Input::Command(Command::Outcome {
            device,
            token,
            outcome,
        }))
    }

    /// The trace learns of it before the hub, so that what follows finds it there.
    fn landed(&mut self, device: NodeId) {
        let now = self.now;
        let open = |it: &&mut Restore| it.device == device && it.until == Time(u64::MAX);
        if let Some(restore) = self.trace.restores.iter_mut().rev().find(open) {
            restore.until = now;
            restore.done = true;
            return;
        }
        let open = |it: &&mut Access| it.device == device && it.until == Time(u64::MAX);
        if let Some(access) = self.trace.accesses.iter_mut().rev().find(open)
            && let Some(run) = self.runs.get_mut(&access.routine)
        {
            let occurrence = self.trace.occurrences.get(&access.routine);
            let step = occurrence.and_then(|it| it.routine.steps.get(usize::from(access.step)));
            access.until = now + step.map_or(Span::ZERO, |it| it.hold);
            access.done = true;
            run.ready = access.until;
        }
    }

    fn after(&mut self, at: Time, due: Due) {
        self.due.push(Reverse((at, due)));
    }

    fn note(&mut self, device: NodeId, what: Happened) {
        self.trace.happened.push((self.now, device, what));
        let words = match what {
            Happened::Failed => "fails",
            Happened::FailureNoticed => "is found down",
            Happened::Restarted => "restarts",
            Happened::RestartNoticed => "is found up again",
            Happened::Stuck => "refuses to be restored and is left as it is",
        };
        let name = self.plan.home.catalogue.shown(device);
        self.watch.say(self.now, &format!("{name} {words}"));
    }

    fn input(&mut self, input: Input<Hub<State>>) -> Result<(), Reject> {
        let mut effects = Vec::new();
        let told = self
            .hub
            .step(self.now, &mut self.choices, input, |it| effects.push(it));
        self.carry_out(effects);
        told
    }

    fn carry_out(&mut self, effects: Vec<Effect<Hub<State>>>) {
        for effect in effects {
            // A hub sends nothing.
            let Effect::Event(event) = effect;
            self.take(event);
        }
    }

    fn take(&mut self, event: Event<State>) {
        let now = self.now;
        match event {
            Event::Accepted(id) => {
                let Some((name, routine)) = self.coming.take() else {
                    return;
                };
                let occurrence = Occurrence {
                    name,
                    routine,
                    arrived: now,
                    started: None,
                    ended: None,
                    skipped: Vec::new(),
                    hidden: None,
                };
                let running = Running {
                    at: 0,
                    ready: now,
                    last: None,
                };
                self.trace.occurrences.insert(id, occurrence);
                self.runs.insert(id, running);
            }
            Event::Started(id) => {
                if let Some(it) = self.trace.occurrences.get_mut(&id) {
                    it.started = Some(now);
                }
            }
            Event::Issue {
                device,
                token,
                value,
                routine,
            } => self.issue(device, token, value, routine),
            // Commands are asked for after the hub's own restart only.
            Event::Ask { .. } => {}
            Event::Skipped { routine, step, why } => self.skipped(routine, step, why),
            Event::Committed(id) => self.ended(id, End::Committed),
            Event::Aborting { routine, why } => {
                self.cut(routine);
                if let Some(it) = self.trace.occurrences.get(&routine) {
                    let why = self.plan.home.catalogue.why(why, &it.routine);
                    self.tell(routine, &format!("is aborted: {why}"));
                }
            }
            Event::Aborted { routine, why, .. } => {
                self.cut(routine);
                self.ended(routine, End::Aborted(why));
            }
            Event::Restored(device) => {
                let name = self.plan.home.catalogue.shown(device);
                self.watch.say(now, &format!("{name} is as it was before"));
            }
            Event::Stuck(device) => self.note(device, Happened::Stuck),
            Event::Ordered(placed) => {
                if let Placed::Routine(id) = placed {
                    self.trace.order.push(id);
                }
                self.placed.push(placed);
            }
            Event::Incongruent {
                routine,
                device,
                by,
            } => {
                if let Some(it) = self.trace.occurrences.get_mut(&routine) {
                    it.hidden = Some((by, device));
                }
            }
        }
    }

    fn issue(&mut self, device: NodeId, token: u64, state: State, routine: Option<RoutineId>) {
        let now = self.now;
        self.give_up(device);
        if let Some(thing) = self.things.get_mut(&device)
            && thing.is_up
        {
            thing.flight = Some((token, state.clone()));
            let after = FASTEST + Span(self.choices.below(SLOWER));
            self.after(now + after, Due::Lands(device, token));
        }
        let Some(routine) = routine else {
            self.trace.restores.push(Restore {
                device,
                state,
                from: now,
                until: Time(u64::MAX),
                done: false,
            });
            return;
        };
        if let Some(run) = self.runs.get_mut(&routine) {
            run.last = Some(self.trace.accesses.len());
            self.trace.accesses.push(Access {
                routine,
                step: u16::try_from(run.at).unwrap_or(u16::MAX),
                device,
                state,
                waited: run.ready,
                from: now,
                until: Time(u64::MAX),
                done: false,
            });
            run.at += 1;
        }
    }

    /// What had no answer so far gets none.
    fn give_up(&mut self, device: NodeId) {
        let now = self.now;
        let open = self.trace.accesses.iter_mut().rev();
        if let Some(it) = open.into_iter().find(|it| it.device == device)
            && it.until == Time(u64::MAX)
        {
            it.until = now;
        }
        let open = self.trace.restores.iter_mut().rev();
        if let Some(it) = open.into_iter().find(|it| it.device == device)
            && it.until == Time(u64::MAX)
        {
            it.until = now;
        }
    }

    fn skipped(&mut self, id: RoutineId, step: u16, why: Skip) {
        self.cut(id);
        let now = self.now;
        if let Some(run) = self.runs.get_mut(&id) {
            run.at = usize::from(step) + 1;
            run.ready = now;
        }
        if let Some(it) = self.trace.occurrences.get_mut(&id) {
            it.skipped.push((step, why));
        }
    }

    /// The last command of a routine is over now, if it is not yet.
    fn cut(&mut self, id: RoutineId) {
        let last = self.runs.get(&id).and_then(|run| run.last);
        if let Some(it) = last.and_then(|at| self.trace.accesses.get_mut(at)) {
            it.until = it.until.min(self.now);
        }
    }

    fn ended(&mut self, id: RoutineId, end: End) {
        let now = self.now;
        if let Some(it) = self.trace.occurrences.get_mut(&id) {
            it.ended = Some((now, end));
        }
        if end == End::Committed {
            self.tell(id, "is done");
        }
    }

    fn tell(&mut self, id: RoutineId, what: &str) {
        if let Some(it) = self.trace.occurrences.get(&id) {
            let line = format!("{} {} {what}", id.0, it.name);
            self.watch.say(self.now, &line);
        }
    }

    /// Whether the serial order gives the states that devices are in.
    fn explained(&self) -> Option<bool> {
        let strict = self.plan.config.visibility != selvedge_safehome::Visibility::Weak;
        let restored = self.things.values().all(|it| it.is_up)
            && !self.trace.happened.iter().any(|it| it.2 == Happened::Stuck);
        if !strict || !restored {
            return None;
        }
        let mut states: BTreeMap<NodeId, Option<State>> = BTreeMap::new();
        for &device in self.things.keys() {
            states.insert(device, self.plan.home.initial.get(&device).cloned());
        }
        for placed in &self.placed {
            match placed {
                Placed::Routine(id) => {
                    let Some(it) = self.trace.occurrences.get(id) else {
                        return Some(false);
                    };
                    for (nth, step) in it.routine.steps.iter().enumerate() {
                        if !it.skipped.iter().any(|(at, _)| usize::from(*at) == nth) {
                            states.insert(step.device, Some(step.value.clone()));
                        }
                    }
                }
                Placed::Set { device, state } => {
                    states.insert(*device, state.clone());
                }
                Placed::Failed(_) | Placed::Restarted(_) => {}
            }
        }
        let mut things = self.things.iter();
        Some(things.all(|(id, it)| states.get(id) == Some(&it.state)))
    }
}
