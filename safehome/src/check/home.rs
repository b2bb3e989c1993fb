//! A home to be checked: a hub, its devices, and what happens.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::{Context, Delta, Input, Machine, Member, Nested, NodeId, Span};
use selvedge_sim::check::{Bounds, Model, State};

use crate::lineage::Owner;
use crate::run::Stage;
use crate::{
    Command, Comparison, Condition, Config, Event, Hub, Outcome, Placed, Priority, Published,
    Reject, Routine, RoutineId, Scheduler, Skip, Step, Timer, Visibility,
};

/// A command of a routine in a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Do {
    /// Which device.
    pub device: u64,
    /// Into which state.
    pub value: u8,
    /// See [`Priority`].
    pub priority: Priority,
    /// Whether the device is needed for longer.
    pub holds: bool,
    /// See [`Step::undo`].
    pub undo: Option<u8>,
    /// Only if this device is in this state.
    pub only_if: Option<(u64, u8)>,
}

impl Do {
    /// A short command that must succeed.
    #[must_use]
    pub const fn set(device: u64, value: u8) -> Self {
        Self {
            device,
            value,
            priority: Priority::Must,
            holds: false,
            undo: None,
            only_if: None,
        }
    }

    /// One that need not.
    #[must_use]
    pub const fn maybe(device: u64, value: u8) -> Self {
        Self {
            priority: Priority::BestEffort,
            ..Self::set(device, value)
        }
    }

    /// A long one.
    #[must_use]
    pub const fn long(device: u64, value: u8) -> Self {
        Self {
            holds: true,
            ..Self::set(device, value)
        }
    }

    fn step(self) -> Step<u8> {
        let condition = |(device, value)| Condition {
            device: NodeId(device),
            comparison: Comparison::Equal,
            value,
        };
        Step {
            priority: self.priority,
            hold: Span::secs(u64::from(self.holds)),
            undo: self.undo,
            condition: self.only_if.map(condition),
            ..Step::new(NodeId(self.device), self.value)
        }
    }
}

/// What happens once, at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Happening {
    /// A routine is submitted.
    Submit(&'static [Do]),
    /// The routine that is submitted by the happening with this number is cancelled, some time
    /// later.
    Cancel(usize),
    /// A device fails.
    Fails(u64),
    /// A device fails, and is back later.
    Restarts(u64),
    /// The hub restarts with the state that it saved. What it had just issued may not have been
    /// carried out, and what it was just told may not have been saved; devices can be asked.
    Resumes,
}

/// What is checked.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// How many devices there are, from 0, each in state 0.
    pub devices: u64,
    /// What happens.
    pub happenings: &'static [Happening],
    /// Whether it happens in this order.
    pub in_order: bool,
    /// How many commands live devices refuse or do not answer.
    pub faults: u8,
    /// See [`Config::visibility`].
    pub visibility: Visibility,
    /// See [`Config::scheduler`].
    pub scheduler: Scheduler,
    /// Rules that differ from ours.
    pub rules: &'static [Published],
    /// The only promise to look at; all of them, if none is named.
    pub only: Option<Promise>,
}

/// A promise of the crate, as a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// In the end the devices are as if the committed routines had run one by one, in the order
    /// that was told, and each saw what it would have seen.
    Serializable,
    /// A device has one command on its way at a time.
    OneCommand,
    /// Who released a device stands before who uses it, and that one before all others; no two
    /// routines come before each other (invariants 2 to 4 of section 4.3).
    Invariants,
    /// From every state there is a way to one in which all routines are finished.
    NoHang,
}

/// A hub with its devices.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Home {
    hub: Nested<Hub<u8>>,
    things: Vec<Thing>,
    happenings: &'static [Happening],
    in_order: bool,
    /// The routine of each happening, if it is one and has happened.
    submitted: Vec<Option<RoutineId>>,
    faults: u8,
    skipped: Vec<(RoutineId, u16, Skip)>,
    /// The serial order that was told.
    order: Vec<Placed<u8>>,
    /// How many are committed or aborted.
    finished: usize,
    /// A command was issued to a device that had one.
    clash: bool,
}

/// A device as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
struct Thing {
    state: u8,
    is_down: bool,
    flight: Option<(u64, u8)>,
    /// The hub asks for its state, with this token.
    asked: Option<u64>,
}

