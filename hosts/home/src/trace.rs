//! The events of a home, device by device and routine by routine.

use std::collections::BTreeMap;

use selvedge_core::{NodeId, Time};
use selvedge_routine::State;
use selvedge_safehome::{AbortReason, Routine, RoutineId, SkipReason, Visibility};

/// All events.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The routines, in the order of arrival.
    pub occurrences: BTreeMap<RoutineId, Occurrence>,
    /// The commands to devices, in the order in which they were issued.
    pub accesses: Vec<Access>,
    /// The rollbacks.
    pub restores: Vec<Restore>,
    /// The events of devices, with their times.
    pub happened: Vec<(Time, NodeId, Happened)>,
    /// The serial order, as the hub reported it.
    pub order: Vec<RoutineId>,
    /// The end.
    pub end: Time,
}

/// A run of a routine.
#[derive(Clone, Debug)]
pub struct Occurrence {
    /// The routine's name.
    pub name: String,
    /// The definition of the routine.
    pub routine: Routine<State>,
    /// The time of its arrival.
    pub arrived: Time,
    /// The time of its first command.
    pub started: Option<Time>,
    /// The time and kind of its end.
    pub ended: Option<(Time, End)>,
    /// The commands that were passed over.
    pub skipped: Vec<(u16, SkipReason)>,
    /// The routine that overwrote a change of this one before this one was finished, and the
    /// device.
    pub hidden: Option<(RoutineId, NodeId)>,
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All commands were done.
    Committed,
    /// All its changes were undone.
    Aborted(AbortReason),
}

/// A command to a device, with the time for which the routine needed the device.
#[derive(Clone, Debug)]
pub struct Access {
    /// The routine that used the device.
    pub routine: RoutineId,
    /// The number of the command, from 0.
    pub step: u16,
    /// The device.
    pub device: NodeId,
    /// The new state.
    pub state: State,
    /// The earliest time at which it could have been issued.
    pub waited: Time,
    /// The time at which it was issued.
    pub from: Time,
    /// The time at which it was done, held to its end, given up or aborted.
    pub until: Time,
    /// True if the device did it.
    pub done: bool,
}

/// A rollback.
#[derive(Clone, Debug)]
pub struct Restore {
    /// The device.
    pub device: NodeId,
    /// The restored state.
    pub state: State,
    /// The time at which it was issued.
    pub from: Time,
    /// The time at which it was done or given up.
    pub until: Time,
    /// True if the device did it.
    pub done: bool,
}

/// An event of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// It failed.
    Failed,
    /// The hub noticed the failure.
    FailureNoticed,
    /// It is up again.
    Restarted,
    /// The hub noticed the restart.
    RestartNoticed,
    /// It could not be restored, and stays as it is.
    Stuck,
}

/// The reason why a routine could have a device before another routine was finished with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// It went before this routine, which had started and had not used the device yet.
    Pre(RoutineId),
    /// This routine had used the device for the last time, and was not finished.
    Post(RoutineId),
}

impl Trace {
    /// The lease by which a routine first used a device, if it was one.
    ///
    /// A hub does not report leases. The lease follows from the routines that used the device,
    /// their order, and which of them were unfinished then. With `placed_late` routines get their
    /// place when they start, and not when they arrive.
    #[must_use]
    pub fn lease(
        &self,
        access: &Access,
        visibility: Visibility,
        placed_late: bool,
    ) -> Option<Lease> {
        if visibility != Visibility::Eventual {
            return None;
        }
        let here = || self.accesses.iter().filter(|it| it.device == access.device);
        let first = here().find(|it| it.routine == access.routine)?;
        if first.from != access.from || first.step != access.step {
            return None;
        }
        let run = self.occurrences.get(&access.routine)?;
        let placed = if placed_late {
            run.started?
        } else {
            run.arrived
        };
        let unfinished = |id: RoutineId| {
            let run = self.occurrences.get(&id);
            run.is_some_and(|run| run.ended.is_none_or(|(at, _)| at > access.from))
        };
        let before = here().take_while(|it| it.from < access.from).last();
        if let Some(before) = before.filter(|it| it.routine != access.routine) {
            let comes_back = here().any(|it| it.routine == before.routine && it.from > access.from);
            if unfinished(before.routine) && !comes_back {
                return Some(Lease::Post(before.routine));
            }
        }
        let overtaken = here().find(|it| {
            let started = self.occurrences.get(&it.routine).and_then(|it| it.started);
            let is_first =
                !here().any(|other| other.routine == it.routine && other.from < access.from);
            it.from > access.from
                && it.routine != access.routine
                && started.is_some_and(|it| it < placed)
                && unfinished(it.routine)
                && is_first
        });
        overtaken.map(|it| Lease::Pre(it.routine))
    }

    /// The routine that had the device last before a command to it was issued, while the command
    /// waited.
    #[must_use]
    pub fn waited_for(&self, access: &Access) -> Option<RoutineId> {
        let here = self.accesses.iter().filter(|it| it.device == access.device);
        let mut before = here.filter(|it| it.from < access.from && it.routine != access.routine);
        let last = before.next_back().filter(|it| it.until > access.waited);
        last.map(|it| it.routine)
    }
}
