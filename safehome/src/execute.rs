//! Commands are issued one by one, and have outcomes.

use selvedge_core::{Context, NodeId, Span};

use crate::config::Visibility;
use crate::lineage::{Entry, Flight, Owner};
use crate::run::{Run, Stage};
use crate::work::Task;
use crate::{AbortReason, Event, Hub, Outcome, Priority, RoutineId, SkipReason, Timer, Value};

impl<V: Value> Hub<V> {
    pub(crate) fn is_weak(&self) -> bool {
        self.config.visibility == Visibility::Weak
    }

    /// Issues the routine's next command.
    pub(crate) fn issue(&mut self, id: RoutineId, at: NodeId, cx: &mut Context<'_, Self>) {
        let usual = self.config.timeout;
        self.announce(at, cx);
        let Some(run) = self.runs.get_mut(&id) else {
            debug_assert!(false, "the routine is unfinished");
            return;
        };
        let Some(step) = run.routine.steps.get(usize::from(run.at)) else {
            debug_assert!(false, "the routine has a next command");
            return;
        };
        let (value, timeout) = (step.value.clone(), step.timeout.unwrap_or(usual));
        run.busy = Some(at);
        if run.stage == Stage::Placed {
            run.stage = Stage::Running;
            self.stop_patience(id, cx);
            cx.event(Event::Started(id));
        }
        self.token += 1;
        let token = self.token;
        let leniency = self.config.leniency;
        let Some(device) = self.devices.get_mut(&at) else {
            debug_assert!(false, "the device is at the hub");
            return;
        };
        device.flight = Some(Flight::new(token, value.clone(), Some(id)));
        *device.since = cx.now();
        if let Some(entry) = device.entry_mut(id) {
            self.ranks.begin(*entry.slot);
            if let Some(length) = entry.begin(leniency) {
                cx.arm(Timer::Lease(at), length);
            }
            entry.start = cx.now();
        }
        cx.event(Event::Issue {
            device: at,
            token,
            value,
            routine: Some(id),
        });
        cx.arm(Timer::Timeout(at), timeout);
    }

    /// The time to wait for the outcome of the command in flight to this device.
    pub(crate) fn timeout(&self, at: NodeId) -> Span {
        let flight = self.devices.get(&at).and_then(|it| it.flight.as_ref());
        let run = flight.and_then(|it| self.runs.get(&it.routine?));
        let own = run.and_then(Run::step).and_then(|step| step.timeout);
        own.unwrap_or(self.config.timeout)
    }

    /// Handles the outcome of the command in flight to this device.
    pub(crate) fn on_outcome(&mut self, id: NodeId, outcome: Outcome, cx: &mut Context<'_, Self>) {
        let Some(device) = self.devices.get_mut(&id) else {
            debug_assert!(false, "the device is at the hub");
            return;
        };
        let Some(flight) = device.flight.take() else {
            debug_assert!(false, "the token was that of a command on its way");
            return;
        };
        cx.disarm(Timer::Timeout(id));
        if *flight.is_asked_later {
            cx.disarm(Timer::Late(id));
        }
        match outcome {
            Outcome::Done => device.actual = Some(flight.value.clone()),
            // The command did not bring the device into this state.
            Outcome::Refused if flight.is_reported => {
                self.on_observed(id, flight.value.clone(), cx);
            }
            Outcome::Refused => {}
            Outcome::Unknown if self.rules.unknown_is_refused() => {}
            Outcome::Unknown => {
                device.actual = None;
                self.may_act_late(id, &flight, cx);
            }
        }
        let Some(routine) = flight.routine else {
            self.work.enqueue(Task::Device(id));
            self.on_rolled_back(id, outcome, cx);
            return;
        };
        match outcome {
            Outcome::Done => {
                self.on_written(routine, id, flight.value, cx);
                // The device went directly to this state, without its rollback. A hold may have
                // begun now, so `serve` does not look at the device.
                self.announce(id, cx);
            }
            Outcome::Refused => {}
            Outcome::Unknown => self.on_unknown(routine, id),
        }
        let Some(run) = self.runs.get_mut(&routine) else {
            debug_assert!(false, "a command on its way keeps its routine");
            return;
        };
        run.busy = None;
        if matches!(run.stage, Stage::Aborting(_)) {
            self.work.enqueue(Task::Device(id));
            self.undo(routine, cx);
            return;
        }
        let Some(device) = self.devices.get_mut(&id) else {
            debug_assert!(false, "the device is at the hub");
            return;
        };
        let hold = run.step().map_or(Span::ZERO, |step| step.hold);
        let holds = outcome == Outcome::Done && hold > Span::ZERO;
        // A routine that needs the device no longer gives it back anyway.
        let is_needed = || holds || run.routine.needs(id, usize::from(run.at) + 1);
        let is_revoked = |it: &Entry<V>| it.revoked && it.routine() == Some(routine);
        if device.lineage.iter().any(is_revoked) && is_needed() {
            self.work.enqueue(Task::Device(id));
            self.end_lease(routine, id, cx);
            return;
        }
        if holds {
            run.busy = Some(id);
            device.held = Some(routine);
            *device.since = cx.now();
            cx.arm(Timer::Hold(id), hold);
            // Until then no other task looks at it.
            if self.waiting.is_awaited(id) {
                self.work.enqueue(Task::Device(id));
            }
            return;
        }
        self.work.enqueue(Task::Device(id));
        match outcome {
            Outcome::Done => self.on_step_done(routine, cx),
            Outcome::Refused => self.on_step_failed(routine, SkipReason::Refused, cx),
            Outcome::Unknown => self.on_step_failed(routine, SkipReason::Unknown, cx),
        }
        self.work.enqueue(Task::Routine(routine));
    }