/// What can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tick {
    /// What is planned.
    Happens(usize),
    /// A device that failed is back.
    IsBack(u64),
    /// A device does its command and says so.
    Does(u64),
    /// A device refuses its command.
    Refuses(u64),
    /// A device says in which state it is.
    Answers(u64),
    /// One of the hub's timers; after that of a command nobody knows whether it was done.
    Hub(Timer),
}

impl Home {
    fn new(setup: &Setup) -> Self {
        let config = Config {
            visibility: setup.visibility,
            scheduler: setup.scheduler,
            undo_attempts: u8::MAX,
            ..Config::default()
        };
        Self {
            hub: Nested::new(Hub::unchecked(
                config,
                crate::published::Rules::published(setup.rules),
            )),
            things: vec![Thing::default(); usize::try_from(setup.devices).unwrap_or_default()],
            happenings: setup.happenings,
            in_order: setup.in_order,
            submitted: vec![None; setup.happenings.len()],
            faults: setup.faults,
            skipped: Vec::new(),
            order: Vec::new(),
            finished: 0,
            clash: false,
        }
    }

    /// The hub.
    #[must_use]
    pub const fn hub(&self) -> &Hub<u8> {
        self.hub.machine()
    }

    fn begin(&mut self, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        for nth in 0..self.things.len() as u64 {
            let device = NodeId(nth);
            let state = Some(0);
            self.tell(Input::Command(Command::Device { device, state }), cx)?;
        }
        let first = if self.in_order {
            1
        } else {
            self.happenings.len()
        };
        (0..first).for_each(|nth| self.expect(nth, cx));
        Ok(())
    }

    /// From now on this may happen.
    fn expect(&self, nth: usize, cx: &mut Context<'_, Self>) {
        let is_ready = match self.happenings.get(nth) {
            Some(Happening::Cancel(which)) => {
                self.submitted.get(*which).is_some_and(Option::is_some)
            }
            Some(_) => true,
            None => false,
        };
        if is_ready {
            cx.arm(Tick::Happens(nth), Span::secs(1));
        }
    }

    fn tell(&mut self, input: Input<Hub<u8>>, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        let Self {
            hub,
            things,
            skipped,
            order,
            finished,
            clash,
            faults,
            ..
        } = self;
        hub.step(
            cx,
            input,
            |message| match message {},
            Tick::Hub,
            |event, cx| match event {
                Event::Issue {
                    device,
                    token,
                    value,
                    ..
                } => {
                    let id = device.0;
                    if let Some(thing) = things.get_mut(usize::try_from(id).unwrap_or(usize::MAX)) {
                        *clash |= thing.flight.is_some();
                        thing.flight = Some((token, value));
                        if !thing.is_down {
                            cx.arm(Tick::Does(id), Span::ZERO);
                            if *faults > 0 {
                                cx.arm(Tick::Refuses(id), Span::ZERO);
                            }
                        }
                    }
                }
                Event::Ask { device, token } => {
                    let id = device.0;
                    if let Some(thing) = things.get_mut(usize::try_from(id).unwrap_or(usize::MAX)) {
                        thing.asked = Some(token);
                        if !thing.is_down {
                            cx.arm(Tick::Answers(id), Span::ZERO);
                        }
                    }
                }
                Event::Skipped { routine, step, why } => skipped.push((routine, step, why)),
                Event::Ordered(placed @ (Placed::Routine(_) | Placed::Set { .. })) => {
                    order.push(placed);
                }
                Event::Committed(_) | Event::Aborted { .. } => *finished += 1,
                Event::Accepted(_)
                | Event::Started(_)
                | Event::Aborting { .. }
                | Event::Restored(_)
                | Event::Stuck(_)
                | Event::Ordered(_)
                | Event::Incongruent { .. } => {}
            },
        )
    }

