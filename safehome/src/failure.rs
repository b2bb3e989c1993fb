//! Devices fail and restart: which routines that ends (section 3, figure 3).

use alloc::vec::Vec;

use selvedge_core::{Context, NodeId};

use crate::config::Visibility;
use crate::lineage::{Entry, Owner};
use crate::run::{Run, Stage};
use crate::work::Task;
use crate::{AbortReason, Hub, RoutineId, Timer, Value};

/// The most failures and restarts of a device that are kept in the order while a routine before
/// them is unfinished.
pub(crate) const KEPT: usize = 16;

impl<V: Value> Hub<V> {
    pub(crate) fn on_failed(&mut self, id: NodeId, cx: &mut Context<'_, Self>) {
        if let Some(device) = self.devices.get_mut(&id) {
            device.is_up = false;
        }
        self.note(id, Owner::Failed, cx);
        let affected = match self.config.visibility {
            Visibility::Weak => Vec::new(),
            Visibility::GlobalStrict => self.active(|run, _| run.routine.must_reach(id)),
            Visibility::StrongGlobalStrict => self.active(|_, _| true),
            Visibility::PartitionedStrict | Visibility::Eventual => {
                // Rules 2 and 3: before the first touch and after the last one it may fail.
                // A routine with a condition on it has its answer, and finds it down if it asks
                // again.
                let is_eventual = self.config.visibility == Visibility::Eventual;
                self.active(|run, routine| {
                    let must = if is_eventual {
                        run.routine.must_command(id)
                    } else {
                        run.routine.must_reach(id)
                    };
                    let is_needed = must || self.rules.any_command_aborts();
                    self.has_touched(routine, id) && run.still_needs(id) && is_needed
                })
            }
        };
        self.abort_all(&affected, id, cx);
        // A routine that waits for it finds it down.
        self.work.enqueue(Task::Device(id));
    }

    pub(crate) fn on_restarted(&mut self, id: NodeId, cx: &mut Context<'_, Self>) {
        if let Some(device) = self.devices.get_mut(&id) {
            device.is_up = true;
            device.is_stuck = false;
            device.rests = false;
            device.attempts = 0;
            cx.disarm(Timer::Retry(id));
        }
        self.note(id, Owner::Restarted, cx);
        let affected = match self.config.visibility {
            Visibility::GlobalStrict => self.active(|run, _| run.routine.must_reach(id)),
            Visibility::StrongGlobalStrict => self.active(|_, _| true),
            Visibility::Weak | Visibility::PartitionedStrict | Visibility::Eventual => Vec::new(),
        };
        self.abort_all(&affected, id, cx);
        self.work.enqueue(Task::Device(id));
    }

    fn active(&self, is_affected: impl Fn(&Run<V>, RoutineId) -> bool) -> Vec<RoutineId> {
        let runs = self.runs.iter();
        let affected = runs.filter(|&(&id, run)| {
            matches!(run.stage, Stage::Placed | Stage::Running) && is_affected(run, id)
        });
        affected.map(|(&id, _)| id).collect()
    }

    fn abort_all(&mut self, routines: &[RoutineId], id: NodeId, cx: &mut Context<'_, Self>) {
        let device = id;
        for &routine in routines {
            let step = self.runs.get(&routine).and_then(|it| it.blame(device));
            self.abort(routine, AbortReason::Device { device, step }, cx);
        }
    }

    /// A failure or a restart has its place in the order: behind all that have touched the device.
    fn note(&mut self, id: NodeId, owner: Owner, cx: &mut Context<'_, Self>) {
        let Some(device) = self.devices.get_mut(&id) else {
            debug_assert!(false, "the device is at the hub");
            return;
        };
        let is_event = |it: &Entry<V>| matches!(it.owner, Owner::Failed | Owner::Restarted);
        if device.lineage.iter().filter(|it| is_event(it)).count() >= KEPT {
            self.counters.unordered += 1;
            return;
        }
        device.happen(owner, None);
        self.work.unsettled.push(id);
        self.settle(cx);
    }
}
