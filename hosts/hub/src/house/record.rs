//! What became of a run, for people.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_core::NodeId;
use selvedge_routine::State;
use selvedge_routine::{Catalogue, Routine};
use selvedge_safehome::{AbortReason, RoutineId, SkipReason, UndoStatus};
use serde::{Deserialize, Serialize};

/// How many runs that are finished are kept.
pub const KEPT: usize = 1_000;

/// Who or what asked for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// A person.
    Hand,
    /// A trigger.
    Trigger,
}

/// A run: what it was to do, and what became of it. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The routine's name.
    pub name: String,
    /// Who asked for it.
    pub cause: Cause,
    /// What it was to do.
    pub routine: Routine<State>,
    /// When it came.
    pub came: u64,
    /// When its first command was issued.
    pub started: Option<u64>,
    /// Why it is going to be undone, if it is.
    pub aborting: Option<String>,
    /// When and how it ended.
    pub ended: Option<(u64, End)>,
    /// Its commands that were passed over, from 0, and why.
    pub skipped: Vec<(u16, String)>,
    /// Its place in the order that explains the end: from 1.
    pub place: Option<u64>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// All was done, but what was passed over.
    Committed,
    /// It is undone.
    Aborted {
        /// Why.
        why: String,
        /// What became of the devices that it had commanded, by their names.
        undo: Vec<(String, Undone)>,
    },
}

/// What becomes of a device after a run was aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Undone {
    /// Nothing was to be done.
    NotNeeded,
    /// It is brought back.
    Begun,
    /// It is brought back when it is there again.
    Pending,
    /// It was brought back.
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

    /// Whether nothing more is told of it.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        match &self.ended {
            None => false,
            Some((_, End::Committed)) => self.place.is_some(),
            Some((_, End::Aborted { .. })) => true,
        }
    }
}

/// The runs that are not finished, and the latest of those that are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    runs: BTreeMap<RoutineId, Record>,
    /// How many are over.
    over: usize,
    places: u64,
    /// Those that were forgotten since this was asked last.
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

    /// The latest first.
    pub fn latest(&self) -> impl Iterator<Item = (RoutineId, &Record)> {
        self.runs.iter().rev().map(|(&id, it)| (id, it))
    }

    /// A run, if it is kept.
    #[must_use]
    pub fn get(&self, id: RoutineId) -> Option<&Record> {
        self.runs.get(&id)
    }

    /// The devices of all that are kept.
    pub(super) fn devices(&self) -> BTreeSet<NodeId> {
        let routines = self.runs.values().map(|it| &it.routine);
        routines.flat_map(Routine::devices).collect()
    }

    pub(super) fn insert(&mut self, id: RoutineId, record: Record) {
        self.runs.insert(id, record);
    }

    /// Notes what became of a run. Returns it if it is kept.
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
            // The last place stays, for the next one is behind it.
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

    /// What was begun on this device, or was to be, ended so. Returns the runs of which it was. O(runs).
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

    /// The next place in the order that explains the end.
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
