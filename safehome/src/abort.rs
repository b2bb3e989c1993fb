//! Aborts and rollbacks: one rollback at a time on each device, with a target that is computed when
//! it is issued.

use alloc::vec::Vec;

use selvedge_core::{Context, NodeId};

use crate::lineage::{Entry, Flight};
use crate::run::Stage;
use crate::work::Task;
use crate::{AbortReason, Event, Hub, Outcome, RoutineId, Timer, UndoStatus, Value};

impl<V: Value> Hub<V> {
    /// Aborts the routine, and undoes it once its command in flight has an outcome (erratum H11).
    pub(crate) fn abort(&mut self, id: RoutineId, why: AbortReason, cx: &mut Context<'_, Self>) {
        match self.runs.get(&id).map(|run| run.stage) {
            // A routine that is about to be admitted does not wait yet.
            Some(Stage::Waiting) => self.wait_no_longer(id),
            Some(Stage::Queued) => {
                self.held.remove(&id);
            }
            Some(Stage::Placed | Stage::Running | Stage::Aborting(_) | Stage::Committed) | None => {
            }
        }
        let Some(run) = self.runs.get_mut(&id) else {
            debug_assert!(false, "the routine is unfinished");
            return;
        };
        if matches!(run.stage, Stage::Aborting(_)) {
            // A lease may be over while the outcome is awaited: the first reason counts.
            return;
        }
        run.stage = Stage::Aborting(why);
        cx.event(Event::Aborting { routine: id, why });
        if let Some(at) = run.busy
            && let Some(device) = self.devices.get_mut(&at)
        {
            if device.held != Some(id) {
                if self.rules.drains_nothing() {
                    device.flight = None;
                    cx.disarm(Timer::Timeout(at));
                    self.undo(id, cx);
                }
                return;
            }
            device.held = None;
            cx.disarm(Timer::Hold(at));
        }
        self.undo(id, cx);
    }

    /// Takes the routine out of the order; its last state on each device is rolled back.
    pub(crate) fn undo(&mut self, id: RoutineId, cx: &mut Context<'_, Self>) {
        let Some(run) = self.runs.remove(&id) else {
            debug_assert!(false, "the routine is unfinished");
            return;
        };
        let Stage::Aborting(why) = run.stage else {
            debug_assert!(false, "only an aborting routine is undone");
            return;
        };
        self.stop_patience(id, cx);
        if why.makes_room() {
            // Before devices are restored: the routine for which it made room may set them.
            self.work.hurry(Task::Queue);
        }
        let mut undo = Vec::new();
        // The device that was changed last is restored first.
        for &at in run.devices.iter().rev() {
            if self.is_weak() {
                self.leave(id, at, cx);
            } else if let Some(outcome) = self.take_out(id, at, why, cx) {
                undo.push((at, outcome));
            }
            self.waiting.wake(at);
            self.work.enqueue(Task::Device(at));
        }
        cx.event(Event::Aborted {
            routine: id,
            why,
            undo,
        });
        self.work.unsettled.extend_from_slice(&run.devices);
        self.settle(cx);
        self.work.enqueue(Task::Queue);
        self.look_at_held();
    }

    /// Takes the routine out of the order of one device; `None` if it never touched it.
    fn take_out(
        &mut self,
        id: RoutineId,
        at: NodeId,
        why: AbortReason,
        cx: &mut Context<'_, Self>,
    ) -> Option<UndoStatus> {
        let device = self.devices.get_mut(&at)?;
        let place = device.position(id)?;
        let entry = device.lineage.remove(place);
        self.ranks.leave(&entry, at);
        if entry.is_lease() {
            cx.disarm(Timer::Lease(at));
        }
        if !entry.touched {
            return None;
        }
        let mut behind = device.lineage.iter().skip(place);
        let is_hidden = behind.any(|it| {
            it.wrote.is_some() || self.rules.touched_is_written() && it.routine().is_some()
        });
        #[cfg(feature = "check")]
        Self::undo_as_published(self.rules, device, is_hidden, why);
        #[cfg(not(feature = "check"))]
        let _ = why;
        if entry.undo.is_some() && !is_hidden {
            device.set_by_hand(place, entry.undo);
        }
        if device.desired().is_none() && device.actual != device.base {
            // The state before is unknown, so the device stays as it is.
            device.set_by_hand(place, device.actual.clone());
            if core::mem::take(&mut device.is_announced) {
                cx.event(Event::GivenUp(at));
            }
            return Some(UndoStatus::Impossible);
        }
        device.merge_manual(place);
        let may_have_changed = entry.doubtful || entry.wrote.is_some();
        if device.desired().is_none() && may_have_changed {
            return Some(UndoStatus::Impossible);
        }
        if !device.needs_rollback() {
            if device.is_stuck && device.actual.as_ref() != device.desired() {
                return Some(UndoStatus::Stuck);
            }
            // The state that it refused is not wanted any more.
            (device.is_stuck, device.attempts) = (false, 0);
            return Some(UndoStatus::NotNeeded);
        }
        device.is_announced = true;
        Some(if device.is_up && device.late.is_none() {
            UndoStatus::Begun
        } else {
            UndoStatus::Pending
        })
    }

    /// Emits the result of restoring a device, if that was promised and is known.
    #[inline]
    pub(crate) fn announce(&mut self, id: NodeId, cx: &mut Context<'_, Self>) {
        let is_announced = self.devices.get(&id).is_some_and(|it| it.is_announced);
        if is_announced && !self.is_weak() {
            self.announce_end(id, cx);
        }
    }

