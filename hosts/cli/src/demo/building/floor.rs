//! The plan of the floor at some moments of the course: rooms, nodes and devices, and below each node the
//! groups in which it is.

use maud::{Markup, html};
use selvedge_core::{NodeId, Time};
use selvedge_draw::Px;
use selvedge_groups::{GroupId, Place};

use super::course::{Course, Tenure};
use super::site::{DEVICES, LAMP, NODES, Which, domain, place_of, site, with_lamp};
use super::svg::{domain_class, groups};
use crate::demo::plan::seconds;

/// The width and height of a plan, and the number of plans beside each other.
const WIDTH: f64 = 590.0;
const HEIGHT: f64 = 262.0;
const BESIDE: usize = 2;
/// The space for names of groups, and the width of a metre.
const LEFT: f64 = 150.0;
const METRE: f64 = 39.0;
/// The top and bottom of rooms, and the heights of devices and nodes.
const ROOMS: (f64, f64) = (22.0, 92.0);
const DEVICE: f64 = 52.0;
const NODE: f64 = 77.0;
/// The first row of groups, and the height of a row.
const GROUP: f64 = 108.0;
const ROW: f64 = 15.0;

/// Draws the plan of the floor at the course's moments, side by side.
#[must_use]
pub fn floor_over_time(course: &Course) -> String {
    let moments = moments(course);
    let rows = moments.len().div_ceil(BESIDE);
    let size = format!("0 0 {} {}", WIDTH * BESIDE as f64, HEIGHT * rows as f64);
    let plans = html! {
        svg viewBox=(size) role="img" aria-label="The plan of the floor over time" {
            @for (nth, (at, caption)) in moments.iter().enumerate() {
                @let (x, y) = ((nth % BESIDE) as f64 * WIDTH, (nth / BESIDE) as f64 * HEIGHT);
                g.floor transform=(format!("translate({x:.1} {y:.1})")) {
                    text x="8" y="14" { (format!("{:.1} s: {caption}", seconds(*at))) }
                    (rooms(course, *at))
                    (devices(course, *at))
                    (nodes(course, *at))
                    (members(course, *at))
                }
            }
        }
    };
    plans.into_string()
}

/// The sign of a member in the row of a group.
pub(super) fn member(x: f64, y: f64) -> Markup {
    html! { circle.member cx=(Px(x)) cy=(Px(y)) r="4" {} }
}

/// The sign of a leader.
pub(super) fn leader(node: NodeId, x: f64, y: f64) -> Markup {
    html! { circle class={ "lead d" (domain_class(node)) } cx=(Px(x)) cy=(Px(y)) r="5" {} }
}

/// The moments that are drawn, with their captions.
fn moments(course: &Course) -> Vec<(Time, String)> {
    let mut moments = Vec::new();
    if let Some(addition) = &course.addition {
        moments.push((addition.from, "a lamp is about to be added".to_owned()));
        let runs = course.ends(Which::Reading).into_iter();
        let first = runs
            .min()
            .map(|at| (at, "a run with the lamp has ended".to_owned()));
        moments.extend(first);
    }
    if let Some(dark) = &course.dark {
        let [one, two] = dark.nodes;
        // Just before its nodes restart: others lead by then.
        let until = dark.until.unwrap_or(course.end);
        let last = Time(until.0.saturating_sub(1));
        moments.push((last, format!("nodes {one} and {two} are still dark")));
        moments.extend(dark.back.map(|at| (at, "they are back".to_owned())));
    }
    if let Some(blackout) = &course.blackout {
        moments.push((blackout.from, "no node has power".to_owned()));
    }
    moments.push((course.end, "the end".to_owned()));
    moments
}

