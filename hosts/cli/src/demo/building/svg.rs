//! The picture: a row for every group, with the node that leads it; time to the right.

use maud::{Markup, html};
use selvedge_core::{NodeId, Sha256Sortition};
use selvedge_draw::{Px, Timeline, legend, sample};
use selvedge_groups::GroupId;
use selvedge_kgroup::Site;

use super::course::{Course, Tenure};
use super::floor::{floor_over_time, leader, member};
use super::site::{DEVICES, NODES, RUNS, Which, domain, site, with_lamp};
use crate::demo::page::{sheet, verdict};
use crate::demo::plan::seconds;
use crate::demo::promises::Promise;

/// The height of a band.
const BAND: f64 = 16.0;
/// The width from which a band has its node's number in it.
const ROOM: f64 = 13.0;

/// The page of the building.
#[must_use]
pub fn building_page(course: &Course, table: &[Promise], seed: u64) -> String {
    let dark = course.dark.as_ref();
    let dark = dark.map_or_else(String::new, |it| {
        let [one, two] = it.nodes;
        format!(
            " Nodes {one} and {two} went dark, and came back. Then all nodes lost power together."
        )
    });
    let added = match course.addition {
        Some(_) => " A lamp and a routine were added meanwhile.",
        None => "",
    };
    let runs: u64 = Which::ALL.into_iter().map(|it| course.ended(it)).sum();
    let story = format!(
        "{NODES} nodes in {} power domains lead the groups of clusters of devices, of routines and of a map. {runs} runs ended.{added}{dark} \
         {} Each band is the node that led the group, by its own events; below a routine are its runs. Seed {seed}.",
        NODES / 2,
        verdict(table),
    );
    let domains = (1..=NODES).step_by(2).map(|first| {
        let [one, two] = domain(NodeId(first));
        let class = format!("d{}", domain_class(one));
        (sample(&class, 14), format!("node {one} or {two} leads"))
    });
    let signs = [
        (sample("run", 4), "a run"),
        (member(0.0, 0.0), "below a floor: a member of the group"),
        (
            leader(NodeId(1), 0.0, 0.0),
            "its leader, in the colour of its domain",
        ),
    ];
    let legend = legend(domains.chain(signs.map(|it| (it.0, it.1.to_owned()))));
    let title = "A building without a hub";
    let picture = groups_over_time(course) + &floor_over_time(course);
    sheet(title, &story, STYLE, &legend, &picture, table)
}

/// Draws the leaders of groups over time.
#[must_use]
pub fn groups_over_time(course: &Course) -> String {
    let groups = groups();
    let time = Timeline {
        width: 1_180.0,
        left: 190.0,
        top: 46.0,
        row: 30.0,
        rows: groups.len(),
        end: seconds(course.end),
    };
    let marks = html! {
        (dark(course, time))
        (time.grid("the first node started"))
        @for (row, (group, name)) in groups.iter().enumerate() {
            @let top = time.top_of(row) + 4.0;
            (time.name(top + BAND - 4.0, name))
            @for lead in course.leads.iter().filter(|it| it.group == *group) {
                (band(name, lead, top, time))
            }
            @if let Some(routine) = Which::of(*group) { (runs(course, routine, top + BAND + 2.0, time)) }
        }
        (turns(course, time))
    };
    time.svg("Leaders of groups over time", &marks)
        .into_string()
}

/// The groups in the order of their rows, with their names.
pub(super) fn groups() -> Vec<(GroupId, String)> {
    let site = site().and_then(with_lamp).ok();
    let clusters = site.iter().flat_map(|it| it.clusters());
    let clusters = clusters.map(|(number, cluster)| {
        let names = DEVICES.iter().filter(|it| cluster.devices.contains(&it.0));
        let names: Vec<&str> = names.map(|it| it.1).collect();
        (Site::cluster(number), names.join(", "))
    });
    let routines = Which::ALL.map(|it| (it.group(), format!("routine: {it}")));
    let map = GroupId::map(RUNS, &Sha256Sortition);
    let map = (map, "map: runs".to_owned());
    clusters.chain(routines).chain([map]).collect()
}

