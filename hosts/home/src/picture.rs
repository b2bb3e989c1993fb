//! The lineage table as a picture: devices down, time to the right, a colour for each routine.

use core::fmt::Write;
use std::collections::BTreeMap;

use selvedge_core::{NodeId, Time};
use selvedge_safehome::{RoutineId, Scheduler};

use super::colour::colour;
use super::report::{Report, seconds};
use super::trace::{Access, End, Happened, Lease};

const WIDTH: f64 = 1_240.0;
const LEFT: f64 = 216.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 30.0;
const ROW: f64 = 26.0;
const BAR: f64 = 14.0;
/// How far bars begin below their row's top; below them is room for routines that wait.
const PAD: f64 = 2.0;
/// The narrowest bar.
const NARROW: f64 = 3.0;
/// Waits shorter than this, in pixels, are not drawn.
const SHORT_WAIT: f64 = 3.0;
/// Between two lines where a device is down.
const HATCH: f64 = 6.0;
/// How many lanes of waiting routines fit below a bar.
const LANES: usize = 3;

/// Draws a run. Colours of routines are in it, the others come from the page's style.
#[must_use]
pub fn picture(report: &Report) -> String {
    let sketch = Sketch::new(report);
    let bottom = TOP + ROW * sketch.rows.len() as f64;
    let height = bottom + 42.0;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"Which routine had which device when\">\n"
    );
    sketch.ground(&mut svg, bottom);
    sketch.outages(&mut svg);
    sketch.waits(&mut svg);
    sketch.ways(&mut svg);
    sketch.bars(&mut svg);
    sketch.restores(&mut svg);
    sketch.marks(&mut svg);
    svg.push_str("</svg>\n");
    svg
}

/// The outline of a symbol around the origin.
pub(super) fn shape(name: &str) -> &'static str {
    match name {
        "post" => "<circle class=\"lent\" r=\"3.4\"/>",
        "pre" => "<path class=\"lent\" d=\"M0 -4.4 L4.4 0 L0 4.4 L-4.4 0 Z\"/>",
        "abort" => {
            "<path class=\"stroke halo\" d=\"M-4 -4 L4 4 M-4 4 L4 -4\"/><path class=\"stroke\" d=\"M-4 -4 L4 4 M-4 4 L4 -4\"/>"
        }
        "back" => "<path class=\"solid\" d=\"M5 -5 L-4 0 L5 5 Z\"/>",
        "failed" => "<path class=\"solid\" d=\"M-5 -4 L0 5 L5 -4 Z\"/>",
        "restarted" => "<path class=\"solid\" d=\"M-5 4 L0 -5 L5 4 Z\"/>",
        _ => "",
    }
}

/// Escapes characters that have a meaning in SVG and HTML.
pub(super) fn text(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// The colour of a routine.
pub(super) fn colour_of(id: RoutineId) -> String {
    colour(usize::try_from(id.0.saturating_sub(1)).unwrap_or_default())
}

struct Sketch<'a> {
    report: &'a Report,
    /// The devices that are drawn, and the row of each.
    rows: BTreeMap<NodeId, usize>,
}

