//! A check that the order that the hub reports explains the states of the devices.

use core::fmt::Display;
use core::ops::Range;
use std::collections::BTreeMap;

use crate::home::{Home, State, Step};
use crate::hub::Run;
use crate::plug::Mark;

/// The largest difference between the hub's milliseconds and a plug's microseconds.
const SLACK: u64 = 2_000;
const CONDITION: &str = "its condition did not hold";

/// The events at each plug, in the order of time.
pub(crate) type Marks = BTreeMap<usize, Vec<(u64, Mark)>>;

/// The observations from outside.
pub(crate) struct Seen {
    pub(crate) marks: Marks,
    /// The times at which the hub was killed.
    pub(crate) kills: Vec<u64>,
}

/// The states to which the order up to now leads.
pub(crate) struct Oracle<'a> {
    home: &'a Home,
    /// The state of each device, and the time since when a loss of power may have changed it.
    states: Vec<(State, u64)>,
    places: u64,
    /// The time at which each plug saw the command of the run that was replayed last.
    seen: Vec<u64>,
    pub(crate) found: Vec<String>,
    pub(crate) counts: Counts,
}

/// The numbers of checks.
#[derive(Default, Debug)]
pub(crate) struct Counts {
    pub(crate) done: u32,
    pub(crate) undone: u32,
    /// Commands of runs that are done, and that a plug has seen.
    pub(crate) commands: u32,
    /// Conditions that held in the order as they had held.
    pub(crate) conditions: u32,
    /// States that were compared at the end of a round.
    pub(crate) states: u32,
    /// States among these that are off because the power was lost.
    pub(crate) lost: u32,
    /// States among these that a run reports as left unchanged.
    pub(crate) left: u32,
}

impl<'a> Oracle<'a> {
    pub(crate) fn new(home: &'a Home) -> Self {
        Self {
            home,
            states: (0..home.devices).map(|it| (home.initial(it), 0)).collect(),
            places: 0,
            seen: vec![0; home.devices],
            found: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// Replays the runs that have ended since the last call, one by one, and compares the resulting states
    /// with the states that were found. The next call begins from these.
    pub(crate) fn check(&mut self, runs: &[Run], seen: &Seen, found: &[State], now: u64) {
        let marks = &seen.marks;
        let mut done: Vec<_> = runs.iter().filter(|it| it.what == "done").collect();
        done.sort_by_key(|it| it.place);
        self.counts.done += u32::try_from(done.len()).unwrap();
        self.counts.undone += u32::try_from(runs.len() - done.len()).unwrap();
        for run in done {
            self.replay(run, seen);
        }
        let reports = |run: &&Run, what: &str| run.notes.iter().any(|it| it == what);
        for (device, &is) in found.iter().enumerate() {
            let (state, since) = self.states[device];
            let name = Home::name(device);
            let left = [
                "stays as it is: its state before is unknown",
                "refuses to be brought back",
            ];
            let left = left.map(|it| format!("{name} {it}"));
            self.counts.states += 1;
            if is == state {
            } else if is == State::Plug(false) && was_lost(marks.get(&device), since) {
                self.counts.lost += 1;
            } else if runs
                .iter()
                .any(|run| left.iter().any(|it| reports(&run, it)))
            {
                self.counts.left += 1;
            } else {
                self.wrong(format_args!(
                    "{name} is {is:?}, and the order leads to {state:?}"
                ));
            }
            self.states[device] = (is, now);
        }
    }

    fn replay(&mut self, run: &Run, seen: &Seen) {
        let id = run.id;
        self.places += 1;
        if run.place != Some(self.places) {
            let (place, next) = (run.place, self.places);
            self.wrong(format_args!(
                "run {id} has place {place:?}, and {next} is next"
            ));
            self.places = run.place.unwrap_or(next);
        }
        let home = self.home;
        for (nth, step) in home.routine(&run.name).iter().enumerate() {
            let skipped = run.skipped(nth);
            self.look_at_condition(id, nth, step, skipped);
            if skipped.is_some() {
                continue;
            }
            let (Some(started), Some(ended)) = (run.started, run.ended) else {
                self.wrong(format_args!(
                    "run {id} is done, and has not begun or not ended"
                ));
                return;
            };
            self.states[step.device] = (step.state, 1_000 * started);
            if let State::Plug(is_on) = step.state {
                let window = 1_000 * started - SLACK..1_000 * (ended + 1) + SLACK;
                self.look_at_command(id, step.device, is_on, window, seen);
            }
        }
    }

    /// A plug has seen the command while the run was under way, after the command of the run before it in the
    /// order. A hub that was killed meanwhile may have found the plug in that state, also by a loss of power, and
    /// not sent the command again.
    fn look_at_command(
        &mut self,
        id: u64,
        device: usize,
        is_on: bool,
        mut window: Range<u64>,
        seen: &Seen,
    ) {
        let was_killed = seen.kills.iter().any(|it| window.contains(it));
        window.start = window.start.max(self.seen[device] + 1);
        if let Some(at) = notified(&seen.marks, device, is_on, window.start)
            && at < window.end
        {
            self.counts.commands += 1;
            // With a kill, it may be the command of a later run.
            if !was_killed {
                self.seen[device] = at;
            }
        } else if !was_killed || !was_so(&seen.marks, device, is_on, &window) {
            let device = Home::name(device);
            self.wrong(format_args!(
                "run {id} is done, and {device} was not told on: {is_on} in its turn"
            ));
        }
    }

    /// A condition finds in the order the state that it found then: dummies lose nothing.
    fn look_at_condition(&mut self, id: u64, nth: usize, step: &Step, skipped: Option<&str>) {
        let Some((device, limit)) = step.condition else {
            return;
        };
        let State::Dummy(number) = self.states[device].0 else {
            return;
        };
        let held = match skipped {
            Some(why) if why.starts_with("the state of") => return,
            Some(why) => why != CONDITION,
            None => true,
        };
        self.counts.conditions += 1;
        if held != (number < limit) {
            self.wrong(format_args!(
                "run {id}, command {nth}: {number} < {limit} in the order, and held: {held}"
            ));
        }
    }

    pub(crate) fn wrong(&mut self, what: impl Display) {
        println!("WRONG: {what}");
        self.found.push(what.to_string());
    }
}

fn was_lost(marks: Option<&Vec<(u64, Mark)>>, since: u64) -> bool {
    let mut marks = marks.into_iter().flatten();
    marks.any(|it| it.1 == Mark::Lost && it.0 + SLACK >= since)
}

/// Returns true if a plug was in this state at some moment, as far as no command led to it.
fn was_so(marks: &Marks, device: usize, is_on: bool, window: &Range<u64>) -> bool {
    let mut of_device = marks.get(&device).into_iter().flatten();
    let was_lost = of_device.any(|it| it.1 == Mark::Lost && window.contains(&it.0));
    was_on(marks, device, window.start) == is_on || !is_on && was_lost
}

/// Returns true if a plug was on at this moment.
fn was_on(marks: &Marks, device: usize, at: u64) -> bool {
    let mut marks = marks.get(&device).into_iter().flatten();
    marks.rfind(|it| it.0 <= at).map(|it| it.1) == Some(Mark::Set(true))
}

/// The time of the first such command to a plug since `from`.
pub(crate) fn notified(marks: &Marks, device: usize, is_on: bool, from: u64) -> Option<u64> {
    let mut marks = marks.get(&device)?.iter();
    let notified = marks.find(|it| it.0 >= from && it.1 == Mark::Set(is_on));
    notified.map(|it| it.0)
}