    fn happens(&mut self, nth: usize, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        let happenings = self.happenings;
        match happenings.get(nth) {
            Some(&Happening::Submit(steps)) => {
                let steps = steps.iter().map(|it| it.step()).collect();
                let next = RoutineId(self.hub().last.0 + 1);
                if let Some(submitted) = self.submitted.get_mut(nth) {
                    *submitted = Some(next);
                }
                self.tell(Input::Command(Command::Submit(Routine { steps })), cx)?;
                if !self.in_order {
                    for (other, it) in happenings.iter().enumerate() {
                        if *it == Happening::Cancel(nth) {
                            self.expect(other, cx);
                        }
                    }
                }
            }
            Some(&Happening::Cancel(which)) => {
                if let Some(Some(routine)) = self.submitted.get(which) {
                    let is_open = self.hub().unfinished().any(|it| it.0 == *routine);
                    if is_open {
                        let cancel = Command::Cancel(*routine);
                        self.tell(Input::Command(cancel), cx)?;
                    }
                }
            }
            Some(&(Happening::Fails(id) | Happening::Restarts(id))) => {
                if let Some(thing) = self.thing(id) {
                    thing.is_down = true;
                }
                cx.disarm(Tick::Answers(id));
                cx.disarm(Tick::Does(id));
                cx.disarm(Tick::Refuses(id));
                if let Some(Happening::Restarts(_)) = happenings.get(nth) {
                    cx.arm(Tick::IsBack(id), Span::secs(1));
                }
                self.tell(Input::Membership(Delta::Failed(Member::new(id, 0))), cx)?;
            }
            Some(Happening::Resumes) => self.resumes(cx)?,
            None => {}
        }
        if self.in_order {
            self.expect(nth + 1, cx);
        }
        Ok(())
    }

    /// The hub comes back with what it saved, and without timers.
    fn resumes(&mut self, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        for timer in self.hub().timers() {
            cx.disarm(Tick::Hub(timer));
        }
        let (config, rules) = (*self.hub().config(), self.hub().rules);
        match Hub::restore(config, self.hub().save()) {
            Ok(mut hub) => {
                hub.rules = rules;
                self.hub = Nested::new(hub);
            }
            // No property says so; this one breaks in its place.
            Err(_) => self.clash = true,
        }
        self.tell(Input::Command(Command::Resume), cx)
    }

    /// The device says in which state it is. Whether its command was done is decided by then.
    fn answers(&mut self, id: u64, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        let Some(thing) = self.thing(id) else {
            return Ok(());
        };
        let Some(token) = thing.asked.take() else {
            return Ok(());
        };
        if let Some((_, value)) = thing.flight.take()
            && cx.below(2) == 1
        {
            thing.state = value;
        }
        let (device, state) = (NodeId(id), thing.state);
        cx.disarm(Tick::Does(id));
        cx.disarm(Tick::Refuses(id));
        let answer = Command::Answered {
            device,
            token,
            state,
        };
        self.tell(Input::Command(answer), cx)
    }

    fn thing(&mut self, id: u64) -> Option<&mut Thing> {
        self.things.get_mut(usize::try_from(id).ok()?)
    }

    /// The device's command has this outcome, and it is told.
    fn lands(
        &mut self,
        id: u64,
        outcome: Outcome,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        let Some(thing) = self.thing(id) else {
            return Ok(());
        };
        let Some((token, value)) = thing.flight.take() else {
            return Ok(());
        };
        thing.asked = None;
        cx.disarm(Tick::Answers(id));
        cx.disarm(Tick::Does(id));
        cx.disarm(Tick::Refuses(id));
        if outcome == Outcome::Done {
            thing.state = value;
        }
        let device = NodeId(id);
        let command = Command::Outcome {
            device,
            token,
            outcome,
        };
        match self.tell(Input::Command(command), cx) {
            // The hub no longer waits for it: so do published rules.
            Err(Reject::UnknownToken { .. }) => Ok(()),
            other => other,
        }
    }

    /// Nobody knows what became of the command.
    fn times_out(&mut self, device: NodeId, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        let (id, faults) = (device.0, self.faults);
        let Some(thing) = self.thing(id) else {
            return Ok(());
        };
        if !thing.is_down && faults == 0 {
            // A live device answers in time.
            cx.arm(Tick::Hub(Timer::Timeout(device)), Span::secs(5));
            return Ok(());
        }
        let is_fault = !thing.is_down;
        let flight = thing.flight.take();
        thing.asked = None;
        if let Some((_, value)) = flight
            && cx.below(2) == 1
        {
            thing.state = value;
        }
        if is_fault {
            self.faults -= 1;
        }
        cx.disarm(Tick::Answers(id));
        cx.disarm(Tick::Does(id));
        cx.disarm(Tick::Refuses(id));
        self.tell(Input::Tick(Timer::Timeout(device)), cx)
    }

