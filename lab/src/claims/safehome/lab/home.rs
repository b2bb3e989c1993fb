//! A hub, and devices that take as long as each command says.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use chacha20::ChaCha8Rng;
use selvedge_core::{Choose, Delta, Driver, Effect, Input, Member, NodeId, Span, Time};
use selvedge_safehome::{
    AbortReason, Command, Config, Event, Hub, Outcome, Placed, Priority, Routine, RoutineId,
    SkipReason, Step, UndoStatus,
};

use super::super::scenario::{Arrivals, Scenario};
use super::{Model, Setting};
use crate::claims::Fault;

/// A device has done a command after so long: what a short command takes in section 4.3. It is part
/// of the time that the load gives a command.
const ANSWER: Span = Span::millis(100);
/// The failure detector asks each second, and waits for 100 ms (section 6).
const PING: Span = Span::secs(1);
/// A run that is not over by then has failed.
const PATIENCE: Span = Span::secs(100_000_000);
/// A routine and its outcome.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) submitted: Time,
    pub(super) started: Option<Time>,
    pub(super) ended: Option<Time>,
    pub(super) committed: bool,
    /// When another routine first changed what it had changed.
    pub(super) collided: Option<Time>,
    /// Commands that were done.
    pub(super) done: usize,
    /// Devices that were to be restored when it was aborted.
    pub(super) restored: usize,
    /// Whether a device that it had has failed.
    pub(super) is_hit: bool,
}

/// A device as it is.
#[derive(Clone, Debug, Default)]
pub(super) struct Thing {
    is_down: bool,
    /// The number of the routine that changed it last, from 1.
    pub(super) state: u32,
    /// The unfinished routines that have changed it.
    changed: Vec<usize>,
}

/// What happens in the home at a set time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Comes,
    Answers {
        device: u32,
        token: u64,
        state: u32,
        routine: Option<u64>,
    },
    Fails(u32),
    Noticed(u32),
}

pub(super) struct Home {
    hub: Driver<Hub<u32>>,
    rng: ChaCha8Rng,
    pub(super) now: Time,
    pub(super) scenario: Scenario,
    must: u64,
    pub(super) jobs: Vec<Job>,
    pub(super) things: Vec<Thing>,
    happenings: BinaryHeap<Reverse<(Time, u64, Happening)>>,
    /// The same of answers: they take equally long, so they come in order.
    answers: VecDeque<(Time, u64, Happening)>,
    /// The number of happenings so far: it orders happenings of the same time.
    count: u64,
    told: Vec<Event<u32>>,
    pub(super) order: Vec<usize>,
    running: u64,
    /// The sum of those that ran, over so many starts and ends.
    pub(super) ran: (u64, u64),
    /// The time that all of them ran, added up, over the time during which any did.
    pub(super) ran_for: (Span, Span),
    /// When a routine last started or ended.
    turned: Time,
    open: usize,
}

impl Home {
    pub(super) fn new(
        scenario: Scenario,
        setting: &Setting,
        rng: ChaCha8Rng,
    ) -> Result<Self, Fault> {
        let Model {
            visibility,
            scheduler,
            pre_leases,
            post_leases,
            stretch,
            ..
        } = setting.model;
        let config = Config::default()
            .with_visibility(visibility)
            .with_scheduler(scheduler)
            .with_pre_leases(pre_leases)
            .with_post_leases(post_leases)
            .with_stretch(stretch)
            .with_short(ANSWER);
        let hub = Hub::new(config).map_err(Fault::network)?;
        let mut home = Self {
            hub: Driver::new(hub),
            rng,
            now: Time::ZERO,
            must: setting.must,
            jobs: Vec::with_capacity(scenario.routines.len()),
            things: vec![Thing::default(); scenario.devices as usize],
            happenings: BinaryHeap::new(),
            answers: VecDeque::new(),
            count: 0,
            told: Vec::new(),
            order: Vec::new(),
            running: 0,
            ran: (0, 0),
            ran_for: (Span::ZERO, Span::ZERO),
            turned: Time::ZERO,
            open: 0,
            scenario,
        };
        for device in 0..home.scenario.devices {
            home.command(Command::Device {
                device: node(device),
                state: Some(0),
            })?;
        }
        let times = match &home.scenario.arrivals {
            Arrivals::At(times) => times.clone(),
            Arrivals::Concurrent(count) => vec![Span::ZERO; *count],
        };
        for at in times {
            home.happens(Time::ZERO + at, Happening::Comes);
        }
        Ok(home)
    }

