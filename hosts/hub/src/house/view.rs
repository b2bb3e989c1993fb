//! The view of a house, as JSON.

use std::collections::BTreeMap;

use selvedge_core::{NodeId, Time};
use selvedge_routine::State;
use selvedge_safehome::{Place, PlaceStage, RoutineId};
use serde::Serialize;

use super::{Cause, Counts, End, House, Moment, Record, Refusal, Undone};

/// The number of runs that are shown.
const SHOWN: usize = 50;

/// A house at a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct View {
    /// Devices, by their names.
    pub devices: Vec<DeviceView>,
    /// The names of the routines that can be run, sorted.
    pub routines: Vec<String>,
    /// The unfinished runs and the latest others, the latest first.
    pub runs: Vec<RunView>,
    /// The number of runs of triggers that were refused, and of reports that came too late.
    pub refused: u64,
    /// Counters since the process began.
    pub counts: Counts,
}

/// A device at a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceView {
    /// Its name.
    pub name: String,
    /// Its state, if that is known: a word or a number, as text.
    pub state: Option<String>,
    /// True if it is up.
    pub up: bool,
    /// The reason why it is not up, with the remedy, if it is known.
    pub why: Option<String>,
    /// The runs that have a place in its order, in that order.
    pub lineage: Vec<PlaceView>,
}

/// The place of a run in the order of a device. Times are milliseconds since 1970, as planned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlaceView {
    /// The number of the run.
    pub run: u64,
    /// `planned`, `begun`, or `over` if it may still be undone.
    pub stage: &'static str,
    /// The start.
    pub start: u64,
    /// The end.
    pub end: u64,
}

/// A run at a moment. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunView {
    /// Its number.
    pub id: u64,
    /// The routine's name.
    pub name: String,
    /// The origin of the run.
    pub cause: Cause,
    /// The time at which it was requested.
    pub came: u64,
    /// The time at which its first command was issued.
    pub started: Option<u64>,
    /// The time at which it ended.
    pub ended: Option<u64>,
    /// `waits`, `runs`, `aborting`, `done` or `undone`.
    pub what: &'static str,
    /// The reason why it is undone, or why it waits.
    pub why: Option<String>,
    /// The time since which it waits.
    pub since: Option<u64>,
    /// The latest end of the wait, as planned.
    pub until: Option<u64>,
    /// The outcomes at its devices after it was undone, and the reasons for skipped commands.
    pub notes: Vec<String>,
    /// Its commands, in their order.
    pub steps: Vec<String>,
    /// The number of commands behind it, while it is not finished.
    pub at: Option<u16>,
    /// Its place in the serial order that explains the end state.
    pub place: Option<u64>,
}

/// The effects that a run would have on itself and on others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PreviewView {
    /// The reason why it would wait; `null` if it would begin at once.
    pub waits: Option<String>,
    /// The latest end of the wait, as planned: milliseconds since 1970.
    pub until: Option<u64>,
    /// The runs that it would supersede: they would be undone.
    pub superseded: Vec<u64>,
    /// The runs from which it would take a device: they would be undone.
    pub preempted: Vec<TakenView>,
    /// The runs that would lose a hold before its end.
    pub cut_short: Vec<TakenView>,
}

/// A run, and the device that would be taken from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TakenView {
    /// The number of the run.
    pub run: u64,
    /// The name of the device.
    pub device: String,
}

const fn words(undone: Undone) -> &'static str {
    match undone {
        Undone::NotNeeded => "needs no undoing",
        Undone::Begun => "is brought back",
        Undone::Pending => "is brought back when it is up again",
        Undone::Restored => "was brought back",
        Undone::Stuck => "refuses to be brought back",
        Undone::Impossible => "stays as it is: its state before is unknown",
    }
}

fn shown(state: &State) -> String {
    state.to_string()
}

