//! Triggers of time: the clocks of hosts, and the occurrences that groups decide.
//!
//! Occurrences are counted here by real time, which no node knows. A right clock differs from it by `skew`
//! at most; as many clocks as a group may lose are wrong by any time.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_core::{Choose, Span};
use selvedge_groups::GroupId;
use selvedge_kgroup::routines::{RoutineEvent, RoutineState, WallClock};
use selvedge_kgroup::{Command, Site, TriggerId};
use selvedge_routine::State;
use selvedge_routine::trigger::{Days, TimeOfDay, Trigger, Weekday};
use selvedge_sim::histories::{Choices, History, Real, What};

use crate::world::{Own, World};

const SECOND: Real = 1_000_000;
const DAY: Real = 86_400 * SECOND;

/// Real time begins a minute before a Sunday begins in a zone that is two hours ahead of UTC.
const BEGIN: Real = 20_513 * DAY - 2 * 3_600 * SECOND - 60 * SECOND;
const AHEAD: i32 = 2 * 3_600;

/// The time after which a host reads its clock again.
const READ: Real = 10 * SECOND;

#[derive(Default)]
pub(crate) struct Times {
    /// True in histories with triggers of time.
    pub(crate) is_on: bool,
    /// The most by which a right clock differs.
    skew: Real,
    wrong: BTreeSet<u64>,
    /// The lead of each clock, in microseconds.
    leads: BTreeMap<u64, i64>,
    /// An occurrence before all decided ones of each trigger but perhaps the first, and the last one.
    decided: BTreeMap<(GroupId, u16), (u64, u64)>,
    /// Occurrences that were left out, by the last one.
    left_out: BTreeMap<(GroupId, u16, u64), u64>,
    /// True where sites change: then each definition counts occurrences anew.
    pub(crate) definitions_change: bool,
    /// The latest state of each routine that a node has stored.
    latest: BTreeMap<GroupId, Seen>,
    /// Changes of a definition after which a trigger of time came.
    pub(crate) retimed: u64,
    /// Occurrences that came without faults.
    pub(crate) started: u64,
}

/// The runs and marks of a version of a routine.
struct Seen {
    version: u64,
    /// The generation that brought its definition.
    since: u32,
    /// The number of runs, the one that waits included.
    runs: u64,
    ids: u64,
    marks: Vec<Option<u64>>,
}

impl Seen {
    fn of(version: u64, state: &RoutineState) -> Self {
        let ids = (1..100).filter(|it| state.has(TriggerId(*it)));
        let triggers = 0..state.definition().triggers.len() as u16;
        Self {
            version,
            since: state.since(),
            runs: state.instance() + u64::from(state.is_queued()),
            ids: ids.count() as u64,
            marks: triggers.map(|it| state.occurrence(it)).collect(),
        }
    }

    /// The most runs that were triggered since an earlier version: one for each occurrence and each id.
    fn most_since(&self, before: &Self) -> u64 {
        let updates = self.version - before.version;
        let ids = self.ids - before.ids;
        if self.since != before.since {
            // One update brings the definition, and no run.
            return if updates == 1 { 0 } else { updates };
        }
        let marks = before.marks.iter().zip(&self.marks);
        let come = marks.map(|it| match it {
            (Some(before), Some(mark)) => mark.saturating_sub(*before),
            // The first decision starts nothing.
            _ => updates - 1,
        });
        updates.min(ids.saturating_add(come.sum()))
    }
}

/// Triggers of time: intervals, and times of a day that are near.
pub(crate) fn a_trigger(rng: &mut Choices) -> Trigger<State> {
    let near = (86_400 - 60 + rng.below(900) as u32) % 86_400;
    let at = TimeOfDay::from_seconds(near).unwrap();
    match rng.below(4) {
        0 => Trigger::At(at),
        1 => {
            let days = Days::new([Weekday::Sunday]).unwrap();
            Trigger::On { days, at }
        }
        _ => Trigger::Every(Span::secs(rng.pick(&[5, 17, 60]))),
    }
}