    /// So many percent of the devices fail, each at a moment within this time.
    pub(super) fn fail_some(&mut self, percent: u64, length: Span) {
        let mut left: Vec<u32> = (0..self.scenario.devices).collect();
        for _ in 0..u64::from(self.scenario.devices) * percent / 100 {
            let device = left.swap_remove(self.rng.below(left.len() as u64) as usize);
            let at = Time::ZERO + Span(self.rng.below(length.0));
            self.happens(at, Happening::Fails(device));
        }
    }

    pub(super) fn run(&mut self) -> Result<(), Fault> {
        loop {
            let next = self
                .next_answer()
                .into_iter()
                .chain(self.next_other())
                .min();
            let next = next.map(|it| it.0);
            let due = self.hub.deadline();
            let is_over = self.open == 0 && self.jobs.len() == self.scenario.routines.len();
            if is_over && next.is_none() {
                return Ok(());
            }
            let is_tick = due.is_some_and(|due| next.is_none_or(|next| due < next));
            let Some(now) = (if is_tick { due } else { next }) else {
                let open = self.open;
                return Err(Fault::Outcome(format!("{open} routines never ended")));
            };
            if now > Time::ZERO + PATIENCE {
                return Err(Fault::Outcome("the run does not end".to_owned()));
            }
            self.now = now;
            if is_tick {
                let told = &mut self.told;
                self.hub.expire(now, &mut self.rng, |it| tell(told, it));
                self.hear()?;
            } else if let Some((_, _, happening)) = self.pop() {
                self.happen(happening)?;
            }
        }
    }

    fn happens(&mut self, at: Time, happening: Happening) {
        self.count += 1;
        self.happenings.push(Reverse((at, self.count, happening)));
    }

    fn next_answer(&self) -> Option<(Time, u64)> {
        self.answers.front().map(|it| (it.0, it.1))
    }

    fn next_other(&self) -> Option<(Time, u64)> {
        self.happenings.peek().map(|it| (it.0.0, it.0.1))
    }

    /// What happens next.
    fn pop(&mut self) -> Option<(Time, u64, Happening)> {
        let other = self.next_other();
        if self
            .next_answer()
            .is_some_and(|it| other.is_none_or(|other| it < other))
        {
            return self.answers.pop_front();
        }
        self.happenings.pop().map(|it| it.0)
    }

    fn happen(&mut self, happening: Happening) -> Result<(), Fault> {
        match happening {
            Happening::Comes => self.submit(),
            Happening::Answers {
                device,
                token,
                state,
                routine,
            } => {
                let routine = routine.map(|it| it as usize - 1);
                let is_done = self.change(device, state, routine);
                let outcome = if is_done {
                    Outcome::Done
                } else {
                    Outcome::Refused
                };
                let device = node(device);
                self.command(Command::Outcome {
                    device,
                    token,
                    outcome,
                })
            }
            Happening::Fails(device) => {
                if let Some(thing) = self.things.get_mut(device as usize) {
                    thing.is_down = true;
                }
                let after = Span(self.rng.below(PING.0)) + ANSWER;
                self.happens(self.now + after, Happening::Noticed(device));
                Ok(())
            }
            Happening::Noticed(device) => {
                let member = Member::new(node(device).0, 0);
                self.step(Input::Membership(Delta::Failed(member)))
            }
        }
    }

    fn submit(&mut self) -> Result<(), Fault> {
        let number = self.jobs.len();
        let Some(needs) = self.scenario.routines.get(number) else {
            return Ok(());
        };
        self.jobs.push(Job {
            submitted: self.now,
            started: None,
            ended: None,
            committed: false,
            collided: None,
            done: 0,
            restored: 0,
            is_hit: false,
        });
        self.open += 1;
        let state = number as u32 + 1;
        let must = self.must;
        let rng = &mut self.rng;
        let steps = needs.iter().map(|&(device, seconds)| Step {
            hold: Span(Span::secs(seconds.into()).0.saturating_sub(ANSWER.0)),
            priority: if must == 100 || rng.below(100) < must {
                Priority::Must
            } else {
                Priority::BestEffort
            },
            ..Step::new(node(device), state)
        });
        let routine = Routine {
            steps: steps.collect(),
        };
        self.command(Command::Submit(routine))
    }

