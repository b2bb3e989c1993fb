//! The reason why a routine waits.
//!
//! Computed from the state on request, so no step keeps a reason up to date.

use alloc::format;
use alloc::string::String;

use selvedge_core::{NodeId, Span, Time};

use crate::lineage::{Device, Entry};
use crate::run::{Run, Stage};
use crate::schedule::Unready;
use crate::{Catalogue, Hub, RoutineId, Value};

/// The reason why a routine waits: the device, the cause, its start and its latest planned end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Wait {
    /// The routine that waits.
    pub routine: RoutineId,
    /// Its command that is in flight, or comes next, from 0.
    pub step: u16,
    /// The device. `None` if the routine is held back, or no place is free for it.
    pub device: Option<NodeId>,
    /// The cause.
    pub cause: WaitCause,
    /// The start: for its own command the moment when that was issued, for its hold the moment when
    /// that began, else the end of its last command, or its submission or admission. After a
    /// restart of the hub, the moment of the restart.
    pub since: Time,
    /// The latest planned end: by timeouts and holds, and by the estimates of the routines before
    /// it, which may be wrong. `None` if nothing is planned.
    pub until: Option<Time>,
}

/// The cause of a wait. No routine waits for a device that is down: a command to it fails at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitCause {
    /// The outcome of its own command.
    Outcome,
    /// The end of its own long command.
    Hold,
    /// This routine is first on the device, or may still be undone there though a condition asks
    /// for the state.
    Routine(RoutineId),
    /// The rollback of the device.
    Rollback,
    /// A command to the device with an unknown outcome may still [act](crate::Command::SetLateness).
    Late,
    /// This run of its key must be finished first, or this run that is held back itself and sets
    /// the same devices.
    Held(RoutineId),
    /// No place on its devices agrees with one order of all routines, until some are finished.
    Place,
}

