//! The lineage table as a picture: devices down, time to the right, a colour for each routine.

use std::collections::BTreeMap;

use maud::{Markup, html};
use selvedge_core::{NodeId, Time};
use selvedge_draw::{Px, Shape, Timeline};
use selvedge_safehome::{RoutineId, Scheduler};

use super::colour::colour;
use super::report::{Report, seconds};
use super::trace::{Access, End, Happened, Lease};

const ROW: f64 = 26.0;
const BAR: f64 = 14.0;
/// The distance of bars from their row's top; below them is room for waiting routines.
const PAD: f64 = 2.0;
/// The narrowest bar.
const NARROW: f64 = 3.0;
/// Waits shorter than this, in pixels, are not drawn.
const SHORT_WAIT: f64 = 3.0;
/// The distance between two lines of the hatching where a device is down.
const HATCH: f64 = 6.0;
/// The number of lanes of waiting routines that fit below a bar.
const LANES: usize = 3;

/// Draws a run. It contains the colours of routines; the other colours come from the page's style.
#[must_use]
pub fn picture(report: &Report) -> String {
    let sketch = Sketch::new(report);
    let marks = html! {
        (sketch.ground())
        (sketch.outages())
        (sketch.waits())
        (sketch.ways())
        (sketch.bars())
        (sketch.restores())
        (sketch.leases())
        (sketch.happened())
        (sketch.aborts())
    };
    let label = "Devices of routines over time";
    sketch.time.svg(label, &marks).into_string()
}

/// The colour of a routine.
pub(super) fn colour_of(id: RoutineId) -> String {
    colour(usize::try_from(id.0.saturating_sub(1)).unwrap_or_default())
}

struct Sketch<'a> {
    report: &'a Report,
    /// The devices that are drawn, and the row of each.
    rows: BTreeMap<NodeId, usize>,
    time: Timeline,
}

/// A sequence of accesses of one routine to one device without another routine's between them.
struct Turn<'a> {
    accesses: Vec<&'a Access>,
}

impl<'a> Sketch<'a> {
    fn new(report: &'a Report) -> Self {
        let is_used = |device: &NodeId| {
            let mut accesses = report.trace.accesses.iter();
            let mut happened = report.trace.happened.iter();
            accesses.any(|it| it.device == *device) || happened.any(|it| it.1 == *device)
        };
        let devices = report.plan.home.catalogue.iter().map(|(id, _)| id);
        let rows: BTreeMap<NodeId, usize> = devices.filter(is_used).zip(0..).collect();
        let time = Timeline {
            width: 1_240.0,
            left: 216.0,
            top: 12.0,
            row: ROW,
            rows: rows.len(),
            end: seconds(report.trace.end),
        };
        Self { report, rows, time }
    }

    fn x(&self, time: Time) -> f64 {
        self.time.x(seconds(time))
    }

    fn top(&self, device: NodeId) -> f64 {
        let row = self.rows.get(&device).copied().unwrap_or_default();
        self.time.top_of(row)
    }

