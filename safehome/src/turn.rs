//! The transfer of devices from one routine to the next, and the progress of routines.

use selvedge_core::{Context, NodeId};

use crate::config::Visibility;
use crate::lineage::{Device, Entry};
use crate::run::{Run, Stage};
use crate::work::Task;
use crate::{Hub, RoutineId, SkipReason, Timer, Value};

/// The obstacle to a command now.
enum Turn {
    /// Nothing.
    Ours,
    /// Others come first, or the device is busy.
    Wait,
    /// The device is down.
    Down,
}

impl<V: Value> Hub<V> {
    /// Gives the device to the next routine; restores it before that if necessary.
    pub(crate) fn serve(&mut self, id: NodeId, cx: &mut Context<'_, Self>) {
        let Some(device) = self.devices.get(&id) else {
            debug_assert!(false, "the device is at the hub");
            return;
        };
        // Also under another scheduler than at the time when a routine began to wait.
        let is_eventual = self.config.visibility == Visibility::Eventual;
        // A rollback that is due does not stop every routine.
        let is_open = |it: &Device<V>| it.is_free() || it.is_idle();
        let is_free = is_eventual && self.waiting.is_awaited(id) && is_open(device);
        if device.flight.is_none() && device.held.is_none() {
            self.pass_on(id, cx);
        }
        if is_free && self.waiting.wake(id) {
            self.work.enqueue(Task::Queue);
        }
    }

    fn pass_on(&mut self, id: NodeId, cx: &mut Context<'_, Self>) {
        let is_weak = self.is_weak();
        let Some(device) = self.devices.get(&id) else {
            debug_assert!(false, "the device is at the hub");
            return;
        };
        let next = device.head();
        let is_settled = device.late.is_none();
        let is_due = !is_weak && is_settled && device.is_up && device.needs_rollback();
        if device.is_announced {
            self.announce(id, cx);
        }
        if is_due {
            let waits = next.and_then(|it| self.runs.get(&it));
            let is_first = self.rules.free_rollback() && waits.is_some_and(|it| it.waits_here(id));
            if !is_first && !waits.is_some_and(|it| self.goes_straight(it, id)) {
                self.roll_back(id, cx);
                return;
            }
        }
        if let Some(next) = next {
            self.work.enqueue(Task::Routine(next));
        }
    }

    /// Carries out all of the routine that is possible now.
    pub(crate) fn advance(&mut self, id: RoutineId, cx: &mut Context<'_, Self>) {
        while let Some(run) = self.runs.get(&id) {
            if run.busy.is_some() || !matches!(run.stage, Stage::Placed | Stage::Running) {
                return;
            }
            let Some(step) = run.step() else {
                self.finish(id, cx);
                return;
            };
            let device = step.device;
            if !run.tested && step.condition.is_some() {
                match self.test_condition(id, cx) {
                    Some(Ok(true)) => {
                        if let Some(run) = self.runs.get_mut(&id) {
                            run.tested = true;
                        }
                    }
                    Some(Ok(false)) => self.skip(id, SkipReason::Condition, cx),
                    Some(Err(why)) => self.on_step_failed(id, why, cx),
                    None => return,
                }
                continue;
            }
            if self.is_weak() {
                self.queue_up(id, device);
                self.preempt(id, cx);
            }
            match self.turn(id, device) {
                Turn::Ours => {
                    self.issue(id, device, cx);
                    return;
                }
                Turn::Wait => return,
                Turn::Down => self.on_step_failed(id, SkipReason::Down(device), cx),
            }
        }
    }

