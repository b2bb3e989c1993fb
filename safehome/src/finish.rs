//! The release of devices, the commit of routines, and their way into the serial order.

use alloc::vec::Vec;

use selvedge_core::{Context, NodeId};

use crate::config::Visibility;
use crate::run::{Run, Stage};
use crate::work::Task;
use crate::{AbortReason, Event, Hub, Placed, RoutineId, Timer, Value};

impl<V: Value> Hub<V> {
    /// Moves the routine to its next command, and releases the devices that it no longer needs.
    pub(crate) fn on_step_done(&mut self, id: RoutineId, cx: &mut Context<'_, Self>) {
        let Some(run) = self.runs.get_mut(&id) else {
            debug_assert!(false, "the routine is unfinished");
            return;
        };
        let Some(step) = run.step() else {
            debug_assert!(false, "the step that is done is there");
            return;
        };
        let (done, at) = (usize::from(run.at), step.device);
        let asked = step.condition.as_ref().map_or(0, |it| it.devices().count());
        run.at += 1;
        run.busy = None;
        run.tested = false;
        *run.since = cx.now();
        let stays = run.still_needs(at).then(|| run.takes_over());
        for nth in 0..asked {
            // Searched each time: a list of them would be an allocation for each command.
            let step = self.runs.get(&id).and_then(|it| it.routine.steps.get(done));
            let condition = step.and_then(|it| it.condition.as_ref());
            if let Some(at) = condition.and_then(|it| it.devices().nth(nth)) {
                let run = self.runs.get(&id).filter(|it| it.still_needs(at));
                let stays = run.map(Run::takes_over);
                self.let_go(id, at, stays, cx);
            }
        }
        self.let_go(id, at, stays, cx);
    }

    /// Handles the end of a command that needed this device. `stays` is `None` if no later command
    /// of the routine needs it, else true if the routine takes the device over.
    fn let_go(
        &mut self,
        id: RoutineId,
        at: NodeId,
        stays: Option<bool>,
        cx: &mut Context<'_, Self>,
    ) {
        if self.is_weak() {
            self.leave(id, at, cx);
            return;
        }
        let Some(takes_over) = stays else {
            self.release(id, at, cx);
            return;
        };
        if self.waiting.is_awaited(at) && !self.has_touched(id, at) {
            // It skipped its command and does not wait here now: others may go before it.
            self.work.enqueue(Task::Queue);
        }
        if takes_over {
            // Its next command there may have a condition: then the device is restored first.
            self.work.enqueue(Task::Device(at));
        }
        if self.rules.releases_between()
            && let Some(device) = self.devices.get_mut(&at)
            && let Some(entry) = device.entry_mut(id)
        {
            entry.released = true;
            self.waiting.wake(at);
            self.work.enqueue(Task::Device(at));
        }
    }

    pub(crate) fn has_touched(&self, id: RoutineId, at: NodeId) -> bool {
        let entry = self.devices.get(&at).and_then(|it| it.entry(id));
        entry.is_some_and(|it| it.touched)
    }

    /// Releases a device that is no longer needed, if it may be released. A place that was never
    /// touched is given up (erratum H9).
    fn release(&mut self, id: RoutineId, at: NodeId, cx: &mut Context<'_, Self>) {
        let releases = self.config.post_leases && self.config.visibility == Visibility::Eventual;
        let Some(device) = self.devices.get_mut(&at) else {
            debug_assert!(false, "the device is at the hub");
            return;
        };
        let Some(place) = device.position(id) else {
            // The condition of the step read the device that the step commanded, and its place was
            // given up.
            return;
        };
        let Some(entry) = device.lineage.get_mut(place) else {
            debug_assert!(false, "the place was found above");
            return;
        };
        // A lease that has not begun ends no other lease.
        if entry.is_lease() {
            cx.disarm(Timer::Lease(at));
        }
        if !entry.touched {
            let entry = device.lineage.remove(place);
            self.ranks.leave(&entry, at);
        } else if releases || entry.leased {
            // A pre-lease returns to the routine from which it was taken (section 4.1).
            entry.released = true;
        } else {
            return;
        }
        self.waiting.wake(at);
        self.work.enqueue(Task::Device(at));
        self.work.enqueue(Task::Queue);
    }

