//! The record of a run, for people.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_core::NodeId;
use selvedge_routine::State;
use selvedge_routine::{Catalogue, Routine};
use selvedge_safehome::{AbortReason, RoutineId, SkipReason, UndoStatus};
use serde::{Deserialize, Serialize};

/// The number of finished runs that are kept.
pub const KEPT: usize = 1_000;

/// The origin of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// A person.
    Hand,
    /// A trigger.
    Trigger,
}

/// A run: its commands, and their outcome. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The routine's name.
    pub name: String,
    /// The origin of the run.
    pub cause: Cause,
    /// The commands of the run.
    pub routine: Routine<State>,
    /// The time at which it was requested.
    pub came: u64,
    /// The time at which its first command was issued.
    pub started: Option<u64>,
    /// The reason why it will be undone, if it will be.
    pub aborting: Option<String>,
    /// The time and the kind of its end.
    pub ended: Option<(u64, End)>,
    /// Its skipped commands, by number from 0, and the reasons.
    pub skipped: Vec<(u16, String)>,
    /// Its place in the serial order that explains the end state: from 1.
    pub place: Option<u64>,
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// All commands were done, except skipped ones.
    Committed,
    /// It is undone.
    Aborted {
        /// The reason.
        why: String,
        /// The outcome at each device that it had commanded, by the devices' names.
        undo: Vec<(String, Undone)>,
    },
}

/// The outcome of undoing an aborted run at a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Undone {
    /// Nothing had to be undone.
    NotNeeded,
    /// It is being restored.
    Begun,
    /// It will be restored when it is up again.
    Pending,
    /// It was restored.
    Restored,
    /// It refuses.
    Stuck,
    /// The state before is unknown.
    Impossible,
}

impl From<UndoStatus> for Undone {
    fn from(status: UndoStatus) -> Self {
        match status {
            UndoStatus::NotNeeded => Self::NotNeeded,
            UndoStatus::Begun => Self::Begun,
            UndoStatus::Pending => Self::Pending,
            UndoStatus::Stuck => Self::Stuck,
            UndoStatus::Impossible => Self::Impossible,
        }
    }
}

impl Record {
    pub(super) const fn new(
        name: String,
        cause: Cause,
        routine: Routine<State>,
        came: u64,
    ) -> Self {
        Self {
            name,
            cause,
            routine,
            came,
            started: None,
            aborting: None,
            ended: None,
            skipped: Vec::new(),
            place: None,
        }
    }

    pub(super) fn on_aborted(
        &mut self,
        why: AbortReason,
        undo: &[(NodeId, UndoStatus)],
        catalogue: &Catalogue,
        wall: u64,
    ) {
        let why = why.explain(&self.routine, catalogue);
        let undo = undo.iter().map(|&(device, status)| {
            let name = catalogue.name(device);
            (
                name.map_or_else(|| device.to_string(), Into::into),
                status.into(),
            )
        });
        let undo = undo.collect();
        self.ended = Some((wall, End::Aborted { why, undo }));
    }

    pub(super) fn on_skipped(&mut self, step: u16, why: SkipReason, catalogue: &Catalogue) {
        self.skipped.push((step, skipped(why, catalogue)));
    }

    /// Returns true if its record is complete.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        match &self.ended {
            None => false,
            Some((_, End::Committed)) => self.place.is_some(),
            Some((_, End::Aborted { .. })) => true,
        }
    }
}

/// The unfinished runs, and the latest finished ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    runs: BTreeMap<RoutineId, Record>,
    /// The number of complete records.
    over: usize,
    places: u64,
    /// The runs that were forgotten since this list was last taken.
    forgotten: Vec<RoutineId>,
}

impl Records {
    pub(super) fn new(runs: BTreeMap<RoutineId, Record>) -> Self {
        let over = runs.values().filter(|it| it.is_over()).count();
        let places = runs.values().filter_map(|it| it.place).max();
        Self {
            runs,
            over,
            places: places.unwrap_or_default(),
            forgotten: Vec::new(),
        }
    }

    pub(super) fn take_forgotten(&mut self) -> Vec<RoutineId> {
        core::mem::take(&mut self.forgotten)
    }

    /// The runs, the latest first.
    pub fn latest(&self) -> impl Iterator<Item = (RoutineId, &Record)> {
        self.runs.iter().rev().map(|(&id, it)| (id, it))
    }

    /// A run, if it is kept.
    #[must_use]
    pub fn get(&self, id: RoutineId) -> Option<&Record> {
        self.runs.get(&id)
    }

    /// The devices of all kept runs.
    pub(super) fn devices(&self) -> BTreeSet<NodeId> {
        let routines = self.runs.values().map(|it| &it.routine);
        routines.flat_map(Routine::devices).collect()
    }

    pub(super) fn insert(&mut self, id: RoutineId, record: Record) {
        self.runs.insert(id, record);
    }

    /// Changes the record of a run. Returns the record if it is kept.
    pub(super) fn note(
        &mut self,
        id: RoutineId,
        change: impl FnOnce(&mut Record),
    ) -> Option<&Record> {
        let record = self.runs.get_mut(&id)?;
        let was_over = record.is_over();
        change(record);
        self.over += usize::from(record.is_over() && !was_over);
        if self.over > KEPT {
            let last = Some(self.places);
            // The last place stays, because the next place follows from it.
            let mut others = self
                .runs
                .iter()
                .filter(|it| *it.0 != id && it.1.place != last);
            if let Some((&oldest, _)) = others.find(|it| it.1.is_over()) {
                self.runs.remove(&oldest);
                self.forgotten.push(oldest);
                self.over -= 1;
            }
        }
        self.runs.get(&id)
    }

    /// Ends the undoing at this device, begun or pending, in this way. Returns the runs that it was for.
    /// O(runs).
    pub(super) fn undone(&mut self, device: &str, end: Undone) -> Vec<RoutineId> {
        let mut changed = Vec::new();
        for (&id, record) in &mut self.runs {
            let Some((_, End::Aborted { undo, .. })) = &mut record.ended else {
                continue;
            };
            let open = undo.iter_mut().filter(|it| it.0 == device);
            for it in open.filter(|it| matches!(it.1, Undone::Begun | Undone::Pending)) {
                it.1 = end;
                changed.push(id);
            }
        }
        changed
    }

    /// The next place in the serial order that explains the end state.
    pub(super) const fn next_place(&mut self) -> u64 {
        self.places += 1;
        self.places
    }
}

fn skipped(why: SkipReason, catalogue: &Catalogue) -> String {
    match why {
        SkipReason::Condition => "its condition did not hold".into(),
        SkipReason::Down(device) => format!("{} was down", catalogue.shown(device)),
        SkipReason::Refused => "the device refused".into(),
        SkipReason::Unknown => "the device gave no answer".into(),
        SkipReason::StateUnknown(device) => {
            format!("the state of {} was unknown", catalogue.shown(device))
        }
    }
}