fn dark(course: &Course, time: Timeline) -> Markup {
    let Some(dark) = &course.dark else {
        return Markup::default();
    };
    let [one, two] = dark.nodes;
    let (from, until) = (
        seconds(dark.from),
        seconds(dark.until.unwrap_or(course.end)),
    );
    let (x, right) = (time.x(from), time.x(until));
    let title = format!("nodes {one} and {two} are dark, {from:.2} s to {until:.2} s");
    html! {
        rect class={ "dark d" (domain_class(one)) } x=(Px(x)) y=(Px(time.top)) width=(Px(right - x)) height=(Px(time.bottom() - time.top)) {
            title { (title) }
        }
    }
}

fn band(name: &str, lead: &Tenure, top: f64, time: Timeline) -> Markup {
    let (from, until) = (seconds(lead.from), lead.until.map_or(time.end, seconds));
    let x = time.x(from);
    let width = (time.x(until) - x).max(1.5);
    let title = format!(
        "node {} leads {name}, {from:.2} s to {until:.2} s",
        lead.node
    );
    html! {
        g {
            title { (title) }
            rect class={ "band d" (domain_class(lead.node)) } x=(Px(x)) y=(Px(top)) width=(Px(width)) height=(Px(BAND)) {}
            @if width >= ROOM {
                text.leader x=(Px(x + width / 2.0)) y=(Px(top + BAND - 4.0)) { (lead.node.0) }
            }
        }
    }
}

/// The runs of a routine, each from a leader's first report.
fn runs(course: &Course, routine: Which, top: f64, time: Timeline) -> Markup {
    let runs = course.runs.get(&routine).into_iter().flatten();
    let ended = runs.filter_map(|(number, run)| {
        let (began, (ended, _)) = (run.began?, run.ended?);
        Some((number, seconds(began), seconds(ended)))
    });
    html! {
        @for (number, began, ended) in ended {
            @let x = time.x(began);
            rect.run x=(Px(x)) y=(Px(top)) width=(Px((time.x(ended) - x).max(1.0))) height="4" {
                title { (format!("{routine}, run {number}, {began:.2} s to {ended:.2} s")) }
            }
        }
    }
}

fn turns(course: &Course, time: Timeline) -> Markup {
    html! {
        @if let Some(addition) = &course.addition {
            (time.turn(seconds(addition.from), "a lamp is added", false))
        }
        @for at in &course.epochs { (time.turn(seconds(*at), "an epoch begins", true)) }
        @if let Some(dark) = &course.dark {
            @let [one, two] = dark.nodes;
            (time.turn(seconds(dark.from), &format!("nodes {one} and {two} go dark"), false))
            @if let Some(at) = dark.until { (time.turn(seconds(at), "they come back", true)) }
        }
        @if let Some(blackout) = &course.blackout {
            (time.turn(seconds(blackout.from), "all nodes lose power", false))
        }
    }
}

/// The number of a node's power domain, which has a colour.
pub(super) fn domain_class(node: NodeId) -> u64 {
    domain(node)[0].0 / 2
}

/// All light enough for dark numbers on light and on dark ground.
const STYLE: &str = "\
.d0 { fill: #e69f00; } .d1 { fill: #56b4e9; } .d2 { fill: #1fb38a; } .d3 { fill: #f0e442; } .d4 { fill: #cc79a7; }
.band { stroke: var(--ground); stroke-width: 1; }
.scroll .leader { fill: #111; font-weight: 600; font-size: 11px; text-anchor: middle; }
.dark { opacity: .25; } .run { fill: var(--ink); }
.room { opacity: .3; } .off { fill: var(--soft); opacity: .45; } .node { stroke: var(--ground); stroke-width: 1; }
.member { fill: none; stroke: var(--soft); stroke-width: 1.5; } .lead { stroke: var(--ink); stroke-width: 1.5; }
.device { fill: var(--ink); } .wire { stroke: var(--ink); } .scroll .small { font-size: 10px; }
";
