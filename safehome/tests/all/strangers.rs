//! Random histories of a home whose devices come and go, in states that may be unknown, and whose
//! hub restarts with other settings. As far as states are known the reported order explains the
//! end.
//!
//! `SELVEDGE_HISTORIES` sets the number of runs; `SELVEDGE_SEED` runs one alone.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::std_instead_of_alloc,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use selvedge_core::{Delta, Driver, Effect, Input, Member, NodeId, Span, Time};
use selvedge_safehome::{
    Clause, Command, Comparison, Condition, Config, Event, Hub, Outcome, Placed, Priority, Reject,
    Routine, RoutineId, Scheduler, Step, Timer, UndoStatus, Visibility,
};
use selvedge_sim::histories;
use selvedge_sim::histories::seeds;

const MODELS: [Visibility; 6] = [
    Visibility::Eventual,
    Visibility::Eventual,
    Visibility::PartitionedStrict,
    Visibility::GlobalStrict,
    Visibility::StrongGlobalStrict,
    Visibility::Weak,
];
const SCHEDULERS: [Scheduler; 3] = [
    Scheduler::FirstCome,
    Scheduler::JustInTime,
    Scheduler::Timeline,
];

/// A device as it is.
struct Thing {
    state: u8,
    is_up: bool,
    life: u32,
    /// It has been added to the hub.
    is_there: bool,
    flight: Option<(u64, u8)>,
    /// The hub asks for its state, with this token.
    asked: Option<u64>,
}

selvedge_sim::counts! {
    struct Counts {
        committed,
        aborted,
        impossible,
        restored,
        stuck,
        removed,
        unordered: maybe,
    }
}

struct Home {
    rng: ChaCha8Rng,
    config: Config,
    hub: Driver<Hub<u8>>,
    now: Time,
    things: Vec<Thing>,
    submitted: Option<Routine<u8>>,
    routines: BTreeMap<RoutineId, Routine<u8>>,
    open: usize,
    skipped: Vec<(RoutineId, u16)>,
    /// The reported order, and the states of added devices, known or unknown.
    order: Vec<Placed<u8>>,
    trace: Vec<String>,
    counts: Counts,
}

impl Home {
    fn new(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut below = |bound: u32| rng.next_u32() % bound;
        let config = Config::default()
            .with_visibility(MODELS[below(6) as usize])
            .with_scheduler(SCHEDULERS[below(3) as usize])
            .with_pre_leases(below(4) > 0)
            .with_post_leases(below(4) > 0)
            .with_undo_attempts(3)
            .with_patience(Span::secs(3))
            .with_short(Span::millis(1 + u64::from(below(200))));
        let thing = |_| Thing {
            state: 0,
            is_up: true,
            life: 0,
            is_there: false,
            flight: None,
            asked: None,
        };
        let things: Vec<Thing> = (0..2 + below(3)).map(thing).collect();
        let mut home = Self {
            rng,
            config,
            hub: Driver::new(Hub::new(config).unwrap()),
            now: Time::ZERO,
            things,
            submitted: None,
            routines: BTreeMap::new(),
            open: 0,
            skipped: Vec::new(),
            order: Vec::new(),
            trace: vec![format!("{config:?}")],
            counts: Counts::default(),
        };
        for nth in 0..home.things.len() {
            home.comes(nth);
        }
        home
    }

    fn below(&mut self, bound: usize) -> usize {
        self.rng.next_u32() as usize % bound
    }

    fn notify(&mut self, command: Command<u8>) -> Result<(), Reject> {
        self.input(Input::Command(command))
    }

    fn input(&mut self, input: Input<Hub<u8>>) -> Result<(), Reject> {
        self.trace.push(format!("{:?} {input:?}", self.now));
        let mut effects = Vec::new();
        let (hub, now) = (&mut self.hub, self.now);
        let notified = hub.step_into(now, &mut self.rng, input, &mut effects);
        assert!(notified.is_ok() || effects.is_empty());
        self.carry_out(effects);
        notified
    }

