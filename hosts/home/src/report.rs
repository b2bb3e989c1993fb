//! The result of a run, for the terminal and for programs.

use std::collections::BTreeMap;
use std::io::{self, Write};

use selvedge_core::{NodeId, Time};
use selvedge_routine::State;
use selvedge_safehome::{AbortReason, Counters, RoutineId};
use serde::Serialize;
use serde_json::{Value, json};

use super::run::{Outcomes, Plan};
use super::trace::{End, Trace};
use crate::term::Colour;

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The plan.
    pub plan: Plan,
    /// The events.
    pub trace: Trace,
    /// The state of each device at the end, with true if it is up.
    pub devices: BTreeMap<NodeId, (Option<State>, bool)>,
    /// True if the reported serial order gives the devices' states; `None` if the hub reports no
    /// order (weak visibility), or if a device is down or could not be restored.
    pub explained: Option<bool>,
    /// The counters of the hub.
    pub counters: Counters,
}

/// A run of a routine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RoutineReport {
    /// Its number in the order of arrival, from 1.
    pub number: u64,
    /// The routine's name.
    pub name: String,
    /// The time of its arrival, in seconds.
    pub arrived: f64,
    /// The time of its first command, in seconds.
    pub started: Option<f64>,
    /// The time of its end, in seconds.
    pub ended: Option<f64>,
    /// `done`, `undone`, or `unfinished`.
    pub outcome: &'static str,
    /// The reason why it was undone, or the commands that were passed over.
    pub why: String,
    /// Its place in the serial order, from 1.
    pub order: Option<usize>,
}

impl Report {
    pub(super) fn new(plan: &Plan, outcomes: Outcomes, counters: Counters) -> Self {
        Self {
            plan: plan.clone(),
            trace: outcomes.trace,
            devices: outcomes.devices,
            explained: outcomes.explained,
            counters,
        }
    }

    /// Returns true if all routines ended and the serial order, if reported, explains the end.
    #[must_use]
    pub fn held(&self) -> bool {
        let mut all = self.trace.occurrences.values();
        all.all(|it| it.ended.is_some()) && self.explained != Some(false)
    }

    /// All runs, in the order of arrival.
    #[must_use]
    pub fn routines(&self) -> Vec<RoutineReport> {
        let all = self.trace.occurrences.iter();
        all.map(|(&id, _)| self.routine(id)).collect()
    }

    /// The mean time from arrival to end, in seconds, of the routines that were done.
    #[must_use]
    pub fn mean_latency(&self) -> Option<f64> {
        let done = self
            .trace
            .occurrences
            .values()
            .filter_map(|it| match it.ended {
                Some((at, End::Committed)) => Some(seconds(at) - seconds(it.arrived)),
                Some((_, End::Aborted(_))) | None => None,
            });
        let all: Vec<f64> = done.collect();
        (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
    }

    /// The whole report, for programs.
    #[must_use]
    pub fn json(&self) -> Value {
        let devices = self.plan.home.catalogue.iter().map(|(id, name)| {
            let (state, is_up) = self.devices.get(&id).cloned().unwrap_or((None, false));
            json!({"device": name, "state": state.map(|it| it.to_string()), "up": is_up})
        });
        json!({
            "visibility": self.plan.config.visibility,
            "scheduler": self.plan.config.scheduler,
            "end": seconds(self.trace.end),
            "mean_latency": self.mean_latency(),
            "explained": self.explained,
            "held": self.held(),
            "counters": self.counters,
            "routines": self.routines(),
            "devices": devices.collect::<Vec<_>>(),
        })
    }

    fn routine(&self, id: RoutineId) -> RoutineReport {
        let trace = &self.trace;
        let order = trace.order.iter().position(|&it| it == id);
        let mut report = RoutineReport {
            number: id.0,
            name: String::new(),
            arrived: 0.0,
            started: None,
            ended: None,
            outcome: "unfinished",
            why: String::new(),
            order: order.map(|it| it + 1),
        };
        let Some(run) = trace.occurrences.get(&id) else {
            return report;
        };
        report.name.clone_from(&run.name);
        report.arrived = seconds(run.arrived);
        report.started = run.started.map(seconds);
        report.ended = run.ended.map(|(at, _)| seconds(at));
        let catalogue = &self.plan.home.catalogue;
        match run.ended {
            Some((_, End::Committed)) => report.outcome = "done",
            Some((_, End::Aborted(why))) => {
                report.outcome = "undone";
                report.why = why.explain(&run.routine, catalogue);
            }
            None => {}
        }
        if report.why.is_empty() {
            let skipped = run.skipped.iter().map(|&(step, skip)| {
                let why = AbortReason::Step(step, skip).explain(&run.routine, catalogue);
                format!("passed over: {why}")
            });
            report.why = skipped.collect::<Vec<_>>().join("; ");
        }
        report
    }
}

/// Writes the result of a run.
///
/// # Errors
/// If writing to `out` fails.
pub fn write_report(out: &mut impl Write, colour: Colour, report: &Report) -> io::Result<()> {
    let routines = report.routines();
    let count = |outcome: &str| routines.iter().filter(|it| it.outcome == outcome).count();
    let latency = report.mean_latency().map_or_else(String::new, |it| {
        format!(", {it:.1} s from arrival to end on average")
    });
    writeln!(
        out,
        "{} routines: {} done, {} undone{latency}; over after {:.1} s",
        routines.len(),
        count("done"),
        count("undone"),
        seconds(report.trace.end),
    )?;
    for it in routines.iter().filter(|it| !it.why.is_empty()) {
        let line = format!("{} {}: {}, {}", it.number, it.name, it.outcome, it.why);
        writeln!(out, "  {}", colour.dim(&line))?;
    }
    let verdict = match report.explained {
        Some(true) => colour.good("as if the routines had run one by one"),
        Some(false) => colour.bad("NOT as if the routines had run one by one"),
        None => colour.dim("not judged: no order is promised, or a device was not restored"),
    };
    writeln!(out, "the end: {verdict}")
}

/// Seconds from the start.
pub(super) fn seconds(time: Time) -> f64 {
    core::time::Duration::from(time.since(Time::ZERO)).as_secs_f64()
}