fn rooms(course: &Course, at: Time) -> Markup {
    let (top, bottom) = ROOMS;
    let firsts = (1..=NODES).step_by(2).map(NodeId);
    html! {
        @for [one, two] in firsts.map(domain) {
            @let x = x_of(one) - METRE / 2.0 + 1.0;
            @let class = match course.is_dark(one, at) {
                true => "off".to_owned(),
                false => format!("room d{}", domain_class(one)),
            };
            rect class=(class) x=(Px(x)) y=(Px(top)) width=(Px(2.0 * METRE - 2.0)) height=(Px(bottom - top)) {
                title { (format!("the power domain of nodes {one} and {two}")) }
            }
        }
    }
}

/// The devices, each with a line from the node that leads its group.
fn devices(course: &Course, at: Time) -> Markup {
    let site = site().and_then(with_lamp).ok();
    let group = |device| site.as_ref().and_then(|it| it.cluster_of(device));
    let here = DEVICES
        .into_iter()
        .filter(|it| it.0 != LAMP || has_lamp(course, at));
    html! {
        @for (nth, (device, name, _)) in here.enumerate() {
            @let x = metres(place_of(device));
            @if let Some(node) = group(device).and_then(|it| leader_of(course, it, at)) {
                line.wire x1=(Px(x_of(node))) y1=(Px(NODE)) x2=(Px(x)) y2=(Px(DEVICE)) {}
            }
            rect.device x=(Px(x - 4.0)) y=(Px(DEVICE - 4.0)) width="8" height="8" { title { (name) } }
            // Names of neighbours are not beside each other.
            text.small.caption x=(Px(x)) y=(Px(DEVICE - 8.0 - 11.0 * (nth % 2) as f64)) { (name) }
        }
    }
}

fn nodes(course: &Course, at: Time) -> Markup {
    html! {
        @for node in (1..=NODES).map(NodeId) {
            @let x = x_of(node);
            @let class = match course.is_dark(node, at) {
                true => "off".to_owned(),
                false => format!("node d{}", domain_class(node)),
            };
            circle class=(class) cx=(Px(x)) cy=(Px(NODE)) r="10" {}
            text.leader x=(Px(x)) y=(Px(NODE + 4.0)) { (node.0) }
        }
    }
}

/// A row for each group that has begun, with a sign below each member.
fn members(course: &Course, at: Time) -> Markup {
    let groups = groups().into_iter().filter(|(group, _)| {
        let mut all = course.memberships.iter().chain(&course.leads);
        all.any(|it| it.group == *group && it.from <= at)
    });
    html! {
        @for (row, (group, name)) in groups.enumerate() {
            @let y = GROUP + ROW * row as f64;
            @let leads = leader_of(course, group, at);
            text.small.name x=(Px(LEFT - 8.0)) y=(Px(y + 3.5)) { (name) }
            @for node in holders(course, group, at) { (member(x_of(node), y)) }
            @if let Some(node) = leads { (leader(node, x_of(node), y)) }
        }
    }
}

fn holders(course: &Course, group: GroupId, at: Time) -> impl Iterator<Item = NodeId> {
    under_way(course, &course.memberships, group, at)
}

/// The node that has led the group for the shortest time: a former leader learns of its end late.
fn leader_of(course: &Course, group: GroupId, at: Time) -> Option<NodeId> {
    under_way(course, &course.leads, group, at).last()
}

fn under_way<'a>(
    course: &'a Course,
    tenures: &'a [Tenure],
    group: GroupId,
    at: Time,
) -> impl Iterator<Item = NodeId> + 'a {
    let all = tenures.iter();
    let own = all.filter(move |it| it.group == group && it.covers(at));
    own.map(|it| it.node)
        .filter(move |it| !course.is_dark(*it, at))
}

/// Returns true if some node knows the lamp by then.
fn has_lamp(course: &Course, at: Time) -> bool {
    let added = course.addition.iter();
    added.flat_map(|it| it.taken.values()).any(|it| *it <= at)
}

fn x_of(node: NodeId) -> f64 {
    // From the entrance, a metre for each.
    LEFT + METRE * (node.0 as f64 + 0.5)
}

fn metres(Place([x, ..]): Place) -> f64 {
    LEFT + METRE * (f64::from(x) / 100.0 + 0.5)
}