/// A run of accesses of one routine to one device without another one between them.
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
        let rows = devices.filter(is_used).zip(0..).collect();
        Self { report, rows }
    }

    fn x(&self, time: Time) -> f64 {
        let end = seconds(self.report.trace.end).max(0.001);
        LEFT + (seconds(time) / end).min(1.0) * (WIDTH - LEFT - RIGHT)
    }

    fn top(&self, device: NodeId) -> f64 {
        let row = self.rows.get(&device).copied().unwrap_or_default();
        TOP + ROW * row as f64
    }

    fn device(&self, device: NodeId) -> String {
        let name = self.report.plan.home.catalogue.name(device);
        text(name.unwrap_or("?"))
    }

    fn routine(&self, id: RoutineId) -> String {
        let run = self.report.trace.occurrences.get(&id);
        text(&run.map_or_else(String::new, |it| format!("{} {}", id.0, it.name)))
    }

    /// Rows, names, the grid and its hours.
    fn ground(&self, svg: &mut String, bottom: f64) {
        for (&device, row) in &self.rows {
            let top = self.top(device);
            if row % 2 == 0 {
                put(
                    svg,
                    format_args!(
                        "<rect class=\"row\" x=\"0\" y=\"{top:.1}\" width=\"{WIDTH}\" height=\"{ROW}\"/>\n"
                    ),
                );
            }
            put(
                svg,
                format_args!(
                    "<text class=\"name\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\n",
                    LEFT - 10.0,
                    top + PAD + BAR / 2.0 + 4.0,
                    self.device(device),
                ),
            );
        }
        let end = seconds(self.report.trace.end);
        let step = step(end);
        let mut at = 0;
        while (at as f64) <= end {
            let x = self.x(Time(at * 1_000_000));
            put(
                svg,
                format_args!(
                    "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom}\"/>\
                     <text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\">{label}</text>\
                     <text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\">{label}</text>\n",
                    TOP - 8.0,
                    bottom + 16.0,
                    label = label(at),
                ),
            );
            at += step;
        }
        let unit = if end >= 3_600.0 {
            "hours, minutes and seconds"
        } else {
            "minutes and seconds"
        };
        put(
            svg,
            format_args!(
                "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\">{unit} since the start</text>\n",
                f64::midpoint(LEFT, WIDTH - RIGHT),
                bottom + 34.0,
            ),
        );
    }

    /// When devices were really down.
    fn outages(&self, svg: &mut String) {
        for outage in &self.report.plan.outages {
            if !self.rows.contains_key(&outage.device) {
                continue;
            }
            let (from, until) = (self.x(outage.from), self.x(outage.until));
            let until = until.max(from + NARROW);
            let top = self.top(outage.device);
            // Hatched by lines: a pattern would have to be found by its name in the page.
            let mut lines = String::new();
            let mut x = from;
            while x < until {
                let length = (until - x).min(ROW);
                put(
                    &mut lines,
                    format_args!("M{x:.1} {:.1} l{length:.1} -{length:.1} ", top + ROW),
                );
                x += HATCH;
            }
            put(
                svg,
                format_args!(
                    "<path class=\"hatch\" d=\"{lines}\"/><rect class=\"down\" x=\"{from:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{ROW}\">\
                     <title>{} was down, {:.1} s to {:.1} s</title></rect>\n",
                    until - from,
                    self.device(outage.device),
                    seconds(outage.from),
                    seconds(outage.until),
                ),
            );
        }
    }

    /// The routines that waited for a device: a thin line below the bars.
    fn waits(&self, svg: &mut String) {
        let mut lanes: BTreeMap<(NodeId, usize), f64> = BTreeMap::new();
        let mut accesses: Vec<&Access> = self.report.trace.accesses.iter().collect();
        accesses.sort_by_key(|it| it.waited);
        for it in accesses {
            let (from, until) = (self.x(it.waited), self.x(it.from));
            if until - from < SHORT_WAIT {
                continue;
            }
            let is_free = |lane: &usize| {
                let taken = lanes.get(&(it.device, *lane));
                taken.is_none_or(|&end| end + 2.0 <= from)
            };
            let lane = (0..LANES).find(is_free).unwrap_or(LANES - 1);
            lanes.insert((it.device, lane), until);
            let y = self.top(it.device) + PAD + BAR + 2.6 + 2.8 * lane as f64;
            let for_whom = self
                .report
                .trace
                .waited_for(it)
                .map_or_else(String::new, |id| {
                    format!(", which {} had", self.routine(id))
                });
            put(
                svg,
                format_args!(
                    "<line class=\"it wait r{id}\" x1=\"{from:.1}\" x2=\"{until:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"{}\">\
                     <title>{} waited {:.1} s for the {}{for_whom}</title></line>\n",
                    colour_of(it.routine),
                    self.routine(it.routine),
                    seconds(it.from) - seconds(it.waited),
                    self.device(it.device),
                    id = it.routine.0,
                ),
            );
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

    fn bars(&self, svg: &mut String) {
        for &device in self.rows.keys() {
            let turns = self.turns(device);
            let starts: Vec<f64> = turns.iter().map(|it| self.x(it.from())).collect();
            // Where bars are so close that labels would overlap, only the first has a label.
            let mut free = f64::NEG_INFINITY;
            for (nth, turn) in turns.iter().enumerate() {
                let next = starts.get(nth + 1).copied();
                self.bar(svg, device, turn, next, &mut free);
            }
        }
    }

    fn bar(
        &self,
        svg: &mut String,
        device: NodeId,
        turn: &Turn<'a>,
        next: Option<f64>,
        free: &mut f64,
    ) {
        let Some(id) = turn.routine() else {
            return;
        };
        let end = self.report.trace.end;
        let fill = colour_of(id);
        let (first, last) = (self.x(turn.from()), self.x(turn.until(end)));
        let y = self.top(device) + PAD;
        if turn.accesses.len() > 1 {
            // It kept the device between its commands.
            put(
                svg,
                format_args!(
                    "<rect class=\"it kept r{}\" x=\"{first:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"4\" fill=\"{fill}\"/>\n",
                    id.0,
                    y + BAR / 2.0 - 2.0,
                    (last - first).max(NARROW),
                ),
            );
        }
        for it in &turn.accesses {
            let (from, until) = (self.x(it.from), self.x(it.until.min(end)));
            let class = if it.done { "bar" } else { "bar failed" };
            put(
                svg,
                format_args!(
                    "<rect class=\"it {class} r{}\" x=\"{from:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{BAR}\" fill=\"{fill}\" stroke=\"{fill}\"><title>{}</title></rect>\n",
                    id.0,
                    (until - from).max(NARROW),
                    self.title(it),
                ),
            );
        }
        let last = last.max(first + NARROW);
        let (inside, digits) = (last - first, 7.0 * id.0.to_string().len() as f64);
        let whole = self.routine(id);
        let baseline = y + BAR / 2.0 + 4.0;
        if inside >= digits + 4.0 {
            let is_long = inside >= 6.6 * whole.chars().count() as f64 + 8.0;
            let number = id.0.to_string();
            put(
                svg,
                format_args!(
                    "<text class=\"it in r{}\" x=\"{:.1}\" y=\"{baseline:.1}\">{}</text>\n",
                    id.0,
                    if is_long { first + 6.0 } else { first + 2.5 },
                    if is_long { &whole } else { &number },
                ),
            );
        } else if first >= *free && next.is_none_or(|next| next >= last + digits + 3.0) {
            put(
                svg,
                format_args!(
                    "<text class=\"it by r{}\" x=\"{:.1}\" y=\"{baseline:.1}\">{}</text>\n",
                    id.0,
                    last + 2.0,
                    id.0,
                ),
            );
            *free = last + digits + 2.0;
        }
    }

    /// What happened here, in words.
    fn title(&self, it: &Access) -> String {
        let end = it.until.min(self.report.trace.end);
        let (from, until) = (seconds(it.from), seconds(end));
        let mut title = format!(
            "{}: {} to {}, {from:.1} s to {until:.1} s",
            self.routine(it.routine),
            self.device(it.device),
            text(&it.state.to_string()),
        );
        if !it.done {
            title.push_str("; it did not do it, or not in time");
        }
        let waited = from - seconds(it.waited);
        if waited >= 0.5 {
            put(&mut title, format_args!("; waited {waited:.1} s"));
        }
        match self.lease(it) {
            Some(Lease::Post(of)) => put(
                &mut title,
                format_args!("; lent by {}, which was not finished", self.routine(of)),
            ),
            Some(Lease::Pre(of)) => put(
                &mut title,
                format_args!("; before {}, which had started", self.routine(of)),
            ),
            None => {}
        }
        title
    }

    fn lease(&self, it: &Access) -> Option<Lease> {
        let config = &self.report.plan.config;
        let late = config.scheduler == Scheduler::JustInTime;
        self.report.trace.lease(it, config.visibility, late)
    }

    fn restores(&self, svg: &mut String) {
        let end = self.report.trace.end;
        for it in &self.report.trace.restores {
            let (from, until) = (self.x(it.from), self.x(it.until.min(end)));
            let title = format!(
                "{} is brought back to {}, {:.1} s{}",
                self.device(it.device),
                text(&it.state.to_string()),
                seconds(it.from),
                if it.done { "" } else { ": it did not do it" },
            );
            // Below what restarts, and what is undone, at the same time.
            let y = self.top(it.device) + ROW - 6.0;
            let x = f64::midpoint(from, until);
            put(
                svg,
                format_args!(
                    "<g class=\"sign back\" transform=\"translate({x:.1} {y:.1})\"><title>{title}</title>{}</g>\n",
                    shape("back"),
                ),
            );
        }
    }

    fn marks(&self, svg: &mut String) {
        for it in &self.report.trace.accesses {
            let (name, title) = match self.lease(it) {
                Some(Lease::Post(_)) => ("post", self.title(it)),
                Some(Lease::Pre(_)) => ("pre", self.title(it)),
                None => continue,
            };
            let (x, y) = (self.x(it.from), self.top(it.device) + PAD);
            put(
                svg,
                format_args!(
                    "<g class=\"it sign r{}\" transform=\"translate({x:.1} {y:.1})\"><title>{title}</title>{}</g>\n",
                    it.routine.0,
                    shape(name),
                ),
            );
        }
        for &(at, device, what) in &self.report.trace.happened {
            let (name, words) = match what {
                Happened::Failed => ("failed", "fails"),
                Happened::Restarted => ("restarted", "restarts"),
                Happened::Stuck => ("abort", "refuses to be restored, and is left as it is"),
                // Noticed within a second or so after the event itself, which is drawn.
                Happened::FailureNoticed | Happened::RestartNoticed => continue,
            };
            let (x, y) = (self.x(at), self.top(device) + 5.0);
            put(
                svg,
                format_args!(
                    "<g class=\"sign\" transform=\"translate({x:.1} {y:.1})\"><title>{} {words}, {:.1} s</title>{}</g>\n",
                    self.device(device),
                    seconds(at),
                    shape(name),
                ),
            );
        }
        for (&id, run) in &self.report.trace.occurrences {
            let Some((at, End::Aborted(why))) = run.ended else {
                continue;
            };
            // At the device that is the cause, or at its last one.
            let mut used = self.report.trace.accesses.iter().rev();
            let last = used.find(|it| it.routine == id).map(|it| it.device);
            let device = why.device(&run.routine).or(last);
            let Some(device) = device.filter(|it| self.rows.contains_key(it)) else {
                continue;
            };
            let (x, y) = (self.x(at), self.top(device) + PAD + BAR / 2.0);
            let why = text(&why.explain(&run.routine, &self.report.plan.home.catalogue));
            put(
                svg,
                format_args!(
                    "<g class=\"it sign aborted r{}\" transform=\"translate({x:.1} {y:.1})\"><title>{} is undone, {:.1} s: {why}</title>{}</g>\n",
                    id.0,
                    self.routine(id),
                    seconds(at),
                    shape("abort"),
                ),
            );
        }
    }

    /// The path of a routine from device to device; shown when the pointer is on it.
    fn ways(&self, svg: &mut String) {
        for &id in self.report.trace.occurrences.keys() {
            let mut points = String::new();
            for it in self
                .report
                .trace
                .accesses
                .iter()
                .filter(|it| it.routine == id)
            {
                let y = self.top(it.device) + PAD + BAR / 2.0;
                let until = it.until.min(self.report.trace.end);
                put(
                    &mut points,
                    format_args!("{:.1},{y:.1} {:.1},{y:.1} ", self.x(it.from), self.x(until)),
                );
            }
            put(
                svg,
                format_args!("<polyline class=\"way r{}\" points=\"{points}\"/>\n", id.0),
            );
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

/// Seconds between two lines of the grid: some ten of them.
fn step(end: f64) -> u64 {
    let steps = [
        1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 43_200, 86_400,
    ];
    let fits = |step: &u64| end / *step as f64 <= 14.0;
    steps.into_iter().find(fits).unwrap_or(604_800)
}

fn label(at: u64) -> String {
    if at >= 3_600 {
        format!("{}:{:02}:{:02}", at / 3_600, at / 60 % 60, at % 60)
    } else {
        format!("{}:{:02}", at / 60, at % 60)
    }
}

pub(super) fn put(out: &mut String, text: core::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _written = out.write_fmt(text).is_ok();
}