    /// Emits that a device is restored without a rollback, or cannot be restored any more.
    fn announce_end(&mut self, id: NodeId, cx: &mut Context<'_, Self>) {
        let Some(device) = self.devices.get_mut(&id) else {
            debug_assert!(false, "the device is at the hub");
            return;
        };
        let end = match device.desired() {
            None => Event::GivenUp(id),
            Some(desired) if device.actual.as_ref() == Some(desired) => Event::Restored(id),
            Some(_) => return,
        };
        device.is_announced = false;
        cx.event(end);
    }

    /// The rollback by the paper's rules (errata H5 to H8).
    #[cfg(feature = "check")]
    fn undo_as_published(
        rules: crate::published::Rules,
        device: &mut crate::lineage::Device<V>,
        is_hidden: bool,
        why: AbortReason,
    ) {
        let is_due = device.desired().is_some() && device.needs_rollback();
        let forgets = rules.forgets_rollback() && !device.is_up;
        if forgets || rules.touched_is_written() && is_hidden {
            device.actual = device.desired().cloned();
        } else if is_due
            && (rules.target_at_abort()
                || rules.free_rollback()
                || rules.undo_overwrites() && why.makes_room())
        {
            device.target = device.desired().cloned();
        }
    }

    /// Restores a device to the state in which it should be. That state is computed now, and
    /// compared again when the rollback is done (erratum H8).
    pub(crate) fn roll_back(&mut self, id: NodeId, cx: &mut Context<'_, Self>) {
        let timeout = self.config.timeout;
        let Some(device) = self.devices.get_mut(&id) else {
            debug_assert!(false, "the device is at the hub");
            return;
        };
        let Some(value) = device.desired().cloned() else {
            // Published rules roll back to a target though no state is known.
            return;
        };
        #[cfg(feature = "check")]
        let value = device.target.clone().unwrap_or(value);
        if device.rests {
            return;
        }
        self.token += 1;
        let token = self.token;
        device.flight = Some(Flight::new(token, value.clone(), None));
        *device.since = cx.now();
        cx.event(Event::Issue {
            device: id,
            token,
            value,
            routine: None,
        });
        cx.arm(Timer::Timeout(id), timeout);
    }

    pub(crate) fn on_rolled_back(
        &mut self,
        id: NodeId,
        outcome: Outcome,
        cx: &mut Context<'_, Self>,
    ) {
        let (limit, pause) = (self.config.undo_attempts, self.config.undo_retry);
        let Some(device) = self.devices.get_mut(&id) else {
            debug_assert!(false, "the device is at the hub");
            return;
        };
        if outcome == Outcome::Done {
            #[cfg(feature = "check")]
            if device.target.take().is_some() {
                device.actual = device.desired().cloned();
            }
            device.attempts = 0;
            if !device.needs_rollback() {
                device.is_announced = false;
                cx.event(Event::Restored(id));
            }
            return;
        }
        if !device.needs_rollback() {
            // It came into its state in another way.
            device.attempts = 0;
            return;
        }
        if !device.is_up {
            // It is tried when the device is up again (erratum H7).
            return;
        }
        device.attempts = device.attempts.saturating_add(1);
        if device.attempts >= limit {
            (device.is_stuck, device.is_announced) = (true, false);
            cx.event(Event::Stuck(id));
        } else {
            device.rests = true;
            *device.since = cx.now();
            cx.arm(Timer::Retry(id), pause);
        }
    }

    /// Aborts a routine because its lease of this device is over.
    pub(crate) fn end_lease(&mut self, id: RoutineId, device: NodeId, cx: &mut Context<'_, Self>) {
        let step = self.runs.get(&id).and_then(|it| it.blame(device));
        self.abort(id, AbortReason::LeaseExpired { device, step }, cx);
    }

    /// A routine that went before a waiting one has taken too long. It is aborted between two
    /// commands (erratum H12).
    pub(crate) fn on_lease_over(&mut self, id: NodeId, cx: &mut Context<'_, Self>) {
        let (leniency, short) = (self.config.leniency, self.config.short);
        let Some(device) = self.devices.get(&id) else {
            // A stray tick.
            return;
        };
        let Some(place) = device.lineage.iter().position(Entry::is_lease) else {
            // A stray tick: the lease is over.
            return;
        };
        let behind = device.lineage.iter().skip(place + 1);
        let waits = |routine| {
            let run = self.runs.get(&routine);
            run.is_some_and(|run| run.waits_for(id))
        };
        let is_awaited = behind.filter_map(Entry::routine).any(waits);
        let in_flight = device.flight.is_some();
        let Some(entry) = self
            .devices
            .get_mut(&id)
            .and_then(|it| it.lineage.get_mut(place))
        else {
            debug_assert!(false, "the place was found above");
            return;
        };
        let Some(owner) = entry.routine() else {
            debug_assert!(false, "only routines have leases");
            return;
        };
        if !is_awaited {
            // A plan from other, stored settings may be shorter than any command.
            cx.arm(Timer::Lease(id), entry.lease(leniency).max(short));
        } else if in_flight && !self.rules.revokes_in_flight() {
            entry.revoked = true;
        } else {
            #[cfg(feature = "check")]
            if in_flight
                && let Some(device) = self.devices.get_mut(&id)
                && let Some(run) = self.runs.get_mut(&owner)
            {
                device.flight = None;
                run.busy = None;
            }
            self.end_lease(owner, id, cx);
        }
    }
}