    fn carry_out(&mut self, effects: Vec<Effect<Hub<u8>>>) {
        self.hub.machine().check().unwrap();
        for effect in effects {
            let Effect::Event(event) = effect;
            self.trace.push(format!("    {event:?}"));
            match event {
                Event::Accepted(id) => {
                    self.routines.insert(id, self.submitted.take().unwrap());
                    self.open += 1;
                }
                Event::Issue {
                    device,
                    token,
                    value,
                    ..
                } => {
                    let thing = &mut self.things[device.0 as usize];
                    assert!(thing.is_there && thing.flight.is_none(), "{device}");
                    thing.flight = Some((token, value));
                }
                Event::Ask { device, token } => {
                    self.things[device.0 as usize].asked = Some(token);
                }
                Event::Committed(_) => {
                    self.open -= 1;
                    self.counts.committed += 1;
                }
                Event::Aborted { undo, .. } => {
                    self.open -= 1;
                    self.counts.aborted += 1;
                    let is_impossible = |it: &&(NodeId, UndoStatus)| it.1 == UndoStatus::Impossible;
                    self.counts.impossible += undo.iter().filter(is_impossible).count() as u64;
                }
                Event::Skipped { routine, step, .. } => self.skipped.push((routine, step)),
                Event::Ordered(placed) => self.order.push(placed),
                Event::Restored(_) => self.counts.restored += 1,
                Event::Stuck(_) | Event::GivenUp(_) => self.counts.stuck += 1,
                Event::Started(_) | Event::Aborting { .. } | Event::Incongruent { .. } => {}
                other => panic!("unknown to the home: {other:?}"),
            }
        }
    }

    /// Decides whether its command is done, without a report.
    fn resolve(&mut self, nth: usize) {
        let is_done = self.below(2) == 0;
        let thing = &mut self.things[nth];
        if let Some((_, value)) = thing.flight.take()
            && is_done
        {
            thing.state = value;
        }
    }

    fn lands(&mut self, nth: usize, outcome: Outcome) {
        let device = NodeId(nth as u64);
        if !self.things[nth].is_up && outcome != Outcome::Unknown {
            return;
        }
        if let Some(token) = self.things[nth].asked.take() {
            self.resolve(nth);
            let outcome = Outcome::Unknown;
            let notified = if self.below(3) == 0 {
                Command::Acted {
                    device,
                    token,
                    outcome,
                }
            } else {
                let state = self.things[nth].state;
                Command::Answered {
                    device,
                    token,
                    state,
                }
            };
            self.notify(notified).unwrap();
        } else if let Some((token, value)) = self.things[nth].flight {
            match outcome {
                Outcome::Done => self.things[nth].state = value,
                Outcome::Refused => {}
                Outcome::Unknown => self.resolve(nth),
            }
            self.things[nth].flight = None;
            let notified = Command::Acted {
                device,
                token,
                outcome,
            };
            self.notify(notified).unwrap();
        }
    }

    fn tick(&mut self) {
        let Some(due) = self.hub.deadline() else {
            return;
        };
        self.now = self.now.max(due);
        let overdue = |it: (Timer, Time)| match it.0 {
            Timer::Timeout(device) if it.1 <= due => Some(device.0 as usize),
            Timer::Timeout(_)
            | Timer::Hold(_)
            | Timer::Retry(_)
            | Timer::Lease(_)
            | Timer::Patience(_)
            | Timer::Late(_) => None,
        };
        let overdue: Vec<usize> = self.hub.timers().filter_map(overdue).collect();
        for nth in overdue {
            self.resolve(nth);
            self.things[nth].asked = None;
        }
        self.trace.push(format!("{:?} is due", self.now));
        let mut effects = Vec::new();
        let (hub, now) = (&mut self.hub, self.now);
        hub.expire_into(now, &mut self.rng, &mut effects);
        assert_eq!(self.hub.refused_ticks(), 0);
        self.carry_out(effects);
    }

    /// Reports the membership service's news of a device.
    fn status(&mut self, nth: usize) {
        let member = Member::new(nth as u64, self.things[nth].life);
        let is_up = self.things[nth].is_up;
        let delta = match (is_up, self.below(3)) {
            (true, 0) => Delta::Joined(member),
            (true, _) => Delta::Refuted(member),
            (false, 0) => Delta::Failed(member),
            (false, 1) => Delta::Left(member),
            (false, _) => Delta::Confirmed(member),
        };
        let notified = self.input(Input::Membership(delta));
        assert_eq!(notified.is_ok(), self.things[nth].is_there);
    }