    /// A device is in the state into which a routine brought it.
    fn on_written(&mut self, id: RoutineId, at: NodeId, value: V, cx: &mut Context<'_, Self>) {
        let run = self.runs.get(&id);
        let undo = run.and_then(|run| run.step()?.undo.clone());
        // It gives way to a manual change, which wins though this command comes later.
        let is_by_hand = |run: &Run<V>| {
            let Stage::Aborting(why) = run.stage else {
                return false;
            };
            matches!(why, AbortReason::Preempted { by: None, .. })
        };
        let yields = run.is_some_and(is_by_hand);
        let Some(device) = self.devices.get_mut(&at) else {
            debug_assert!(false, "the device is at the hub");
            return;
        };
        device.attempts = 0;
        device.is_stuck = false;
        let Some(place) = device.position(id) else {
            // Published rules may have taken its place.
            return;
        };
        if let Some(entry) = device.lineage.get_mut(place) {
            entry.wrote = Some(value);
            entry.undo = undo;
        }
        // Manual changes since the routine first touched the device are overwritten.
        let is_hand = |it: &Entry<V>| it.owner == Owner::Hand;
        if !yields && device.lineage.iter().skip(place + 1).any(is_hand) {
            let mut behind = 0;
            device.lineage.retain(|entry| {
                behind += 1;
                behind <= place + 1 || !is_hand(entry)
            });
        }
        let before = device.lineage.get(..place).unwrap_or_default();
        for other in before.iter().filter(|it| it.wrote.is_some()) {
            if let Some(routine) = other.routine()
                && let Some(run) = self.runs.get_mut(&routine)
                && run.stage != Stage::Committed
                && !run.hidden
            {
                run.hidden = true;
                cx.event(Event::Incongruent {
                    routine,
                    device: at,
                    by: id,
                });
            }
        }
    }

    /// The outcome of a routine's command is unknown. If the routine is aborted now, it is undone
    /// as if the command was done (erratum H10): later, once the previous state is known, if it
    /// cannot be restored at once.
    fn on_unknown(&mut self, id: RoutineId, at: NodeId) {
        if self.rules.unknown_is_refused() {
            return;
        }
        let Some(run) = self.runs.get(&id) else {
            debug_assert!(false, "the routine is unfinished");
            return;
        };
        let Some(step) = run.step() else {
            debug_assert!(false, "the command on its way is the next one");
            return;
        };
        let is_aborting = matches!(run.stage, Stage::Aborting(_));
        let is_aborted = is_aborting || step.priority == Priority::Must;
        let Some(device) = self.devices.get_mut(&at) else {
            debug_assert!(false, "the device is at the hub");
            return;
        };
        let stays = device.desired().is_none();
        if let Some(entry) = device.entry_mut(id) {
            entry.doubtful |= stays;
            if (is_aborted || stays) && step.undo.is_some() {
                entry.undo.clone_from(&step.undo);
            }
        }
    }

    pub(crate) fn on_hold_over(&mut self, id: NodeId, cx: &mut Context<'_, Self>) {
        let held = self.devices.get_mut(&id).and_then(|it| it.held.take());
        let Some(routine) = held else {
            // A stray tick.
            return;
        };
        self.on_step_done(routine, cx);
        self.work.enqueue(Task::Routine(routine));
        self.work.enqueue(Task::Device(id));
    }

    /// The routine's command was not done.
    pub(crate) fn on_step_failed(
        &mut self,
        id: RoutineId,
        why: SkipReason,
        cx: &mut Context<'_, Self>,
    ) {
        let Some(run) = self.runs.get(&id) else {
            debug_assert!(false, "the routine is unfinished");
            return;
        };
        let is_must = run.step().is_some_and(|it| it.priority == Priority::Must);
        if is_must && !self.is_weak() {
            self.abort(id, AbortReason::Step(run.at, why), cx);
        } else {
            self.skip(id, why, cx);
        }
    }

    pub(crate) fn skip(&mut self, id: RoutineId, why: SkipReason, cx: &mut Context<'_, Self>) {
        let Some(run) = self.runs.get(&id) else {
            debug_assert!(false, "the routine is unfinished");
            return;
        };
        cx.event(Event::Skipped {
            routine: id,
            step: run.at,
            why,
        });
        if self.rules.skip_is_written()
            && why != SkipReason::Condition
            && let Some(step) = run.step()
            && let Some(device) = self.devices.get_mut(&step.device)
            && let Some(entry) = device.entry_mut(id)
        {
            entry.touched = true;
            entry.wrote = Some(step.value.clone());
            device.actual = device.desired().cloned();
        }
        self.on_step_done(id, cx);
    }
}
