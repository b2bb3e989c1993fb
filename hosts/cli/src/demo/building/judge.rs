//! The judge of the building: promises, and the measured values.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_core::{Span, Time};
use selvedge_groups::GroupId;
use selvedge_kgroup::Delivery;
use selvedge_kgroup::routines::End;

use super::course::{Arrival, Blackout, Course, Run};
use super::limits::Limits;
use super::site::{GROUPS, LAMP, NODES, STAGGER, Which, settings};
use crate::demo::plan::Plan;
use crate::demo::promises::{Promise, float, none, span};

/// The time, in periods, from the beginning of an epoch until its last group has its new members.
const CHANGE: u64 = 10;

const LOW: &str = "groups that a node with a low battery was still in when the building closed";

/// Judges all promises of the building. `plan` is that of a mesh with its nodes.
#[must_use]
pub fn judge_building(plan: &Plan, course: &Course) -> Vec<Promise> {
    let judge = Judge { plan, course };
    vec![
        judge.order(),
        judge.once(),
        judge.all_end().timed(),
        judge.addition().timed(),
        judge.taken_over().timed(),
        judge.in_the_dark().timed(),
        judge.after_blackout().timed(),
        judge.low().timed(),
        judge.gap(),
        judge.epoch().timed(),
        judge.count().timed(),
        judge.entries().timed(),
    ]
}

#[derive(Clone, Copy)]
struct Judge<'a> {
    plan: &'a Plan,
    course: &'a Course,
}

