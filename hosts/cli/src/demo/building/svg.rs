//! The picture: a row for every group, with the node that leads it; time to the right.

use core::fmt::Write;

use selvedge_core::{NodeId, Sha256Sortition, Time};
use selvedge_groups::GroupId;
use selvedge_kgroup::Site;

use super::course::{Course, Lead};
use super::site::{DEVICES, NODES, RUNS, Which, domain, site};
use crate::demo::page::{Sheet, sheet, verdict};
use crate::demo::plan::seconds;
use crate::demo::promises::Promise;

const WIDTH: f64 = 1_180.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 46.0;
const ROW: f64 = 30.0;
/// The height of a band.
const BAND: f64 = 16.0;
/// How wide a band has to be to have its node's number in it.
const ROOM: f64 = 13.0;

/// The page of the building.
#[must_use]
pub fn building_page(course: &Course, table: &[Promise], seed: u64) -> String {
    let dark = course.dark.as_ref();
    let dark = dark.map_or_else(String::new, |it| {
        let [one, two] = it.nodes;
        format!(" Nodes {one} and {two} went dark, and came back without their memory.")
    });
    let runs: u64 = Which::ALL.into_iter().map(|it| course.ended(it)).sum();
    let mut legend = String::new();
    self::legend(&mut legend);
    sheet(&Sheet {
        title: "A building without a hub",
        story: &format!(
            "{NODES} nodes in {} power domains lead the groups of three clusters of devices, three routines and a map. {runs} runs ended.{dark} \
             {} Each band is the node that led the group, by its own word; below a routine are its runs. Seed {seed}.",
            NODES / 2,
            verdict(table),
        ),
        style: STYLE,
        legend: &legend,
        picture: &groups_over_time(course),
        table,
    })
}

/// Draws which node led which group when.
#[must_use]
pub fn groups_over_time(course: &Course) -> String {
    let groups = groups();
    let scale = Scale { end: course.end };
    let bottom = TOP + ROW * count(groups.len());
    let height = bottom + 44.0;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"Which node leads which group when\">\n"
    );
    background(&mut svg, course, bottom, scale);
    for (row, (group, name)) in groups.iter().enumerate() {
        let top = TOP + ROW * count(row);
        put(
            &mut svg,
            format_args!(
                "<text class=\"name\" x=\"{:.1}\" y=\"{:.1}\">{name}</text>\n",
                LEFT - 10.0,
                top + 4.0 + BAND - 4.0,
            ),
        );
        for lead in course.leads.iter().filter(|it| it.group == *group) {
            band(&mut svg, name, lead, course.end, top + 4.0, scale);
        }
        if let Some(routine) = Which::of(*group) {
            runs(&mut svg, course, routine, top + 4.0 + BAND + 2.0, scale);
        }
    }
    foreground(&mut svg, course, bottom, scale);
    svg.push_str("</svg>\n");
    svg
}

/// Time to the right.
#[derive(Clone, Copy)]
struct Scale {
    end: Time,
}

impl Scale {
    fn x(self, time: Time) -> f64 {
        let share = seconds(time) / seconds(self.end).max(0.001);
        LEFT + share.min(1.0) * (WIDTH - LEFT - RIGHT)
    }
}

/// The groups in the order of their rows, with their names.
fn groups() -> Vec<(GroupId, String)> {
    let site = site().ok();
    let clusters = site.iter().flat_map(|it| it.clusters());
    let clusters = (0..).zip(clusters).map(|(number, cluster)| {
        let names = DEVICES.iter().filter(|it| cluster.devices.contains(&it.0));
        let names: Vec<&str> = names.map(|it| it.1).collect();
        (Site::cluster(number), names.join(", "))
    });
    let routines = Which::ALL.map(|it| (it.group(), format!("routine: {it}")));
    let map = GroupId::map(RUNS, &Sha256Sortition);
    let map = (map, "map: runs".to_owned());
    clusters.chain(routines).chain([map]).collect()
}

fn background(svg: &mut String, course: &Course, bottom: f64, scale: Scale) {
    if let Some(dark) = &course.dark {
        let (from, until) = (
            scale.x(dark.from),
            scale.x(dark.until.unwrap_or(course.end)),
        );
        let [one, two] = dark.nodes;
        put(
            svg,
            format_args!(
                "<rect class=\"dark d{}\" x=\"{from:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\"><title>nodes {one} and {two} are dark, {:.2} s to {:.2} s</title></rect>\n",
                domain_class(one),
                until - from,
                bottom - TOP,
                seconds(dark.from),
                seconds(dark.until.unwrap_or(course.end)),
            ),
        );
    }
    let mut second = 0;
    while Time(second * 1_000_000) <= scale.end {
        let x = scale.x(Time(second * 1_000_000));
        put(
            svg,
            format_args!(
                "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom}\"/>\
                 <text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\">{second}</text>\n",
                bottom + 16.0,
            ),
        );
        second += 1;
    }
    put(
        svg,
        format_args!(
            "<text class=\"axis\" x=\"{:.1}\" y=\"{:.1}\">seconds since the first node started</text>\n",
            f64::midpoint(LEFT, WIDTH - RIGHT),
            bottom + 36.0,
        ),
    );
}

