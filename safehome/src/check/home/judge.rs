//! The conditions on a home.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::NodeId;

use super::super::order::is_in_order;
use super::super::patience::Impatient;
use super::{Happening, Home, Tick};
use crate::lineage::Owner;
use crate::run::{Run, Stage};
use crate::{
    AbortReason, Placed, Priority, Routine, RoutineId, Scheduler, SkipReason, Timer, Visibility,
};

impl Home {
    /// Returns true if all events have happened, and the hub has nothing more to do.
    pub(super) fn is_over(&self) -> bool {
        let submits = |it: &&Happening| it.steps().is_some();
        let wanted = self.happenings.iter().filter(submits).count();
        let hub = self.hub();
        let rolls_back = |(_, it): (&NodeId, &crate::lineage::Device<u8>)| {
            it.is_up && (it.is_announced || !it.is_stuck && it.actual.as_ref() != it.desired())
        };
        self.finished == wanted
            && hub.is_quiet()
            && !hub.devices.iter().any(rolls_back)
            && self
                .things
                .iter()
                .all(|it| it.flight.is_none() && it.late.is_none())
    }

    /// Returns true if the devices are as they would be after the committed routines, one by one,
    /// and each command was skipped for its condition exactly if that does not hold.
    pub(super) fn is_explained(&self) -> bool {
        let mut serial = vec![0; self.things.len()];
        let state = |serial: &[u8], id: u64| {
            let at = usize::try_from(id).unwrap_or(usize::MAX);
            serial.get(at).copied().unwrap_or_default()
        };
        for placed in &self.order {
            let id = match *placed {
                Placed::Routine(id) => id,
                Placed::Set { device, state } => {
                    // There are no manual changes here.
                    if !self.is_handler(device, state) {
                        return false;
                    }
                    let at = usize::try_from(device.0).unwrap_or(usize::MAX);
                    if let (Some(serial), Some(state)) = (serial.get_mut(at), state) {
                        *serial = state;
                    }
                    continue;
                }
                Placed::Failed(_) | Placed::Restarted(_) => continue,
            };
            let which = self.submitted.iter().position(|it| *it == Some(id));
            let happening = which.and_then(|it| self.happenings.get(it));
            let Some(steps) = happening.and_then(Happening::steps) else {
                return false;
            };
            for (step, nth) in steps.iter().zip(0_u16..) {
                let skip = self.skipped.iter().find(|it| (it.0, it.1) == (id, nth));
                let why = skip.map(|it| it.2);
                if let Some((device, value)) = step.only_if {
                    let holds = state(&serial, device) == value;
                    let is_wrong = if holds {
                        why == Some(SkipReason::Condition)
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

    /// Returns true if an undo handler brings the device into this state.
    fn is_handler(&self, device: NodeId, state: Option<u8>) -> bool {
        let steps = self.happenings.iter().filter_map(Happening::steps);
        steps
            .flatten()
            .any(|it| it.device == device.0 && it.undo.is_some() && it.undo == state)
    }

    /// Returns true if, of routines that set the same devices and ask for no state, the last one is
    /// last.
    pub(super) fn is_in_order(&self) -> bool {
        let is_skipped = |id, nth| self.skipped.iter().any(|it| (it.0, it.1) == (id, nth));
        let routine = |id| {
            let which = self.submitted.iter().position(|it| *it == Some(id))?;
            let steps = self.happenings.get(which)?.steps()?;
            let steps = steps.iter().map(|it| it.step()).collect();
            Some(Routine { steps })
        };
        is_in_order(&self.order, routine, is_skipped)
    }

    /// Returns true if invariants 2 to 4 hold, and the waiting routines follow from the rest: the
    /// model does not distinguish states by them.
    pub(super) fn is_consistent(&self) -> bool {
        let hub = self.hub();
        if !hub.waits_as_routines_say() {
            return false;
        }
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
        // No two are before each other, by way of any others.
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

impl Home {
    /// The routines that have waited for too long, with a place or without one.
    pub(super) fn late(&self) -> Vec<Impatient> {
        let late = self.hub().runs.iter().filter(|it| it.1.late);
        late.map(|it| Impatient::new(self.hub(), *it.0)).collect()
    }

    /// Returns true if all routines that may be overtaken lose their patience at some time: the
    /// ones that have issued no command yet.
    pub(super) fn is_patience_bounded(&self, timers: &[Tick]) -> bool {
        let config = self.hub().config();
        let is_patient =
            config.visibility == Visibility::Eventual && config.scheduler == Scheduler::JustInTime;
        let loses = |id: RoutineId| timers.contains(&Tick::Hub(Timer::Patience(id)));
        let waits = |run: &Run<u8>| matches!(run.stage, Stage::Waiting | Stage::Placed);
        let mut waiting = self.hub().runs.iter().filter(|it| waits(it.1));
        !is_patient || waiting.all(|(id, run)| run.late || loses(*id))
    }
}

/// Returns true if a routine is aborted for a device that it need not command.
pub(super) fn is_harsh(
    happenings: &[Happening],
    submitted: &[Option<RoutineId>],
    routine: RoutineId,
    why: AbortReason,
) -> bool {
    let AbortReason::Device { device, .. } = why else {
        return false;
    };
    let which = submitted.iter().position(|it| *it == Some(routine));
    let happening = which.and_then(|it| happenings.get(it));
    let Some(steps) = happening.and_then(Happening::steps) else {
        return false;
    };
    let must = |it: &&super::Do| it.device == device.0 && it.priority == Priority::Must;
    !steps.iter().any(|it| must(&it))
}