    /// A device carries out its command, if it is up.
    fn change(&mut self, device: u32, state: u32, routine: Option<usize>) -> bool {
        let Some(thing) = self.things.get_mut(device as usize) else {
            return false;
        };
        if thing.is_down {
            return false;
        }
        thing.state = state;
        let Some(routine) = routine else {
            return true;
        };
        let (jobs, now) = (&mut self.jobs, self.now);
        thing.changed.retain(|&other| {
            let Some(job) = jobs.get_mut(other).filter(|it| it.ended.is_none()) else {
                return false;
            };
            if other != routine && job.collided.is_none() {
                job.collided = Some(now);
            }
            other != routine
        });
        thing.changed.push(routine);
        if let Some(job) = jobs.get_mut(routine) {
            job.done += 1;
        }
        true
    }

    fn command(&mut self, command: Command<u32>) -> Result<(), Fault> {
        self.step(Input::Command(command))
    }

    fn step(&mut self, input: Input<Hub<u32>>) -> Result<(), Fault> {
        let told = &mut self.told;
        self.hub
            .step(self.now, &mut self.rng, input, |it| tell(told, it))
            .map_err(Fault::network)?;
        self.hear()
    }

    /// Handles an event of the hub.
    fn hear(&mut self) -> Result<(), Fault> {
        let mut told = core::mem::take(&mut self.told);
        for event in told.drain(..) {
            match event {
                Event::Issue {
                    device,
                    token,
                    value,
                    routine,
                } => {
                    let answers = Happening::Answers {
                        device: device.0 as u32 - 1,
                        token,
                        state: value,
                        routine: routine.map(|it| it.0),
                    };
                    self.count += 1;
                    self.answers
                        .push_back((self.now + ANSWER, self.count, answers));
                }
                Event::Started(routine) => {
                    let now = self.now;
                    self.job(routine)?.started = Some(now);
                    self.now_run(self.running + 1);
                }
                Event::Committed(routine) => self.ended(routine, None)?,
                Event::Aborted { routine, undo, why } => {
                    self.job(routine)?.is_hit =
                        !matches!(why, AbortReason::Step(_, SkipReason::Down(_)));
                    self.ended(routine, Some(&undo))?;
                }
                Event::Ordered(Placed::Routine(routine)) => self.order.push(number(routine)),
                Event::Accepted(_)
                | Event::Ask { .. }
                | Event::Skipped { .. }
                | Event::Aborting { .. }
                | Event::Restored(_)
                | Event::Stuck(_)
                | Event::GivenUp(_)
                | Event::Ordered(_)
                | Event::CutShort { .. }
                | Event::Incongruent { .. } => {}
                other => return Err(Fault::Outcome(format!("unknown to the home: {other:?}"))),
            }
        }
        self.told = told;
        Ok(())
    }

    /// A routine starts or ends, and so many run now.
    fn now_run(&mut self, count: u64) {
        let took = self.now.since(self.turned);
        if self.running > 0 {
            self.ran_for.0 = self.ran_for.0 + Span(took.0.saturating_mul(self.running));
            self.ran_for.1 = self.ran_for.1 + took;
        }
        (self.running, self.turned) = (count, self.now);
        self.ran = (self.ran.0 + count, self.ran.1 + 1);
    }

    fn job(&mut self, routine: RoutineId) -> Result<&mut Job, Fault> {
        let job = self.jobs.get_mut(number(routine));
        job.ok_or_else(|| Fault::Outcome(format!("{routine:?} was never submitted")))
    }

    fn ended(
        &mut self,
        routine: RoutineId,
        undo: Option<&[(NodeId, UndoStatus)]>,
    ) -> Result<(), Fault> {
        let now = self.now;
        let job = self.job(routine)?;
        job.ended = Some(now);
        job.committed = undo.is_none();
        let undo = undo.unwrap_or_default().iter();
        job.restored = undo.filter(|it| it.1 != UndoStatus::NotNeeded).count();
        if job.started.is_some() {
            self.now_run(self.running.saturating_sub(1));
        }
        self.open -= 1;
        if matches!(self.scenario.arrivals, Arrivals::Concurrent(_)) {
            self.happens(now, Happening::Comes);
        }
        Ok(())
    }
}

const fn node(device: u32) -> NodeId {
    NodeId(device as u64 + 1)
}

const fn number(routine: RoutineId) -> usize {
    routine.0 as usize - 1
}

fn tell(told: &mut Vec<Event<u32>>, effect: Effect<Hub<u32>>) {
    match effect {
        Effect::Event(event) => told.push(event),
        Effect::Send { message, .. } => match message {},
    }
}