impl House {
    /// The view of the house. Takes time in proportion to devices, routines and the runs that are shown.
    #[must_use]
    pub fn view(&self) -> View {
        let hub = self.hub();
        let devices = self.catalogue.iter().map(|(id, name)| DeviceView {
            name: name.into(),
            state: hub.state(id).map(shown),
            up: hub.is_up(id),
            why: self.troubles.get(&id).filter(|_| !hub.is_up(id)).cloned(),
            lineage: hub.lineage(id).map(|it| self.placed(it)).collect(),
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
            counts: self.counts(),
        }
    }

    /// The latest kept run of each routine that can be run, by the routines' names. Takes time in proportion
    /// to the kept runs.
    #[must_use]
    pub fn latest_runs(&self) -> Vec<RunView> {
        let at: BTreeMap<_, _> = self.hub().unfinished().collect();
        let mut latest: BTreeMap<&str, _> = self.routines().map(|it| (it, None)).collect();
        for (id, record) in self.records.latest() {
            if let Some(it) = latest.get_mut(record.name.as_str()) {
                it.get_or_insert((id, record));
            }
        }
        let latest = latest.into_values().flatten();
        latest
            .map(|(id, it)| self.shown(id, it, at.get(&id).copied()))
            .collect()
    }

    /// The view of a run.
    #[must_use]
    pub fn run_view(&self, id: RoutineId, record: &Record) -> RunView {
        let mut unfinished = self.hub().unfinished();
        let at = unfinished.find(|it| it.0 == id).map(|it| it.1);
        self.shown(id, record, at)
    }

    /// The view of a run that has reached this command.
    fn shown(&self, id: RoutineId, record: &Record, at: Option<u16>) -> RunView {
        let steps = record.routine.steps.iter();
        let steps = steps.map(|it| format!("{}: {}", self.named(it.device), it.value));
        let skipped = record.skipped.iter();
        let skipped = skipped.map(|(step, why)| format!("command {}: {why}", u32::from(*step) + 1));
        let mut notes: Vec<String> = skipped.collect();
        let wait = match record.ended {
            Some(_) => None,
            None => self.hub().wait(id),
        };
        let waits = || wait.map(|it| it.explain(&self.catalogue));
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
            None if record.started.is_some() => ("runs", waits()),
            None => ("waits", waits()),
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
            since: wait.map(|it| self.wall(it.since)),
            until: wait.and_then(|it| it.until).map(|it| self.wall(it)),
            notes,
            steps: steps.collect(),
            at,
            place: record.place,
        }
    }

    fn placed(&self, place: Place) -> PlaceView {
        PlaceView {
            run: place.routine.0,
            stage: match place.stage {
                PlaceStage::Planned => "planned",
                PlaceStage::Begun => "begun",
                PlaceStage::Over => "over",
            },
            start: self.wall(place.start),
            end: self.wall(place.start + place.length),
        }
    }

    /// A time, on the wall clock.
    fn wall(&self, time: Time) -> u64 {
        let Moment { now, wall } = self.latest;
        let (past, future) = (now.since(time), time.since(now));
        let shown = wall.saturating_add(future.0 / 1_000);
        shown.saturating_sub(past.0 / 1_000)
    }

    /// The effects that a run of this routine would have now.
    ///
    /// # Errors
    /// When the routine is unknown, or the hub would reject it.
    pub fn preview(&self, name: &str, moment: Moment) -> Result<PreviewView, Refusal> {
        let routine = self.routine(name)?;
        let terms = self.terms.get(name).cloned().unwrap_or_default();
        let found = self.hub().preview(moment.now, routine, terms);
        let found = found.map_err(|it| Refusal::Hub(it.explain(&self.catalogue)))?;
        let taken = |(id, device): &(RoutineId, NodeId)| TakenView {
            run: id.0,
            device: self.named(*device),
        };
        Ok(PreviewView {
            waits: found.wait.map(|it| it.explain(&self.catalogue)),
            until: found.wait.and_then(|it| it.until).map(|it| self.wall(it)),
            superseded: found.superseded.iter().map(|it| it.0).collect(),
            preempted: found.preempted.iter().map(taken).collect(),
            cut_short: found.cut_short.iter().map(taken).collect(),
        })
    }

    fn named(&self, device: NodeId) -> String {
        self.names
            .name(device)
            .map_or_else(|| device.to_string(), Into::into)
    }
}
