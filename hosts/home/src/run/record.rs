//! Records of the hub's events in the trace.

use selvedge_core::{Choose, NodeId, Span, Time};
use selvedge_routine::State;
use selvedge_safehome::{Event, Placed, RoutineId, SkipReason};

use super::{Stage, Watch};
use crate::trace::{Access, End, Happened, Occurrence, Restore};

/// The state of a run that is not in the trace.
pub(super) struct Running {
    /// The next command.
    at: usize,
    /// The time from which it could have been issued.
    ready: Time,
    /// The place of its last command in the trace.
    last: Option<usize>,
}

impl<C: Choose, W: Watch> Stage<'_, C, W> {
    /// Records a completed command before the hub learns of it, so that later steps find it in the
    /// trace.
    pub(super) fn landed(&mut self, device: NodeId) {
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

    pub(super) fn note(&mut self, device: NodeId, what: Happened) {
        self.trace.happened.push((self.now, device, what));
        let words = match what {
            Happened::Failed => "fails",
            Happened::FailureNoticed => "is found down",
            Happened::Restarted => "restarts",
            Happened::RestartNoticed => "is found up again",
            Happened::Stuck => "refuses to be restored and is left as it is",
        };
        self.say_of(device, words);
    }

    fn say_of(&mut self, device: NodeId, words: &str) {
        let name = self.plan.home.catalogue.shown(device);
        self.watch.say(self.now, &format!("{name} {words}"));
    }

    pub(super) fn take(&mut self, event: Event<State>) {
        let now = self.now;
        match event {
            Event::Accepted(id) => self.accepted(id),
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
            // Questions about commands follow only the hub's own restart.
            Event::Ask { .. } => {}
            Event::Skipped { routine, step, why } => self.skipped(routine, step, why),
            Event::Committed(id) => self.ended(id, End::Committed),
            Event::Aborting { routine, why } => {
                self.cut(routine);
                if let Some(it) = self.trace.occurrences.get(&routine) {
                    let why = why.explain(&it.routine, &self.plan.home.catalogue);
                    self.notify(routine, &format!("is aborted: {why}"));
                }
            }
            Event::Aborted { routine, why, .. } => {
                self.cut(routine);
                self.ended(routine, End::Aborted(why));
            }
            Event::CutShort { routine, .. } => {
                self.cut(routine);
                self.notify(routine, "ends its hold early");
            }
            Event::Restored(device) => self.say_of(device, "is as it was before"),
            Event::GivenUp(device) => self.say_of(device, "stays as it is"),
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
            _ => debug_assert!(false, "an event that this host does not handle"),
        }
    }

    /// Records the number of the routine that was coming.
    fn accepted(&mut self, id: RoutineId) {
        let Some((name, routine)) = self.coming.take() else {
            return;
        };
        let occurrence = Occurrence {
            name,
            routine,
            arrived: self.now,
            started: None,
            ended: None,
            skipped: Vec::new(),
            hidden: None,
        };
        let running = Running {
            at: 0,
            ready: self.now,
            last: None,
        };
        self.trace.occurrences.insert(id, occurrence);
        self.runs.insert(id, running);
    }

    fn issue(&mut self, device: NodeId, token: u64, state: State, routine: Option<RoutineId>) {
        let now = self.now;
        self.give_up(device);
        self.notified(device, token, state.clone());
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

    /// Records that a command without an answer gets none any more.
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

    fn skipped(&mut self, id: RoutineId, step: u16, why: SkipReason) {
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

    /// Ends the last command of a routine, if it has not ended.
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
            self.notify(id, "is done");
        }
    }

    fn notify(&mut self, id: RoutineId, what: &str) {
        if let Some(it) = self.trace.occurrences.get(&id) {
            let line = format!("{} {} {what}", id.0, it.name);
            self.watch.say(self.now, &line);
        }
    }
}