    fn flips(&mut self, nth: usize) {
        self.resolve(nth);
        let (is_unnoticed, is_new) = (self.below(3) == 0, self.below(2) == 0);
        let thing = &mut self.things[nth];
        thing.is_up = is_unnoticed || !thing.is_up;
        thing.life += u32::from(is_unnoticed || thing.is_up && is_new);
        self.status(nth);
    }

    fn comes(&mut self, nth: usize) {
        let is_known = self.below(2) == 0;
        let state = is_known.then_some(self.things[nth].state);
        let device = NodeId(nth as u64);
        let notified = self.notify(Command::AddDevice { device, state });
        let thing = &mut self.things[nth];
        assert_eq!(notified.is_ok(), !thing.is_there);
        if notified.is_ok() {
            (thing.is_there, thing.is_up, thing.flight) = (true, true, None);
            self.order.push(Placed::Set { device, state });
        }
    }

    fn goes(&mut self, nth: usize) {
        let notified = self.notify(Command::RemoveDevice(NodeId(nth as u64)));
        if notified.is_ok() {
            assert!(self.things[nth].is_there);
            self.things[nth].is_there = false;
            self.counts.removed += 1;
        }
    }

    fn submit(&mut self) {
        let steps = 1 + self.below(4);
        let steps = (0..steps).map(|_| self.draw()).collect();
        let routine = Routine { steps };
        let is_there = |id: NodeId| self.things[id.0 as usize].is_there;
        let is_takeable = routine
            .steps
            .iter()
            .all(|step| step.devices().all(is_there));
        self.submitted = Some(routine.clone());
        let notified = self.notify(Command::Submit(routine));
        assert_eq!(notified.is_ok(), is_takeable);
    }

    fn draw(&mut self) -> Step<u8> {
        let count = self.things.len();
        let device = |home: &mut Self| NodeId(home.below(count) as u64);
        let mut step = Step::new(device(self), 1 + self.below(5) as u8);
        if self.below(4) == 0 {
            step.priority = Priority::BestEffort;
        }
        if self.below(4) == 0 {
            step.hold = Span::millis(self.below(3_000) as u64);
        }
        if self.below(6) == 0 {
            step.undo = Some(50 + self.below(3) as u8);
        }
        if self.below(6) == 0 {
            step.timeout = Some(Span::millis(1 + self.below(9_000) as u64));
        }
        if self.below(4) == 0 {
            step.condition = Some(Clause::Is(Condition {
                device: device(self),
                comparison: [
                    Comparison::Equal,
                    Comparison::NotEqual,
                    Comparison::Less,
                    Comparison::Greater,
                ][self.below(4)],
                value: self.below(5) as u8,
            }));
        }
        step
    }

    /// Restarts the hub, perhaps with another scheduler.
    fn restart(&mut self) {
        self.trace.push("the hub restarts".into());
        self.counts.unordered += self.hub.machine().counters().unordered;
        let mut config = self.config;
        if self.below(3) == 0 {
            config.scheduler = SCHEDULERS[self.below(3)];
            (config.pre_leases, config.post_leases) = (self.below(2) == 0, self.below(2) == 0);
        }
        let bytes = postcard::to_allocvec(&self.hub.machine().save()).unwrap();
        let saved = postcard::from_bytes(&bytes).unwrap();
        self.hub = Driver::new(Hub::restore(config, saved).unwrap());
        self.now = Time::ZERO;
        for thing in &mut self.things {
            thing.asked = None;
        }
        self.notify(Command::Resume).unwrap();
        for nth in 0..self.things.len() {
            if self.things[nth].is_there {
                self.status(nth);
            }
        }
    }