    fn turn(&mut self, id: RoutineId, at: NodeId) -> Turn {
        if self.rules.releases_between()
            && let Some(device) = self.devices.get_mut(&at)
            && let Some(place) = device.position(id)
            && device.lineage.get(place).is_some_and(|it| it.released)
        {
            // A second place, for a second command.
            let mut entry = device.lineage.remove(place);
            entry.released = false;
            device.lineage.insert(device.first_free(), entry);
        }
        let Some(device) = self.devices.get(&at) else {
            debug_assert!(false, "the device is at the hub");
            return Turn::Down;
        };
        if device.head() != Some(id) {
            return Turn::Wait;
        }
        if !device.is_up {
            return Turn::Down;
        }
        let is_sent = device.flight.is_some() || device.late.is_some();
        if is_sent || device.held.is_some() {
            return Turn::Wait;
        }
        let goes_anyway = self.is_weak() || self.rules.free_rollback();
        if !goes_anyway && device.needs_rollback() {
            let run = self.runs.get(&id);
            if !run.is_some_and(|it| self.goes_straight(it, at)) {
                return Turn::Wait;
            }
        }
        Turn::Ours
    }

    /// Returns true if a device is left as it is until this routine sets it, though a rollback is
    /// due.
    pub(crate) fn goes_straight(&self, run: &Run<V>, device: NodeId) -> bool {
        run.goes_straight(device) && !self.rules.undoes_first()
    }

    /// The result of the next command's condition; `None` while others come first (erratum H13: on
    /// each device that it reads all routines before this one must be finished; otherwise it could
    /// read a state that is undone later).
    fn test_condition(
        &mut self,
        id: RoutineId,
        cx: &mut Context<'_, Self>,
    ) -> Option<Result<bool, SkipReason>> {
        let condition = self.runs.get(&id)?.step()?.condition.clone()?;
        let is_weak = self.is_weak();
        if !is_weak && condition.devices().any(|at| !self.can_read(id, at)) {
            return None;
        }
        let state = |at: NodeId| {
            let device = self.devices.get(&at)?;
            if is_weak {
                return device.actual.as_ref();
            }
            let is_known = device.is_up && !device.is_stuck;
            device.state_at(device.position(id)?).filter(|_| is_known)
        };
        let outcome = condition.holds(&state).ok_or_else(|| {
            // The known states of the others do not decide it.
            let mut asked = condition.devices();
            let unknown = asked.find(|&at| state(at).is_none());
            self.unanswered(unknown, is_weak)
        });
        if is_weak {
            return Some(outcome);
        }
        let leniency = self.config.leniency;
        for at in condition.devices() {
            if let Some(device) = self.devices.get_mut(&at)
                && device.is_up
                && let Some(entry) = device.entry_mut(id)
                && let Some(length) = entry.begin(leniency)
            {
                cx.arm(Timer::Lease(at), length);
            }
        }
        Some(outcome)
    }

    /// Returns true if a condition of the routine reads the state of this device at its place in
    /// the order, or finds that it is down.
    pub(crate) fn can_read(&self, id: RoutineId, at: NodeId) -> bool {
        let Some(device) = self.devices.get(&at) else {
            return false;
        };
        let Some(place) = device.position(id) else {
            return false;
        };
        if device.head() != Some(id) || self.is_open_before(device, place) {
            return false;
        }
        let is_sent = device.flight.is_some() || device.late.is_some();
        !device.is_up || !is_sent && !device.needs_rollback()
    }

    /// The reason why a condition has no result, because of this device.
    fn unanswered(&self, at: Option<NodeId>, is_weak: bool) -> SkipReason {
        let Some(at) = at else {
            debug_assert!(
                false,
                "a clause without an answer asks about what is unknown"
            );
            return SkipReason::Condition;
        };
        let is_up = self.devices.get(&at).is_some_and(|it| it.is_up);
        if is_up || is_weak {
            SkipReason::StateUnknown(at)
        } else {
            SkipReason::Down(at)
        }
    }

    /// Returns true if a routine before this place may still be undone.
    pub(crate) fn is_open_before(&self, device: &Device<V>, at: usize) -> bool {
        let before = device.lineage.get(..at).unwrap_or_default();
        let is_open = |it: &Entry<V>| {
            let run = it.routine().and_then(|it| self.runs.get(&it));
            run.is_some_and(|run| run.stage != Stage::Committed)
        };
        before.iter().any(is_open) && !self.rules.reads_uncommitted()
    }
}
