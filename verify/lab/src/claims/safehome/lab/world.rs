//! Events in a home, and the outcomes of its routines.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use selvedge_core::{NodeId, Span, Time};
use selvedge_safehome::{AbortReason, Event, Placed, RoutineId, SkipReason, UndoStatus};
use smallvec::SmallVec;

use super::super::scenario::{Arrivals, Need, Scenario};
use crate::claims::Fault;

/// The time until a device has done a command: the time of a short command in section 4.3. It is
/// part of the time that the load gives a command.
pub(super) const ANSWER: Span = Span::millis(100);

/// A routine and its outcome.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) submitted: Time,
    pub(super) started: Option<Time>,
    pub(super) ended: Option<Time>,
    pub(super) committed: bool,
    /// The time at which another routine first changed a device that it had changed.
    pub(super) collided: Option<Time>,
    /// Commands that were done.
    pub(super) done: usize,
    /// Devices that were to be restored when it was aborted.
    pub(super) restored: usize,
    /// True if a device that it had has failed.
    pub(super) is_hit: bool,
}

/// A device as it is.
#[derive(Clone, Debug, Default)]
pub(super) struct Thing {
    pub(super) is_down: bool,
    /// The number of the routine that changed it last, from 1.
    pub(super) state: u32,
    /// The unfinished routines that have changed it, and perhaps some that have ended.
    changed: SmallVec<[usize; 4]>,
}

/// An event in the home at a set time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Happening {
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

/// All of a home but its hub.
pub(super) struct World {
    pub(super) now: Time,
    pub(super) scenario: Scenario,
    pub(super) jobs: Vec<Job>,
    pub(super) things: Vec<Thing>,
    happenings: BinaryHeap<Reverse<(Time, u64, Happening)>>,
    /// The same of answers: they take equally long, so they come in order.
    answers: VecDeque<(Time, u64, Happening)>,
    /// The number of events up to now: it orders events of the same time.
    count: u64,
    pub(super) order: Vec<usize>,
    running: u64,
    /// The sum of the running routines, and the number of starts and ends.
    pub(super) ran: (u64, u64),
    /// The time that all of them ran, added up, over the time during which any did.
    pub(super) ran_for: (Span, Span),
    /// When a routine last started or ended.
    turned: Time,
    pub(super) open: usize,
}

impl World {
    pub(super) fn new(scenario: Scenario) -> Self {
        Self {
            now: Time::ZERO,
            jobs: Vec::with_capacity(scenario.routines.len()),
            things: vec![Thing::default(); scenario.devices as usize],
            happenings: BinaryHeap::with_capacity(scenario.routines.len()),
            answers: VecDeque::new(),
            count: 0,
            order: Vec::with_capacity(scenario.routines.len()),
            running: 0,
            ran: (0, 0),
            ran_for: (Span::ZERO, Span::ZERO),
            turned: Time::ZERO,
            open: 0,
            scenario,
        }
    }

    pub(super) fn happens(&mut self, at: Time, happening: Happening) {
        self.count += 1;
        self.happenings.push(Reverse((at, self.count, happening)));
    }

    /// Takes the next event, of the kind that [`next`](Self::next) returned.
    pub(super) fn pop(&mut self, is_answer: bool) -> Option<Happening> {
        let next = if is_answer {
            self.answers.pop_front()
        } else {
            self.happenings.pop().map(|it| it.0)
        };
        next.map(|it| it.2)
    }

    /// The next routine comes: its number, and its commands.
    pub(super) fn submit(&mut self) -> Option<(usize, &[Need])> {
        let number = self.jobs.len();
        let needs = self.scenario.routines.get(number)?;
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
        Some((number, needs))
    }

    /// A device carries out its command, if it is up.
    pub(super) fn change(&mut self, device: u32, state: u32, routine: Option<usize>) -> bool {
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
        for &other in thing.changed.iter().filter(|it| **it != routine) {
            if let Some(job) = jobs.get_mut(other)
                && job.ended.is_none()
                && job.collided.is_none()
            {
                job.collided = Some(now);
            }
        }
        if !thing.changed.contains(&routine) {
            // When the list is full, routines that have ended are removed.
            if thing.changed.len() == thing.changed.capacity() {
                let is_open = |it: &mut usize| jobs.get(*it).is_some_and(|it| it.ended.is_none());
                thing.changed.retain(is_open);
            }
            thing.changed.push(routine);
        }
        if let Some(job) = jobs.get_mut(routine) {
            job.done += 1;
        }
        true
    }

    /// Takes an event of the hub.
    pub(super) fn receive(&mut self, event: Event<u32>) -> Result<(), Fault> {
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
        Ok(())
    }

    /// Returns true if all routines have come and ended.
    pub(super) fn is_over(&self) -> bool {
        self.open == 0 && self.jobs.len() == self.scenario.routines.len()
    }

    /// The time of the next event, and true if it is an answer.
    pub(super) fn next(&self) -> (Option<Time>, bool) {
        let answer = self.answers.front().map(|it| (it.0, it.1));
        let other = self.happenings.peek().map(|it| (it.0.0, it.0.1));
        let is_answer = answer.is_some_and(|it| other.is_none_or(|other| it < other));
        let next = if is_answer { answer } else { other };
        (next.map(|it| it.0), is_answer)
    }

    /// Notes that a routine starts or ends, with the number that run now.
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

const fn number(routine: RoutineId) -> usize {
    routine.0 as usize - 1
}