impl Judge<'_> {
    /// Judges theorem 3 by the commands that reached the devices. It assumes that commands arrive in
    /// time.
    fn order(self) -> Promise {
        let done = self.course.arrivals.iter().filter(|it| it.is_done);
        let done: Vec<Arrival> = done.copied().collect();
        let pairs = Which::ALL.into_iter().flat_map(|one| {
            let others = Which::ALL
                .into_iter()
                .filter(move |it| one.shares_with(*it));
            others.map(move |other| (one, other))
        });
        let mixed: usize = pairs.map(|(one, other)| mixed(&done, one, other)).sum();
        let late = self.course.arrivals.len() - done.len();
        let period = self.plan.config.period;
        let (latest, most) = (self.course.latest, settings(period).devices.act_timeout);
        let mut row = none(
            "building-order",
            "commands amid a run of another routine that shares a device",
            "commands",
            mixed,
            format!(
                "theorem 3, from the commands at the devices: {} were done, in order, and {late} ignored as repeated or late; the slowest took {latest:?}, and the promise holds up to {most:?}",
                done.len()
            ),
        );
        row.held &= !done.is_empty();
        row.judged = row.held || latest <= most;
        row
    }

    fn once(self) -> Promise {
        let mut seen = BTreeSet::new();
        let once = self.course.arrivals.iter();
        let once = once.filter(|it| it.routine.delivery(it.step) == Delivery::AtMostOnce);
        let all = once.clone().count();
        let twice = once.filter(|it| !seen.insert((it.device, it.number)));
        let twice = twice.count();
        let mut row = none(
            "building-once",
            "rings that reached the bell twice",
            "rings",
            twice,
            format!(
                "{all} rings, to be given at most once; other commands may come twice when a leader fails"
            ),
        );
        row.held &= all > 0;
        row
    }

    fn all_end(self) -> Promise {
        let course = self.course;
        let triggered = |it| course.triggered(it).max(course.wished(it));
        let open = |it| triggered(it) - course.ended(it).min(triggered(it));
        let open: u64 = Which::ALL.into_iter().map(open).sum();
        let runs: Vec<String> = Which::ALL
            .map(|it| format!("{} {it}", course.ended(it)))
            .into();
        let ends = course.runs.values().flat_map(BTreeMap::values);
        let short = ends.filter(|it| it.ended.is_some_and(|end| end.1 != End::Completed));
        let mut row = none(
            "building-ends",
            "triggered runs that did not end",
            "runs",
            usize::try_from(open).unwrap_or(usize::MAX),
            format!(
                "theorem 5: {} runs ended; {} of them with a step that failed or has an unknown outcome; {} events were lost on their way to this count",
                runs.join(", "),
                short.count(),
                course.missed
            ),
        );
        row.held &= Which::ALL.into_iter().all(|it| course.ended(it) > 0);
        row
    }

    /// Judges that all nodes took the site with the lamp, and that its routine switched the lamp then.
    fn addition(self) -> Promise {
        let course = self.course;
        let addition = course.addition.as_ref();
        let mut took: Vec<Span> = addition
            .into_iter()
            .flat_map(|it| it.taken.values().map(|at| at.since(it.from)))
            .collect();
        took.sort_unstable();
        let runs = course.runs.get(&Which::Reading).into_iter().flatten();
        let completed = |it: &Run| it.ended.filter(|end| end.1 == End::Completed);
        let ended = runs.filter_map(|it| Some(completed(it.1)?.0)).min();
        let ended = addition.zip(ended).map(|(it, end)| end.since(it.from));
        let after = |it: Option<Span>| {
            it.map_or("never".to_owned(), |it| format!("after {:.2} s", span(it)))
        };
        let switched = course.arrivals.iter();
        let switched = switched.filter(|it| it.device == LAMP && it.is_done);
        let missing = NODES.saturating_sub(took.len() as u64);
        let mut row = none(
            "building-lamp",
            "nodes that did not take the lamp and the routine that were added while they ran",
            "nodes",
            usize::try_from(missing).unwrap_or(usize::MAX),
            format!(
                "one change of the site adds both: the first node had it {}, the last one {}; the first run with the lamp completed {}; the lamp did {} commands",
                after(took.first().copied()),
                after(took.last().copied()),
                after(ended),
                switched.count()
            ),
        );
        row.held &= ended.is_some();
        row
    }

    /// Judges that another node led each group of the dark domain in the meantime.
    fn taken_over(self) -> Promise {
        let course = self.course;
        let mut row = none(
            "building-heirs",
            "groups led by the dark power domain that no other node led",
            "groups",
            0,
            String::new(),
        );
        let Some(dark) = &course.dark else {
            return Promise {
                held: false,
                why: "no power domain went dark".to_owned(),
                ..row
            };
        };
        let until = dark.until.unwrap_or(course.end);
        let is_led = |group| {
            let mut leads = course.leads.iter();
            leads.any(|it| {
                it.group == group
                    && !dark.nodes.contains(&it.node)
                    && (dark.from..until).contains(&it.from)
            })
        };
        let lost: Vec<_> = dark.led.iter().filter(|it| !is_led(**it)).collect();
        row.seen = Some(float(lost.len()));
        row.held = lost.is_empty() && !dark.led.is_empty() && dark.back.is_some();
        let known = dark.known.map_or_else(
            || "never".to_owned(),
            |at| format!("after {:.2} s", span(at.since(dark.from))),
        );
        let back = dark.back.zip(dark.until).map_or_else(
            || "never".to_owned(),
            |(back, until)| format!("after {:.2} s", span(back.since(until))),
        );
        let [one, two] = dark.nodes;
        row.why = format!(
            "nodes {one} and {two} led {} groups; all others knew of their failure {known}, and of their new lives {back}",
            dark.led.len()
        );
        row
    }

    fn in_the_dark(self) -> Promise {
        let course = self.course;
        let dark = course.dark.as_ref();
        let ends = |it| {
            let ends = course.ends(it).into_iter();
            let is_dark = |at: &Time| {
                dark.is_some_and(|it| *at > it.from && *at < it.until.unwrap_or(course.end))
            };
            ends.filter(is_dark).count()
        };
        let idle = Which::ALL.into_iter().filter(|it| ends(*it) == 0).count();
        let runs: Vec<String> = Which::ALL.map(|it| format!("{} {it}", ends(it))).into();
        let length = dark.map_or(Span::ZERO, |it| {
            it.until.unwrap_or(course.end).since(it.from)
        });
        none(
            "building-dark",
            "routines of which no run ended while the power domain was dark",
            "routines",
            idle,
            format!(
                "it was dark for {:.2} s; meanwhile ended: {}",
                span(length),
                runs.join(", ")
            ),
        )
    }

    /// Judges that runs went on where they were when all nodes lost power. A group that has lost
    /// its state would number its runs from the beginning. A run that was under way may be the last.
    fn after_blackout(self) -> Promise {
        let course = self.course;
        let times = course.blackout.and_then(|it| Some((it.from, it.back?)));
        let goes_on = |it| {
            times.is_some_and(|(from, back)| {
                let before = course.begun_before(it, from);
                let runs = course.runs.get(&it).into_iter().flatten();
                let mut later = runs.filter(|it| *it.0 >= before);
                before > 0 && later.any(|it| it.1.ended.is_some_and(|end| end.0 > back))
            })
        };
        let lost = Which::ALL.into_iter().filter(|it| !goes_on(*it)).count();
        let why = times.map_or_else(
            || "not all nodes failed, or not all came back".to_owned(),
            |(from, back)| {
                let runs = Which::ALL.map(|it| format!("{} {it}", course.begun_before(it, from)));
                format!(
                    "all nodes lost power together after {} runs, and listed each other again after {:.2} s",
                    runs.join(", "),
                    span(back.since(from))
                )
            },
        );
        none(
            "building-blackout",
            "routines that did not go on after all nodes lost power",
            "routines",
            lost,
            why,
        )
    }

    /// Judges that a node which is spared has no group any more, as enough others are here.
    fn low(self) -> Promise {
        let course = self.course;
        let closed = course.closed.unwrap_or(course.end);
        let Some(low) = course.low else {
            let why = "no node asked to be spared".to_owned();
            let row = none("building-low", LOW, "groups", 0, why);
            return Promise { held: false, ..row };
        };
        let (before, left) = match low.out {
            Some(_) => (course.groups_of(low.node, low.from), 0),
            None => [low.from, closed]
                .map(|it| course.groups_of(low.node, it))
                .into(),
        };
        let after = low.out.map_or_else(
            || "never in none".to_owned(),
            |at| format!("in none after {:.2} s", span(at.since(low.from))),
        );
        let mut row = none(
            "building-low",
            LOW,
            "groups",
            left,
            format!(
                "node {} asked to be spared, was in {before} groups then, and {after}: from the next epoch on others are chosen",
                low.node
            ),
        );
        row.held &= low.out.is_some();
        row
    }

    fn gap(self) -> Promise {
        let course = self.course;
        let blackout = course.blackout.and_then(|it| Some((it.from, it.back?)));
        let opened = course.opened.unwrap_or_default();
        let closed = course.closed.unwrap_or(course.end);
        let mut ends: Vec<Time> = Which::ALL
            .into_iter()
            .flat_map(|it| course.ends(it))
            .collect();
        ends.retain(|at| (opened..closed).contains(at));
        ends.push(closed);
        ends.sort_unstable();
        let starts = [opened].into_iter().chain(ends.iter().copied());
        // Not while no node was there.
        let gaps = starts.zip(&ends).flat_map(|(from, &to)| match blackout {
            Some((dark, back)) if from < back && dark < to => {
                [dark.max(from).since(from), to.max(back).since(back)]
            }
            Some(_) | None => [to.since(from), Span::ZERO],
        });
        let longest = gaps.max().filter(|_| ends.len() > 1);
        let Limits {
            gap: limit, why, ..
        } = Limits::new(self.plan);
        Promise {
            id: "building-gap".to_owned(),
            promise: "the longest time in which no run of any routine ended".to_owned(),
            unit: "s",
            limit: span(limit),
            seen: longest.map(span),
            held: longest.is_some_and(|it| it <= limit),
            timed: true,
            judged: true,
            why,
        }
    }

    /// Judges that epochs moved groups. Epochs that began too late for groups to change do not
    /// count.
    fn epoch(self) -> Promise {
        let course = self.course;
        let period = self.plan.config.period;
        let change = period * (STAGGER + CHANGE);
        let closed = course.closed.unwrap_or(course.end);
        let margin = period * (2 * STAGGER);
        let moved = |at: Time| {
            let moves = course.moves.iter();
            let moves = moves.filter(|it| (at..at + change).contains(it.1));
            let groups = moves.map(|it| it.0.0).filter(|it| *it != GroupId::REGISTRY);
            groups.collect::<BTreeSet<_>>().len()
        };
        // Nodes that are dark miss it, and the groups' changes end with the power.
        let is_dark = |at: Time| {
            let overlaps =
                |it: Blackout| at + change > it.from && it.back.is_none_or(|back| at < back);
            course.blackout.is_some_and(overlaps) && moved(at) == 0
        };
        let epochs: Vec<Time> = (course.epochs_under_way())
            .filter(|at| *at + margin <= closed && !is_dark(*at))
            .collect();
        let moves: Vec<String> = epochs.iter().map(|at| moved(*at).to_string()).collect();
        let mut row = none(
            "building-epoch",
            "epochs that began during routines and moved no group",
            "epochs",
            epochs.iter().filter(|at| moved(**at) == 0).count(),
            format!(
                "an epoch began {} times while routines ran; the number of groups, of {GROUPS}, with new members: {}",
                epochs.len(),
                moves.join(", ")
            ),
        );
        row.held &= !epochs.is_empty();
        row
    }

    fn count(self) -> Promise {
        let course = self.course;
        let counted = |it| {
            let counted = course.counted.as_ref()?.get(&it);
            counted.copied()
        };
        let differ = |it| counted(it).unwrap_or_default().abs_diff(course.ended(it));
        let differ: u64 = Which::ALL.into_iter().map(differ).sum();
        let all: u64 = Which::ALL.into_iter().filter_map(counted).sum();
        let first = (course.arrivals.iter()).filter(|it| it.is_done && it.step == 0);
        let mut row = none(
            "building-count",
            "runs that ended and that the map did not count, or counted twice",
            "runs",
            usize::try_from(differ).unwrap_or(usize::MAX),
            format!(
                "an entry of a map that a group holds, changed by the leaders of routines: it counts {all}; {} runs began at devices",
                first.count()
            ),
        );
        row.held &= course.counted.is_some() && all > 0;
        row
    }

    /// Judges the map by entries that nothing changes again, and so nothing repairs.
    fn entries(self) -> Promise {
        let entries = &self.course.entries;
        let lost = entries.values().filter(|it| !**it).count();
        let names: Vec<_> = entries.keys().copied().collect();
        let mut row = none(
            "building-map",
            "entries that the map stored and did not have at the end",
            "entries",
            lost,
            format!(
                "entries that were put once ({}), and read at the end",
                names.join(", ")
            ),
        );
        row.held &= !entries.is_empty();
        row
    }
}

/// The number of commands of `one` that came amid a run of it and of `other`: among the commands of
/// these two routines, each that is not the first of a run has to follow the one before it in that
/// run.
fn mixed(done: &[Arrival], one: Which, other: Which) -> usize {
    let of_both = done
        .iter()
        .filter(|it| it.routine == one || it.routine == other);
    let mut last: Option<(Which, usize)> = None;
    let mut mixed = 0;
    for it in of_both {
        let follows = it
            .step
            .checked_sub(1)
            .is_none_or(|before| last == Some((one, before)));
        mixed += usize::from(it.routine == one && !follows);
        last = Some((it.routine, it.step));
    }
    mixed
}