impl<V: Value> Hub<V> {
    /// The reasons why the unfinished routines wait, one for each. [`wait`](Self::wait) documents
    /// the time that each takes.
    pub fn waits(&self) -> impl Iterator<Item = Wait> + '_ {
        self.unfinished().filter_map(|(id, _)| self.wait(id))
    }

    /// The reason why a routine waits; `None` if it is finished or unknown. Between two steps each
    /// unfinished routine waits.
    ///
    /// Takes O(k q), with k the number of devices that it needs and q the most routines that have a
    /// place on one of them or wait for it. If it is held back, or one routine runs at a time, it
    /// takes O(routines) besides; if all its devices are free, as long as placing it.
    #[must_use]
    pub fn wait(&self, id: RoutineId) -> Option<Wait> {
        let run = self.runs.get(&id)?;
        let (device, cause) = match run.stage {
            Stage::Committed => return None,
            Stage::Queued => (None, WaitCause::Held(self.held_by(id)?)),
            Stage::Waiting => self.why_placeless(id, run),
            Stage::Placed | Stage::Running | Stage::Aborting(_) => {
                let (device, cause) = self.why_placed(id, run)?;
                (Some(device), cause)
            }
        };
        let since = match (device.and_then(|it| self.devices.get(&it)), cause) {
            (Some(device), WaitCause::Outcome | WaitCause::Hold) => *device.since,
            _ => *run.since,
        };
        Some(Wait {
            routine: id,
            step: run.at,
            device,
            cause,
            since,
            until: device.and_then(|it| self.until(id, run, it, cause)),
        })
    }

    fn why_placed(&self, id: RoutineId, run: &Run<V>) -> Option<(NodeId, WaitCause)> {
        if let Some(at) = run.busy {
            let is_held = self.devices.get(&at)?.held == Some(id);
            let cause = if is_held {
                WaitCause::Hold
            } else {
                WaitCause::Outcome
            };
            return Some((at, cause));
        }
        let step = run.step()?;
        let asked = step.condition.as_ref().filter(|_| !run.tested);
        // The first device that its condition reads and cannot read yet.
        let keeps = |at: &NodeId| !self.can_read(id, *at);
        let first = asked.and_then(|it| it.devices().find(keeps));
        let first = first.or_else(|| asked.and_then(|it| it.devices().next()));
        let at = first.unwrap_or(step.device);
        let device = self.devices.get(&at)?;
        if let Some(first) = device.head().filter(|it| *it != id) {
            return Some((at, WaitCause::Routine(first)));
        }
        if asked.is_some()
            && let Some(place) = device.position(id)
            && let Some(open) = self.first_open(device, place)
        {
            return Some((at, WaitCause::Routine(open)));
        }
        Some((at, busy_with(device)))
    }

    fn why_placeless(&self, id: RoutineId, run: &Run<V>) -> (Option<NodeId>, WaitCause) {
        if self.is_one_by_one() {
            let mut active = self.runs.iter().filter(|it| it.1.is_active());
            let first = active.next().map(|it| *it.0).filter(|it| *it != id);
            let device = run.step().map(|it| it.device);
            return (device, first.map_or(WaitCause::Place, WaitCause::Routine));
        }
        let at = match self.can_start(id, run.since.0) {
            Err(Unready::Taken(at)) => at,
            Err(Unready::NoRoom) | Ok(_) => return (None, WaitCause::Place),
        };
        let Some(device) = self.devices.get(&at) else {
            return (None, WaitCause::Place);
        };
        let uses = |it: &&Entry<V>| it.touched && !it.released;
        let used = device.lineage.iter().find(uses).and_then(Entry::routine);
        let is_partitioned = self.config.visibility == crate::Visibility::PartitionedStrict;
        let head = device.head().filter(|_| is_partitioned);
        let is_sent = device.flight.is_some() || device.late.is_some();
        let cause = if let Some(first) = used.or(head) {
            WaitCause::Routine(first)
        } else if is_sent || device.is_up && device.needs_rollback() {
            busy_with(device)
        } else {
            let like = |it: &RoutineId| {
                let other = self.runs.get(it);
                other.is_some_and(|other| other.keeps_order_with(run))
            };
            let waits = self.waiting.first_before(id, at);
            let waits = waits.or_else(|| self.waiting.before(id, at).find(like));
            let open = || self.first_open(device, device.first_free());
            let last = || {
                let owners = device.lineage.iter().rev().filter_map(Entry::routine);
                owners.into_iter().find(|it| *it != id)
            };
            let first = waits.or_else(open).or_else(last);
            first.map_or(WaitCause::Place, WaitCause::Routine)
        };
        (Some(at), cause)
    }

    /// The first routine before this place that may still be undone.
    fn first_open(&self, device: &Device<V>, place: usize) -> Option<RoutineId> {
        let before = device.lineage.get(..place).unwrap_or_default();
        let mut routines = before.iter().filter_map(Entry::routine);
        routines.find(|it| {
            let run = self.runs.get(it);
            run.is_some_and(|run| run.stage != Stage::Committed)
        })
    }

    fn until(&self, id: RoutineId, run: &Run<V>, at: NodeId, cause: WaitCause) -> Option<Time> {
        let device = self.devices.get(&at)?;
        let since = *device.since;
        match cause {
            WaitCause::Outcome => Some(since + self.timeout(at)),
            WaitCause::Hold => Some(since + run.step()?.hold),
            WaitCause::Rollback if device.flight.is_some() => Some(since + self.timeout(at)),
            WaitCause::Rollback if device.rests => Some(since + self.config.undo_retry),
            WaitCause::Late => Some(since + device.late.as_ref()?.span),
            WaitCause::Routine(first) => {
                let is_over = self.runs.get(&first)?.is_over();
                if is_over && device.flight.is_some() {
                    return Some(since + self.timeout(at));
                }
                let place = device.position(id).unwrap_or(device.lineage.len());
                let before = device.lineage.get(..place).unwrap_or_default();
                let planned = before
                    .iter()
                    .filter(|it| !it.released && it.length > Span::ZERO);
                planned.map(Entry::end).max()
            }
            WaitCause::Rollback | WaitCause::Held(_) | WaitCause::Place => None,
        }
    }
}

/// The cause why the routine that is first on a device cannot have it yet.
fn busy_with<V: Value>(device: &Device<V>) -> WaitCause {
    if device.late.is_some() {
        return WaitCause::Late;
    }
    let flight = device.flight.as_ref().and_then(|it| it.routine);
    flight
        .or(device.held)
        .map_or(WaitCause::Rollback, WaitCause::Routine)
}

impl Wait {
    /// Describes the wait with the names of devices, as in "it waits for routine 3 on \"oven\"".
    #[must_use]
    pub fn explain(&self, catalogue: &Catalogue) -> String {
        let on = self
            .device
            .map_or_else(String::new, |it| catalogue.shown(it));
        match self.cause {
            WaitCause::Outcome => format!("its command to {on} is on its way"),
            WaitCause::Hold => format!("its command holds {on}"),
            WaitCause::Routine(first) => format!("it waits for routine {first} on {on}"),
            WaitCause::Rollback => format!("it waits until {on} is brought back"),
            WaitCause::Late => format!("an earlier command to {on} may still act"),
            WaitCause::Held(first) => format!("it is held back until routine {first} is finished"),
            WaitCause::Place => "no place for it agrees with one order".into(),
        }
    }
}