    fn happens(&mut self, has_faults: bool) {
        let nth = self.below(self.things.len());
        match self.below(24) {
            0..5 => self.submit(),
            13 if has_faults => self.lands(nth, Outcome::Refused),
            14 if has_faults => self.lands(nth, Outcome::Unknown),
            15 | 16 => self.tick(),
            17 if self.things[nth].is_up => {
                let state = 100 + self.below(3) as u8;
                self.things[nth].state = state;
                let device = NodeId(nth as u64);
                let notified = self.notify(Command::Observed { device, state });
                assert_eq!(notified.is_ok(), self.things[nth].is_there);
            }
            18 => {
                let id = RoutineId(1 + self.below(self.routines.len() + 1) as u64);
                let notified = self.notify(Command::Cancel(id));
                assert!(matches!(notified, Ok(()) | Err(Reject::UnknownRoutine(_))));
            }
            19 | 20 if has_faults => self.flips(nth),
            21 => self.goes(nth),
            22 => self.comes(nth),
            23 => self.restart(),
            _ => self.lands(nth, Outcome::Done),
        }
    }

    /// Ends faults, and lets all work finish.
    fn rest(&mut self) {
        for nth in 0..self.things.len() {
            if self.things[nth].is_there && !self.things[nth].is_up {
                self.things[nth].is_up = true;
                self.status(nth);
            }
        }
        for _ in 0..5_000 {
            let is_busy = |it: &Thing| it.is_there && (it.flight.is_some() || it.asked.is_some());
            if let Some(nth) = self.things.iter().position(is_busy) {
                self.lands(nth, Outcome::Done);
            } else if self.hub.deadline().is_some() {
                self.tick();
            } else {
                break;
            }
        }
    }

    /// The defects at the end.
    fn judge(&self) -> Result<(), String> {
        let hub = self.hub.machine();
        if self.open > 0 || !hub.is_quiet() {
            return Err(format!("{} routines are unfinished", self.open));
        }
        let known = |nth: usize| hub.state(NodeId(nth as u64));
        for (nth, thing) in self.things.iter().enumerate() {
            if known(nth).is_some_and(|it| *it != thing.state) {
                return Err(format!("device {nth} is taken to be {:?}", known(nth)));
            }
        }
        let is_weak = self.config.visibility == Visibility::Weak;
        let unordered = self.counts.unordered + hub.counters().unordered;
        if is_weak || unordered > 0 || self.counts.stuck > 0 {
            return Ok(());
        }
        let mut serial = vec![None; self.things.len()];
        for placed in &self.order {
            match placed {
                Placed::Set { device, state } => serial[device.0 as usize] = *state,
                Placed::Routine(id) => self.follow(*id, &mut serial)?,
                Placed::Failed(_) | Placed::Restarted(_) => {}
            }
        }
        for (thing, state) in self.things.iter().zip(&serial) {
            if thing.is_there && state.is_some_and(|it| it != thing.state) {
                return Err(format!("it should end as {serial:?}"));
            }
        }
        Ok(())
    }

    fn follow(&self, id: RoutineId, serial: &mut [Option<u8>]) -> Result<(), String> {
        for (step, nth) in self.routines[&id].steps.iter().zip(0..) {
            if self.skipped.contains(&(id, nth)) {
                continue;
            }
            if let Some(condition) = &step.condition {
                let state = |device: NodeId| serial[device.0 as usize].as_ref();
                if condition.holds(&state) != Some(true) {
                    return Err(format!(
                        "{id:?} did command {nth} though {condition:?} did not hold"
                    ));
                }
            }
            serial[step.device.0 as usize] = Some(step.value);
        }
        Ok(())
    }
}

#[test]
fn devices_come_and_go_in_states_that_nobody_knows() {
    let mut all = Counts::default();
    let ran = histories(seeds(1_000), |seed| {
        let mut home = Home::new(seed);
        let has_faults = home.below(3) > 0;
        for _ in 0..30 + home.below(150) {
            home.happens(has_faults);
        }
        home.rest();
        if let Err(broken) = home.judge() {
            panic!(
                "{}\n{broken}: {:#?}",
                home.trace.join("\n"),
                home.hub.machine()
            );
        }
        home.counts.unordered += home.hub.machine().counters().unordered;
        all.add(&home.counts);
    });
    println!("{ran} histories: {all:#?}");
    if ran >= 1_000 {
        assert_eq!(all.missing(), None, "{all:?}");
    }
}