    /// All has happened, and the hub has nothing more to do.
    fn is_over(&self) -> bool {
        let submits = |it: &&Happening| matches!(it, Happening::Submit(_));
        let wanted = self.happenings.iter().filter(submits).count();
        let hub = self.hub();
        let rolls_back = |(_, it): (&NodeId, &crate::lineage::Device<u8>)| {
            it.is_up && !it.is_stuck && it.actual.as_ref() != it.desired()
        };
        self.finished == wanted
            && hub.is_quiet()
            && !hub.devices.iter().any(rolls_back)
            && self.things.iter().all(|it| it.flight.is_none())
    }

    /// Whether the devices are as they would be after the committed routines, one by one, and each
    /// command was passed over for a condition exactly where it does not hold.
    fn is_explained(&self) -> bool {
        let mut serial = vec![0; self.things.len()];
        let state = |serial: &[u8], id: u64| {
            let at = usize::try_from(id).unwrap_or(usize::MAX);
            serial.get(at).copied().unwrap_or_default()
        };
        for placed in &self.order {
            let id = match *placed {
                Placed::Routine(id) => id,
                Placed::Set { device, state } => {
                    let at = usize::try_from(device.0).unwrap_or(usize::MAX);
                    if let (Some(serial), Some(state)) = (serial.get_mut(at), state) {
                        *serial = state;
                    }
                    continue;
                }
                Placed::Failed(_) | Placed::Restarted(_) => continue,
            };
            let which = self.submitted.iter().position(|it| *it == Some(id));
            let Some(&Happening::Submit(steps)) = which.and_then(|it| self.happenings.get(it))
            else {
                return false;
            };
            for (step, nth) in steps.iter().zip(0_u16..) {
                let skip = self.skipped.iter().find(|it| (it.0, it.1) == (id, nth));
                let why = skip.map(|it| it.2);
                if let Some((device, value)) = step.only_if {
                    let holds = state(&serial, device) == value;
                    let is_wrong = if holds {
                        why == Some(Skip::Condition)
                    } else {
                        why.is_none()
                    };
                    if is_wrong {
                        return false;
                    }
                }
                let at = usize::try_from(step.device).unwrap_or(usize::MAX);
                if why.is_none()
                    && let Some(state) = serial.get_mut(at)
                {
                    *state = step.value;
                }
            }
        }
        let mut pairs = self.things.iter().zip(&serial);
        pairs.all(|(thing, state)| thing.is_down || thing.state == *state)
    }

    /// Invariants 2 to 4.
    fn is_consistent(&self) -> bool {
        let hub = self.hub();
        for (_, device) in hub.devices.iter() {
            let routines = || {
                let entries = device.lineage.iter();
                entries.filter(|it| matches!(it.owner, Owner::Routine(_)))
            };
            // 0 released, 1 in use, 2 planned.
            let rank = |it: &crate::lineage::Entry<u8>| match (it.released, it.touched) {
                (true, _) => 0,
                (false, true) => 1,
                (false, false) => 2,
            };
            if !routines().map(rank).is_sorted() {
                return false;
            }
            if routines().filter(|it| rank(it) == 1).count() > 1 {
                return false;
            }
        }
        // No two before each other, by way of any others.
        let before = |a: RoutineId, b: RoutineId| {
            hub.devices.iter().any(|(_, it)| {
                let places = (it.position(a), it.position(b));
                matches!(places, (Some(a), Some(b)) if a < b)
            })
        };
        let all: Vec<RoutineId> = hub.runs.keys().copied().collect();
        all.iter().all(|&start| {
            let mut reached = vec![start];
            let mut next = 0;
            while let Some(&from) = reached.get(next) {
                next += 1;
                for &to in &all {
                    if before(from, to) {
                        if to == start {
                            return false;
                        }
                        if !reached.contains(&to) {
                            reached.push(to);
                        }
                    }
                }
            }
            true
        })
    }
}