    /// All commands are done.
    pub(crate) fn finish(&mut self, id: RoutineId, cx: &mut Context<'_, Self>) {
        let Some(run) = self.runs.get(&id) else {
            debug_assert!(false, "the routine is unfinished");
            return;
        };
        if self.config.visibility == Visibility::PartitionedStrict {
            // Rule 3* of section 3: a device that failed meanwhile must be up again.
            let is_down = |it: &&NodeId| !self.is_up(**it) && run.routine.must_reach(**it);
            let touched = |it: &&NodeId| self.has_touched(id, **it);
            if let Some(&down) = run.devices.iter().filter(touched).find(is_down) {
                let step = run.blame(down);
                let device = down;
                self.abort(id, AbortReason::Device { device, step }, cx);
                return;
            }
        }
        cx.event(Event::Committed(id));
        self.stop_patience(id, cx);
        let Some(run) = self.runs.get_mut(&id) else {
            debug_assert!(false, "the routine was found above");
            return;
        };
        run.stage = Stage::Committed;
        let mut devices = core::mem::take(&mut run.devices);
        for &at in &devices {
            if let Some(device) = self.devices.get_mut(&at) {
                if let Some(entry) = device.entry_mut(id) {
                    entry.released = true;
                }
                self.waiting.wake(at);
                self.work.enqueue(Task::Device(at));
            }
        }
        #[cfg(feature = "check")]
        self.compact(id, &devices);
        self.work.unsettled.extend_from_slice(&devices);
        // The entry that is kept of it has its places only.
        devices.retain(|at| self.place_of(id, *at).is_some());
        if devices.is_empty() {
            // It touched no device, or the hub is weak.
            self.runs.remove(&id);
            if !self.is_weak() {
                cx.event(Event::Ordered(Placed::Routine(id)));
            }
        } else if let Some(run) = self.runs.get_mut(&id) {
            devices.sort_unstable();
            *run = Run::committed(devices, Vec::new());
            self.tally.add(run);
        }
        self.settle(cx);
        self.join_committed();
        self.work.enqueue(Task::Queue);
        self.look_at_held();
    }

    /// Commits by the rule of section 4.3: the routine's place is removed, and all places before it
    /// (errata H2 to H4).
    #[cfg(feature = "check")]
    fn compact(&mut self, id: RoutineId, devices: &[NodeId]) {
        if !self.rules.compacts() {
            return;
        }
        let Some(run) = self.runs.get(&id) else {
            debug_assert!(false, "the routine is unfinished");
            return;
        };
        for &at in devices {
            let mut steps = run.routine.steps.iter().rev();
            let last = steps.find(|step| step.device == at);
            let Some(device) = self.devices.get_mut(&at) else {
                debug_assert!(false, "the device is at the hub");
                continue;
            };
            if let Some(place) = device.position(id) {
                let wrote = device.lineage.drain(..=place).last();
                let wrote = wrote.and_then(|it| it.wrote);
                device.base = wrote.or(device.base.take());
            } else if self.rules.commits_compacted() {
                device.base = last.map(|step| step.value.clone());
                device.actual = device.desired().cloned();
            }
        }
    }

    pub(crate) fn place_of(&self, id: RoutineId, at: NodeId) -> Option<usize> {
        self.devices.get(&at)?.position(id)
    }

    /// Moves finished entries at the front of a device's order into its base: a committed routine
    /// only when it is first everywhere, so no unfinished one is before it (errata H2 to H4).
    /// Examines the devices that are noted as unsettled.
    pub(crate) fn settle(&mut self, cx: &mut Context<'_, Self>) {
        while let Some(at) = self.work.unsettled.pop() {
            let Some(device) = self.devices.get_mut(&at) else {
                debug_assert!(false, "the device is at the hub");
                continue;
            };
            let Some(first) = device.lineage.first() else {
                // All of its lineage is settled.
                continue;
            };
            if let Some(happened) = first.happening(at) {
                let state = device.lineage.remove(0).wrote;
                if matches!(happened, Placed::Set { .. }) {
                    device.base = state;
                }
                cx.event(Event::Ordered(happened));
                self.work.unsettled.push(at);
                continue;
            }
            let Some(id) = first.routine() else {
                debug_assert!(false, "what did not happen to the device is a routine");
                continue;
            };
            let Some(run) = self.runs.get(&id) else {
                debug_assert!(false, "a place keeps its routine");
                continue;
            };
            let is_first = |at: &NodeId| self.place_of(id, *at).is_none_or(|place| place == 0);
            if run.stage != Stage::Committed || !run.devices.iter().all(is_first) {
                continue;
            }
            let Some(run) = self.runs.remove(&id) else {
                debug_assert!(false, "the routine was found above");
                continue;
            };
            self.tally.remove(&run);
            if run.order.is_empty() {
                cx.event(Event::Ordered(Placed::Routine(id)));
            }
            for placed in run.order {
                cx.event(Event::Ordered(placed));
            }
            for at in run.devices {
                if let Some(device) = self.devices.get_mut(&at)
                    && device.position(id) == Some(0)
                {
                    let entry = device.lineage.remove(0);
                    self.ranks.leave(&entry, at);
                    if entry.wrote.is_some() {
                        device.base = entry.wrote;
                    }
                    if !device.lineage.is_empty() {
                        self.work.unsettled.push(at);
                    }
                }
            }
        }
    }
}