/// The latest occurrence that has come at a moment.
fn come(trigger: &Trigger<State>, utc: Real) -> Option<u64> {
    let local = utc + AHEAD as u64 * SECOND;
    let (day, second) = (local / DAY, local % DAY / SECOND);
    match trigger {
        Trigger::Every(interval) => Some(utc / interval.0),
        Trigger::At(at) => Some(day - u64::from(second < at.seconds().into())),
        Trigger::On { at, .. } => {
            // Day 20,513 is a Sunday.
            let back = (day + 7 - 20_513 % 7) % 7;
            let is_before = back == 0 && second < at.seconds().into();
            Some(day - back - if is_before { 7 } else { 0 })
        }
        _ => None,
    }
}

impl Times {
    /// The clocks of these nodes, of which some are wrong.
    pub(crate) fn begin(rng: &mut Choices, nodes: u64, wrong: u8) -> Self {
        let skew = rng.pick(&[0, 50_000, 1_000_000]);
        let mut it = Self {
            is_on: true,
            skew,
            ..Self::default()
        };
        for _ in 0..wrong {
            it.wrong.insert(1 + rng.below(nodes));
        }
        for id in 1..=nodes {
            it.set(rng, id);
        }
        it
    }

    /// A clock is set.
    fn set(&mut self, rng: &mut Choices, id: u64) {
        let most = match self.wrong.contains(&id) {
            false => self.skew,
            true => rng.pick(&[30 * SECOND, 7_200 * SECOND, 400 * DAY]),
        };
        let lead = rng.below(2 * most + 1) as i64 - most as i64;
        self.leads.insert(id, lead);
    }

    /// A state of a routine that a node has stored.
    pub(crate) fn see(&mut self, now: Real, group: GroupId, version: u64, state: &RoutineState) {
        self.each_starts_once(group, version, state);
        for (trigger, it) in (0..).zip(&state.definition().triggers) {
            let Some(mark) = state.occurrence(trigger) else {
                continue;
            };
            let latest = come(it, BEGIN + now + self.skew);
            assert!(
                latest >= Some(mark),
                "{group:?}: {mark} of {it:?} has not come"
            );
            if self.definitions_change {
                continue;
            }
            // The decision before this one, perhaps the first of all, may not have been seen.
            self.decides(group, trigger, mark.saturating_sub(1), mark);
        }
    }

    /// Between two versions, each occurrence and each id has started one run at most.
    fn each_starts_once(&mut self, group: GroupId, version: u64, state: &RoutineState) {
        let known = self.latest.get(&group);
        if !self.is_on || known.is_some_and(|it| it.version >= version) {
            return;
        }
        let seen = Seen::of(version, state);
        if let Some(before) = known.filter(|_| state.definition().clause.is_none()) {
            let mut pairs = seen.marks.iter().zip(&before.marks);
            let goes_back = seen.since == before.since && pairs.any(|(seen, before)| seen < before);
            assert!(
                !goes_back,
                "{group:?}: {:?} to {:?}",
                before.marks, seen.marks
            );
            let runs = seen.runs.saturating_sub(before.runs);
            let most = seen.most_since(before);
            assert!(
                runs <= most,
                "{group:?}: {runs} runs of {most} wishes, versions {} to {version}: {:?} to {:?}",
                before.version,
                before.marks,
                seen.marks
            );
            let comes = seen.since == before.since && seen.since > 0 && seen.marks > before.marks;
            self.retimed += u64::from(comes);
        }
        self.latest.insert(group, seen);
    }

    fn decides(&mut self, group: GroupId, trigger: u16, before: u64, mark: u64) {
        let known = self.decided.entry((group, trigger));
        let known = known.or_insert((before, mark));
        known.0 = known.0.min(before);
        known.1 = known.1.max(mark);
    }