    fn device(&self, device: NodeId) -> &'a str {
        let name = self.report.plan.home.catalogue.name(device);
        name.unwrap_or("?")
    }

    fn routine(&self, id: RoutineId) -> String {
        let run = self.report.trace.occurrences.get(&id);
        run.map_or_else(String::new, |it| format!("{} {}", id.0, it.name))
    }

    fn accesses_of(&self, routine: RoutineId) -> impl DoubleEndedIterator<Item = &'a Access> {
        let accesses = self.report.trace.accesses.iter();
        accesses.filter(move |it| it.routine == routine)
    }

    /// Rows, names and the grid.
    fn ground(&self) -> Markup {
        html! {
            @for (&device, row) in &self.rows {
                @let top = self.top(device);
                @if row % 2 == 0 {
                    rect.row x="0" y=(Px(top)) width=(self.time.width) height=(ROW) {}
                }
                (self.time.name(top + PAD + BAR / 2.0 + 4.0, self.device(device)))
            }
            (self.time.grid("the start"))
        }
    }

    /// The times for which devices were down.
    fn outages(&self) -> Markup {
        let outages = self.report.plan.outages.iter();
        let outages = outages.filter(|it| self.rows.contains_key(&it.device));
        html! {
            @for it in outages {
                @let from = self.x(it.from);
                @let until = self.x(it.until).max(from + NARROW);
                @let top = self.top(it.device);
                path.hatch d=(hatch(from, until, top + ROW)) {}
                rect.down x=(Px(from)) y=(Px(top)) width=(Px(until - from)) height=(ROW) {
                    title {
                        (self.device(it.device)) " was down, " (Px(seconds(it.from))) " s to "
                        (Px(seconds(it.until))) " s"
                    }
                }
            }
        }
    }

    /// Thin lines below the bars for the routines that waited for a device.
    fn waits(&self) -> Markup {
        let mut lanes: BTreeMap<(NodeId, usize), f64> = BTreeMap::new();
        let mut accesses: Vec<&Access> = self.report.trace.accesses.iter().collect();
        accesses.sort_by_key(|it| it.waited);
        let long = accesses.into_iter().filter_map(|it| {
            let (from, until) = (self.x(it.waited), self.x(it.from));
            if until - from < SHORT_WAIT {
                return None;
            }
            let is_free = |lane: &usize| {
                let taken = lanes.get(&(it.device, *lane));
                taken.is_none_or(|&end| end + 2.0 <= from)
            };
            let lane = (0..LANES).find(is_free).unwrap_or(LANES - 1);
            lanes.insert((it.device, lane), until);
            Some((it, from, until, lane))
        });
        html! {
            @for (it, from, until, lane) in long {
                @let y = Px(self.top(it.device) + PAD + BAR + 2.6 + 2.8 * lane as f64);
                line class={ "it wait r" (it.routine.0) } x1=(Px(from)) x2=(Px(until)) y1=(y) y2=(y) stroke=(colour_of(it.routine)) {
                    title {
                        (self.routine(it.routine)) " waited " (Px(seconds(it.from) - seconds(it.waited)))
                        " s for the " (self.device(it.device))
                        @if let Some(id) = self.report.trace.waited_for(it) {
                            ", which " (self.routine(id)) " had"
                        }
                    }
                }
            }
        }
    }

    fn turns(&self, device: NodeId) -> Vec<Turn<'a>> {
        let mut turns: Vec<Turn<'a>> = Vec::new();
        for it in self
            .report
            .trace
            .accesses
            .iter()
            .filter(|it| it.device == device)
        {
            match turns.last_mut() {
                Some(turn) if turn.routine() == Some(it.routine) => turn.accesses.push(it),
                Some(_) | None => turns.push(Turn {
                    accesses: [it].into(),
                }),
            }
        }
        turns
    }

    fn bars(&self) -> Markup {
        html! {
            @for &device in self.rows.keys() {
                @let turns = self.turns(device);
                @for turn in &turns { (self.bar(device, turn)) }
                (self.labels(device, &turns))
            }
        }
    }

    fn bar(&self, device: NodeId, turn: &Turn<'a>) -> Markup {
        let Some(id) = turn.routine() else {
            return Markup::default();
        };
        let end = self.report.trace.end;
        let (fill, top) = (colour_of(id), self.top(device) + PAD);
        let rect = |class: &str, from: Time, until: Time, y: f64, height: f64, title: &str| {
            let x = self.x(from);
            let width = (self.x(until) - x).max(NARROW);
            html! {
                rect class={ "it " (class) " r" (id.0) } x=(Px(x)) y=(Px(y)) width=(Px(width)) height=(height) fill=(fill) stroke=(fill) {
                    title { (title) }
                }
            }
        };
        let kept = format!("{} kept it between two commands", self.routine(id));
        html! {
            @if turn.accesses.len() > 1 {
                (rect("kept", turn.from(), turn.until(end), top + BAR / 2.0 - 2.0, 4.0, &kept))
            }
            @for it in &turn.accesses {
                @let class = if it.done { "bar" } else { "bar failed" };
                (rect(class, it.from, it.until.min(end), top, BAR, &self.title(it)))
            }
        }
    }

    /// The numbers of routines in their bars, and their names if there is room. If bars are so
    /// close that labels would overlap, only the first has a label.
    fn labels(&self, device: NodeId, turns: &[Turn<'a>]) -> Markup {
        let end = self.report.trace.end;
        let y = Px(self.top(device) + PAD + BAR / 2.0 + 4.0);
        let mut free = f64::NEG_INFINITY;
        let next = turns.iter().skip(1).map(|it| Some(self.x(it.from())));
        let labels = turns
            .iter()
            .zip(next.chain([None]))
            .filter_map(|(turn, next)| {
                let id = turn.routine()?;
                let first = self.x(turn.from());
                let last = self.x(turn.until(end)).max(first + NARROW);
                let (inside, number, whole) = (last - first, id.0.to_string(), self.routine(id));
                let digits = 7.0 * number.len() as f64;
                if inside >= 6.6 * whole.chars().count() as f64 + 8.0 {
                    Some((id, "in", first + 6.0, whole))
                } else if inside >= digits + 4.0 {
                    Some((id, "in", first + 2.5, number))
                } else if first >= free && next.is_none_or(|next| next >= last + digits + 3.0) {
                    free = last + digits + 2.0;
                    Some((id, "by", last + 2.0, number))
                } else {
                    None
                }
            });
        html! {
            @for (id, class, x, label) in labels {
                text class={ "it " (class) " r" (id.0) } x=(Px(x)) y=(y) { (label) }
            }
        }
    }

    /// The text about an access.
    fn title(&self, it: &Access) -> String {
        let end = it.until.min(self.report.trace.end);
        let (from, until) = (seconds(it.from), seconds(end));
        let mut title = format!(
            "{}: {} to {}, {from:.1} s to {until:.1} s",
            self.routine(it.routine),
            self.device(it.device),
            it.state,
        );
        if !it.done {
            title.push_str("; the device failed to do it in time");
        }
        let waited = from - seconds(it.waited);
        if waited >= 0.5 {
            title += &format!("; waited {waited:.1} s");
        }
        match self.lease(it) {
            Some(Lease::Post(of)) => {
                title += &format!("; lent by {}, which was not finished", self.routine(of));
            }
            Some(Lease::Pre(of)) => {
                title += &format!("; before {}, which had started", self.routine(of));
            }
            None => {}
        }
        title
    }

    fn lease(&self, it: &Access) -> Option<Lease> {
        let config = &self.report.plan.config;
        let late = config.scheduler == Scheduler::JustInTime;
        self.report.trace.lease(it, config.visibility, late)
    }

    fn restores(&self) -> Markup {
        let end = self.report.trace.end;
        html! {
            @for it in &self.report.trace.restores {
                @let at = f64::midpoint(seconds(it.from), seconds(it.until.min(end)));
                @let title = format!(
                    "{} is restored to {}, {:.1} s{}",
                    self.device(it.device),
                    it.state,
                    seconds(it.from),
                    if it.done { "" } else { ": the device did not do it" },
                );
                // Placed below the signs of restarts and of undone routines, which may be at the
                // same time.
                (self.time.sign("back", at, self.top(it.device) + ROW - 6.0, Shape::Back, &title))
            }
        }
    }

    fn leases(&self) -> Markup {
        html! {
            @for it in &self.report.trace.accesses {
                @if let Some(lease) = self.lease(it) {
                    @let shape = match lease {
                        Lease::Post(_) => Shape::Circle,
                        Lease::Pre(_) => Shape::Hollow,
                    };
                    @let class = format!("it r{}", it.routine.0);
                    (self.time.sign(&class, seconds(it.from), self.top(it.device) + PAD, shape, &self.title(it)))
                }
            }
        }
    }

    fn happened(&self) -> Markup {
        let drawn = self.report.trace.happened.iter();
        let drawn = drawn.filter_map(|&(at, device, what)| {
            let (shape, words) = match what {
                Happened::Failed => (Shape::Down, "fails"),
                Happened::Restarted => (Shape::Up, "restarts"),
                Happened::Stuck => (Shape::Cross, "refuses to be restored, and is left as it is"),
                // Noticed about a second after the event itself, which is drawn.
                Happened::FailureNoticed | Happened::RestartNoticed => return None,
            };
            let title = format!("{} {words}, {:.1} s", self.device(device), seconds(at));
            Some((seconds(at), self.top(device) + 5.0, shape, title))
        });
        html! { @for (at, y, shape, title) in drawn { (self.time.sign("", at, y, shape, &title)) } }
    }

    fn aborts(&self) -> Markup {
        let aborted = self.report.trace.occurrences.iter();
        let aborted = aborted.filter_map(|(&id, run)| {
            let Some((at, End::Aborted(why))) = run.ended else {
                return None;
            };
            // At the device that is the cause, or at the routine's last device.
            let last = self.accesses_of(id).next_back().map(|it| it.device);
            let device = why.device(&run.routine).or(last);
            let device = device.filter(|it| self.rows.contains_key(it))?;
            let why = why.explain(&run.routine, &self.report.plan.home.catalogue);
            let title = format!(
                "{} is undone, {:.1} s: {why}",
                self.routine(id),
                seconds(at)
            );
            Some((id, seconds(at), self.top(device) + PAD + BAR / 2.0, title))
        });
        html! {
            @for (id, at, y, title) in aborted {
                (self.time.sign(&format!("aborted it r{}", id.0), at, y, Shape::Cross, &title))
            }
        }
    }

    /// The path of a routine from device to device; shown when the pointer is on it.
    fn ways(&self) -> Markup {
        let points = |id: RoutineId| {
            let points = self.accesses_of(id).map(|it| {
                let y = self.top(it.device) + PAD + BAR / 2.0;
                let until = it.until.min(self.report.trace.end);
                format!("{:.1},{y:.1} {:.1},{y:.1} ", self.x(it.from), self.x(until))
            });
            points.collect::<String>()
        };
        html! {
            @for &id in self.report.trace.occurrences.keys() {
                polyline class={ "way r" (id.0) } points=(points(id)) {}
            }
        }
    }
}

impl Turn<'_> {
    fn routine(&self) -> Option<RoutineId> {
        self.accesses.first().map(|it| it.routine)
    }

    fn from(&self) -> Time {
        self.accesses.first().map_or(Time::ZERO, |it| it.from)
    }

    fn until(&self, end: Time) -> Time {
        self.accesses.last().map_or(end, |it| it.until.min(end))
    }
}

/// Lines across the time for which a device is down; the page would have to find a pattern by name.
fn hatch(from: f64, until: f64, bottom: f64) -> String {
    let starts = (0..).map(|nth| from + HATCH * f64::from(nth));
    let lines = starts.take_while(|x| *x < until).map(|x| {
        let length = (until - x).min(ROW);
        format!("M{x:.1} {bottom:.1} l{length:.1} -{length:.1} ")
    });
    lines.collect()
}