impl Machine for Home {
    type Message = core::convert::Infallible;
    type Timer = Tick;
    type Command = ();
    type Event = ();
    type Reject = Reject;

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match input {
            Input::Message { message, .. } => match message {},
            Input::Membership(_) | Input::Command(()) => Ok(()),
            Input::Tick(Tick::Happens(nth)) => self.happens(nth, cx),
            Input::Tick(Tick::IsBack(id)) => {
                // What was on its way is lost, or was done before.
                if self.thing(id).is_some_and(|it| it.flight.is_some()) {
                    self.times_out(NodeId(id), cx)?;
                    cx.disarm(Tick::Hub(Timer::Timeout(NodeId(id))));
                }
                if let Some(thing) = self.thing(id) {
                    thing.is_down = false;
                }
                self.tell(Input::Membership(Delta::Refuted(Member::new(id, 0))), cx)
            }
            Input::Tick(Tick::Answers(id)) => self.answers(id, cx),
            Input::Tick(Tick::Does(id)) => self.lands(id, Outcome::Done, cx),
            Input::Tick(Tick::Refuses(id)) => {
                if self.faults == 0 {
                    return Ok(());
                }
                self.faults -= 1;
                self.lands(id, Outcome::Refused, cx)
            }
            Input::Tick(Tick::Hub(Timer::Timeout(device))) => self.times_out(device, cx),
            Input::Tick(Tick::Hub(timer)) => self.tell(Input::Tick(timer), cx),
        }
    }
}

impl Setup {
    /// So many devices, under eventual visibility with the timeline scheduler, without faults.
    #[must_use]
    pub const fn home(devices: u64, happenings: &'static [Happening]) -> Self {
        Self {
            devices,
            happenings,
            in_order: false,
            faults: 0,
            visibility: Visibility::Eventual,
            scheduler: Scheduler::Timeline,
            rules: &[],
            only: None,
        }
    }

    /// What is to be checked.
    #[must_use]
    pub fn model(self) -> Model<Home> {
        let looks_at = |promise| self.only.is_none_or(|only| only == promise);
        let mut model = Model::new(vec![Home::new(&self)], |_| Member::new(1, 0))
            .bounds(Bounds::default())
            .start(|_, _, home, cx| home.begin(cx))
            .show(show);
        if self.only.is_none() {
            model = model
                .never_rejects("the hub refuses nothing")
                .sometimes("all is over", |state| state.machines().all(Home::is_over));
        }
        if looks_at(Promise::Serializable) && self.visibility != Visibility::Weak {
            model = model.always("the order explains the end", |state: &State<Home, ()>| {
                state
                    .machines()
                    .all(|it| !it.is_over() || it.is_explained())
            });
        }
        if looks_at(Promise::OneCommand) {
            model = model.always("one command on its way to a device", |state| {
                state.machines().all(|it| !it.clash)
            });
        }
        if looks_at(Promise::Invariants) {
            model = model.always("invariants 2 to 4", |state| {
                state.machines().all(Home::is_consistent)
            });
        }
        if looks_at(Promise::NoHang) {
            model = model.progress("all routines are finished", |state| {
                state.machines().all(Home::is_over)
            });
        }
        model
    }
}

/// A home in a line.
fn show(home: &Home) -> String {
    let devices = home.hub().devices.iter().zip(&home.things);
    let devices: Vec<String> = devices
        .map(|((id, device), thing)| {
            let entries: Vec<String> = device
                .lineage
                .iter()
                .map(|it| {
                    let mark = match (it.released, it.touched) {
                        (true, _) => "released",
                        (false, true) => "in use",
                        (false, false) => "planned",
                    };
                    format!("{:?} {mark} {:?}", it.owner, it.wrote)
                })
                .collect();
            let down = if thing.is_down { " down" } else { "" };
            let state = thing.state;
            format!("{}={state}{down} [{}]", id.0, entries.join(", "))
        })
        .collect();
    let runs: Vec<String> = home
        .hub()
        .runs
        .iter()
        .map(|(id, run)| match run.stage {
            Stage::Committed => format!("{} committed", id.0),
            stage @ (Stage::Waiting | Stage::Placed | Stage::Running | Stage::Aborting(_)) => {
                format!("{} at {} {stage:?}", id.0, run.at)
            }
        })
        .collect();
    [devices.join("; "), runs.join(", ")]
        .join(" | ")
        .to_string()
}