    pub(crate) fn reported(&mut self, group: GroupId, event: &RoutineEvent) {
        let &RoutineEvent::LeftOut {
            trigger,
            occurrence,
            count,
        } = event
        else {
            return;
        };
        let key = (group, trigger, occurrence);
        let known = *self.left_out.entry(key).or_insert(count);
        if self.definitions_change {
            return; // Another definition may count the same occurrences.
        }
        assert_eq!(known, count, "two counts of {key:?}");
        let before = occurrence.saturating_sub(count).saturating_sub(1);
        self.decides(group, trigger, before, occurrence);
    }

    /// The number of reports about occurrences that were left out.
    pub(crate) fn late(&self) -> u64 {
        self.left_out.len() as u64
    }

    /// The most runs that occurrences started: those after the first decided one, until the last one.
    pub(crate) fn runs(&self, group: GroupId) -> u64 {
        if self.definitions_change {
            return u64::MAX;
        }
        let of_group = self.decided.range((group, 0)..=(group, u16::MAX));
        let come: u64 = of_group.map(|(_, (first, last))| last - first).sum();
        let left_out = (self.left_out).range((group, 0, 0)..=(group, u16::MAX, u64::MAX));
        come.saturating_sub(left_out.map(|it| it.1).sum())
    }
}

impl World {
    /// A node that a site adds has a right clock.
    pub(crate) fn has_a_clock(&mut self, id: u64) {
        if self.times.is_on {
            let Self { hosts, times, .. } = self;
            times.set(&mut hosts.choices, id);
            self.reads_clock_again(id);
        }
    }

    /// A host reads its clock, unless it sleeps.
    pub(crate) fn read_clock(&mut self, id: u64) {
        let lead = self.times.leads[&id];
        let utc = (BEGIN + self.now).saturating_add_signed(lead);
        let shown = WallClock {
            utc: Span(utc),
            ahead: AHEAD,
            ..WallClock::default()
        };
        if self.is_awake(id) {
            self.command(id, Command::SetClock(shown));
        }
    }

    /// The same, again and again.
    pub(crate) fn reads_clock_again(&mut self, id: u64) {
        self.read_clock(id);
        self.after(READ, What::Own(Own::Clock(id)));
    }

    /// A clock is set, to a right time or a wrong one.
    pub(crate) fn clock_is_set(&mut self, id: u64) {
        let Self { hosts, times, .. } = self;
        times.set(&mut hosts.choices, id);
        self.read_clock(id);
    }

    /// Without faults, each occurrence is decided in time, and none is left out.
    pub(crate) fn times_are_kept(&mut self) {
        self.run_for(120 * SECOND);
        for id in self.ids() {
            self.read_clock(id);
        }
        // Settled: what was missed is decided.
        self.run_for(40 * SECOND);
        let left_out = self.times.left_out.len();
        let site = std::sync::Arc::clone(&self.site);
        let removed = self.runs.arrivals_without(&site);
        let began = BEGIN + self.now;
        self.run_for(200 * SECOND);
        let until = BEGIN + self.now - self.times.skew - 3 * SECOND;
        assert_eq!(
            self.runs.arrivals_without(&site),
            removed,
            "a removed routine runs"
        );
        for (number, definition) in site.routines() {
            let group = Site::routine(number);
            if self.is_starved(group) {
                continue;
            }
            for (trigger, it) in (0..).zip(&definition.triggers) {
                let leaders = self.leaders(group);
                let mark = self.is_settled(group).occurrence(trigger);
                assert!(
                    mark >= come(it, until),
                    "{group:?}, led by {leaders:?}: {it:?} is at {mark:?}, not {:?}",
                    come(it, until)
                );
                let many = come(it, until).unwrap() - come(it, began).unwrap();
                self.times.started += many;
            }
        }
        assert_eq!(
            self.times.left_out.len(),
            left_out,
            "an occurrence is left out: {:?}",
            self.times.left_out
        );
    }
}