fn band(svg: &mut String, name: &str, lead: &Lead, end: Time, top: f64, scale: Scale) {
    let until = lead.until.unwrap_or(end);
    let (x, right) = (scale.x(lead.from), scale.x(until));
    let width = (right - x).max(1.5);
    put(
        svg,
        format_args!(
            "<g><title>node {} leads {name}, {:.2} s to {:.2} s</title><rect class=\"band d{}\" x=\"{x:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{BAND}\"/>",
            lead.node,
            seconds(lead.from),
            seconds(until),
            domain_class(lead.node),
        ),
    );
    if width >= ROOM {
        put(
            svg,
            format_args!(
                "<text class=\"leader\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                f64::midpoint(x, x + width),
                top + BAND - 4.0,
                lead.node
            ),
        );
    }
    svg.push_str("</g>\n");
}

/// The runs of a routine, from when a leader first told of each.
fn runs(svg: &mut String, course: &Course, routine: Which, top: f64, scale: Scale) {
    for (number, run) in course.runs.get(&routine).into_iter().flatten() {
        let (Some(began), Some((ended, _))) = (run.began, run.ended) else {
            continue;
        };
        let (x, right) = (scale.x(began), scale.x(ended));
        put(
            svg,
            format_args!(
                "<rect class=\"run\" x=\"{x:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"4\"><title>{routine}, run {number}, {:.2} s to {:.2} s</title></rect>\n",
                (right - x).max(1.0),
                seconds(began),
                seconds(ended),
            ),
        );
    }
}

fn foreground(svg: &mut String, course: &Course, bottom: f64, scale: Scale) {
    let epochs = course
        .epochs
        .iter()
        .map(|at| (*at, "an epoch begins", 14.0));
    let dark = course.dark.iter().flat_map(|it| {
        let [one, two] = it.nodes;
        let gone = format!("nodes {one} and {two} go dark");
        let back = it.until.map(|at| (at, "they come back".to_owned()));
        [(it.from, gone)].into_iter().chain(back)
    });
    let captions = epochs
        .map(|(at, text, lower)| (at, text.to_owned(), lower))
        .chain(dark.map(|(at, text)| (at, text, 0.0)));
    for (at, caption, lower) in captions {
        let x = scale.x(at);
        // One at the end is read to the left of its line.
        let class = if x + 50.0 > WIDTH { "name" } else { "caption" };
        put(
            svg,
            format_args!(
                "<line class=\"turn\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{bottom}\"/>\
                 <text class=\"{class}\" x=\"{x:.1}\" y=\"{:.1}\">{caption}</text>\n",
                TOP - 14.0 + lower,
                26.0 + lower,
            ),
        );
    }
}

fn legend(page: &mut String) {
    page.push_str("<ul class=\"legend\">\n");
    for first in (1..=NODES).step_by(2).map(NodeId) {
        let [one, two] = domain(first);
        put(
            page,
            format_args!(
                "<li><svg viewBox=\"0 0 16 14\"><rect class=\"d{}\" width=\"16\" height=\"14\"/></svg>node {one} or {two} leads</li>\n",
                domain_class(first),
            ),
        );
    }
    page.push_str(
        "<li><svg viewBox=\"0 0 16 14\"><rect class=\"run\" y=\"5\" width=\"16\" height=\"4\"/></svg>a run</li>\n</ul>\n",
    );
}

/// The number of a node's power domain, which has a colour.
fn domain_class(node: NodeId) -> u64 {
    domain(node)[0].0 / 2
}

fn put(svg: &mut String, text: core::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _written = svg.write_fmt(text).is_ok();
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

/// Colours after Okabe and Ito, all light enough for dark numbers on light and on dark ground.
const STYLE: &str = "\
.d0 { fill: #e69f00; } .d1 { fill: #56b4e9; } .d2 { fill: #1fb38a; } .d3 { fill: #f0e442; } .d4 { fill: #cc79a7; }
.band { stroke: var(--ground); stroke-width: 1; }
svg .leader { fill: #111; font-weight: 600; font-size: 11px; text-anchor: middle; }
.dark { opacity: .25; } .run { fill: var(--ink); }
";
