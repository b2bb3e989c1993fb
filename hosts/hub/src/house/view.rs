//! What is shown of a house, as JSON.

use std::collections::BTreeMap;

use selvedge_routine::State;
use selvedge_safehome::RoutineId;
use serde::Serialize;

use super::{Cause, Counts, End, House, Record, Undone};

/// How many runs are shown.
const SHOWN: usize = 50;

/// A house at a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct View {
    /// Devices, by their names.
    pub devices: Vec<DeviceView>,
    /// The names of the routines that can be run, sorted.
    pub routines: Vec<String>,
    /// Those that are not finished and the latest of the others, the latest first.
    pub runs: Vec<RunView>,
    /// How many runs of triggers were refused, and reports that came too late.
    pub refused: u64,
    /// What happened since the process began.
    pub counts: Counts,
}

/// A device at a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceView {
    /// Its name.
    pub name: String,
    /// Its state, if that is known: a word or a number, as text.
    pub state: Option<String>,
    /// Whether it is up.
    pub up: bool,
}

/// A run at a moment. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunView {
    /// Its number.
    pub id: u64,
    /// The routine's name.
    pub name: String,
    /// Who asked for it.
    pub cause: Cause,
    /// When it came.
    pub came: u64,
    /// When its first command was issued.
    pub started: Option<u64>,
    /// When it ended.
    pub ended: Option<u64>,
    /// `waits`, `runs`, `aborting`, `done` or `undone`.
    pub what: &'static str,
    /// Why it is undone.
    pub why: Option<String>,
    /// What became of its devices after it was undone, or of commands that were passed over.
    pub notes: Vec<String>,
    /// What it does, one command after the other.
    pub steps: Vec<String>,
    /// How many commands are behind it, while it is not finished.
    pub at: Option<u16>,
    /// Its place in the order that explains the end.
    pub place: Option<u64>,
}

const fn words(undone: Undone) -> &'static str {
    match undone {
        Undone::NotNeeded => "needs no undoing",
        Undone::Begun => "is brought back",
        Undone::Pending => "is brought back when it is there again",
        Undone::Restored => "was brought back",
        Undone::Stuck => "refuses to be brought back",
        Undone::Impossible => "stays as it is: its state before is unknown",
    }
}

fn shown(state: &State) -> String {
    state.to_string()
}

impl House {
    /// What is shown of it. Takes time in proportion to devices, routines and the runs that are shown.
    #[must_use]
    pub fn view(&self) -> View {
        let hub = self.hub();
        let devices = self.catalogue.iter().map(|(id, name)| DeviceView {
            name: name.into(),
            state: hub.state(id).map(shown),
            up: hub.is_up(id),
        });
        let mut devices: Vec<_> = devices.collect();
        devices.sort_by(|a, b| a.name.cmp(&b.name));
        let runs = self.records.latest().enumerate();
        let runs = runs.filter(|(nth, (_, it))| *nth < SHOWN || it.ended.is_none());
        let at: BTreeMap<_, _> = hub.unfinished().collect();
        View {
            devices,
            routines: self.routines().map(Into::into).collect(),
            runs: runs
                .map(|(_, (id, it))| self.shown(id, it, at.get(&id).copied()))
                .collect(),
            refused: self.refused,
            counts: self.counts,
        }
    }

    /// What is shown of a run.
    #[must_use]
    pub fn run_view(&self, id: RoutineId, record: &Record) -> RunView {
        let mut unfinished = self.hub().unfinished();
        let at = unfinished.find(|it| it.0 == id).map(|it| it.1);
        self.shown(id, record, at)
    }

    /// What is shown of a run that has come to this command.
    fn shown(&self, id: RoutineId, record: &Record, at: Option<u16>) -> RunView {
        let steps = record.routine.steps.iter();
        let steps = steps.map(|it| format!("{}: {}", self.named(it.device), it.value));
        let skipped = record.skipped.iter();
        let skipped = skipped.map(|(step, why)| format!("command {}: {why}", u32::from(*step) + 1));
        let mut notes: Vec<String> = skipped.collect();
        let (what, why) = match &record.ended {
            Some((_, End::Committed)) => ("done", None),
            Some((_, End::Aborted { why, undo })) => {
                notes.extend(
                    undo.iter()
                        .map(|(name, it)| format!("{name} {}", words(*it))),
                );
                ("undone", Some(why.clone()))
            }
            None if record.aborting.is_some() => ("aborting", record.aborting.clone()),
            None if record.started.is_some() => ("runs", None),
            None => ("waits", None),
        };
        RunView {
            id: id.0,
            name: record.name.clone(),
            cause: record.cause,
            came: record.came,
            started: record.started,
            ended: record.ended.as_ref().map(|it| it.0),
            what,
            why,
            notes,
            steps: steps.collect(),
            at,
            place: record.place,
        }
    }

    fn named(&self, device: selvedge_core::NodeId) -> String {
        self.catalogue
            .name(device)
            .map_or_else(|| device.to_string(), Into::into)
    }
}
