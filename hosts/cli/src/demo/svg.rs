//! The timeline: a row for every node, time to the right.

use core::fmt::Write;

use selvedge_core::{NodeId, Time};
use selvedge_membership::Event;

use super::history::{Stretch, histories};
use super::leaders::Leaders;
use super::narrator::list;
use super::plan::{Plan, seconds};
use super::run::Outcome;
use super::trace::{Fact, Mark};
use selvedge_udp::NodeEvent;

const WIDTH: f64 = 1_180.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 46.0;
const ROW: f64 = 26.0;
/// The height of a bar that all others agree on.
const BAR: f64 = 14.0;
/// Time is drawn in so many steps: two pixels each.
const STEPS: u64 = 500;

/// Draws the run. Colours come from the page's style sheet.
#[must_use]
pub fn timeline(outcome: &Outcome) -> String {
    let plan = &outcome.plan;
    let rows = Rows::new(plan);
    let scale = Scale { end: outcome.end };
    let height = TOP + ROW * count(plan.nodes) + 44.0;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"Timeline of the run\">\n"
    );
    background(&mut svg, plan, &rows, scale);
    let histories = histories(&outcome.trace, plan.nodes, outcome.end, STEPS);
    for (history, node) in histories.iter().zip(1..) {
        row(&mut svg, plan, node, rows.top(node), history, scale);
    }
    reigns(&mut svg, outcome, &rows, scale);
    for mark in outcome.trace.iter() {
        symbol_of(&mut svg, mark, &rows, scale);
    }
    for node in plan.crashing.into_iter().chain([plan.leaving]) {
        if let Some(history) = usize::try_from(node - 1)
            .ok()
            .and_then(|at| histories.get(at))
        {
            noticed(&mut svg, node, rows.top(node), history, scale);
        }
    }
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

/// Which node is in which row: those with many events stand together.
struct Rows(Vec<u64>);

impl Rows {
    fn new(plan: &Plan) -> Self {
        let mut order: Vec<u64> = (1..=plan.nodes).collect();
        order.sort_by_key(|&node| (plan.is_cut_off(node), !plan.stays(node), node));
        Self(order)
    }

    fn top(&self, node: u64) -> f64 {
        let row = self.0.iter().position(|&other| other == node);
        TOP + ROW * count(row.unwrap_or_default() as u64)
    }
}

fn background(svg: &mut String, plan: &Plan, rows: &Rows, scale: Scale) {
    let bottom = TOP + ROW * count(plan.nodes);
    let (cut, heal) = (scale.x(plan.times.cut), scale.x(plan.times.heal));
    let first = plan.cut_off.first().map_or(bottom, |&node| rows.top(node));
    put(
        svg,
        format_args!(
            "<rect class=\"cut\" x=\"{cut:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\"/>\n\
         <rect class=\"cut-rows\" x=\"{cut:.1}\" y=\"{first}\" width=\"{:.1}\" height=\"{:.1}\"><title>{} are cut off</title></rect>\n",
            heal - cut,
            bottom - TOP,
            heal - cut,
            bottom - first,
            list(&plan.cut_off),
        ),
    );
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
    let times = &plan.times;
    let captions = [
        (times.crash, "two crash", 0.0),
        (times.leave, "one leaves", 14.0),
        (times.down, "one restarts", 0.0),
        (times.cut, "cut off", 0.0),
        (times.heal, "healed", 0.0),
    ];
    for (time, caption, lower) in captions {
        let x = scale.x(time);
        put(
            svg,
            format_args!(
                "<line class=\"turn\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{bottom}\"/>\
             <text class=\"caption\" x=\"{x:.1}\" y=\"{:.1}\">{caption}</text>\n",
                TOP - 14.0 + lower,
                26.0 + lower,
            ),
        );
    }
}

fn row(svg: &mut String, plan: &Plan, node: u64, top: f64, history: &[Stretch], scale: Scale) {
    let part = if plan.crashing.contains(&node) {
        " (crashes)"
    } else if node == plan.leaving {
        " (leaves)"
    } else if node == plan.restarting {
        " (restarts)"
    } else if plan.is_cut_off(node) {
        " (cut off)"
    } else if node <= 2 {
        " (seed)"
    } else {
        ""
    };
    let base = top + 4.0 + BAR;
    put(
        svg,
        format_args!(
            "<g><text class=\"name\" x=\"{:.1}\" y=\"{:.1}\">node {node}{part}</text>\n",
            LEFT - 10.0,
            top + 4.0 + BAR - 3.0,
        ),
    );
    for stretch in history {
        // A little overlap, lest a seam shows between two stretches.
        let (x, until) = (scale.x(stretch.from), scale.x(stretch.until) + 0.4);
        let opinion = stretch.opinion;
        let others = opinion.others();
        if opinion.unaware < others {
            put(
                svg,
                format_args!(
                    "<g><title>node {node}, {:.2} s to {:.2} s: {} of {others} others think it alive, {} suspect it, {} failed, {} left</title>",
                    seconds(stretch.from),
                    seconds(stretch.until),
                    opinion.alive,
                    opinion.suspect,
                    opinion.failed,
                    opinion.left
                ),
            );
            let mut y = base;
            for (class, size) in opinion.parts().into_iter().filter(|&(_, size)| size > 0) {
                let height = BAR * count(size as u64) / count(others as u64);
                y -= height;
                put(
                    svg,
                    format_args!(
                        "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\"/>",
                        until - x
                    ),
                );
            }
            svg.push_str("</g>\n");
        }
        if stretch.up {
            put(
                svg,
                format_args!(
                    "<rect class=\"up\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"3\"/>\n",
                    base + 1.0,
                    until - x
                ),
            );
        }
    }
    svg.push_str("</g>\n");
}

/// Which node led, by its own word.
fn reigns(svg: &mut String, outcome: &Outcome, rows: &Rows, scale: Scale) {
    let mut leaders = Leaders::default();
    outcome.trace.iter().for_each(|mark| leaders.apply(mark));
    for reign in leaders.reigns() {
        let until = reign.until.unwrap_or(outcome.end);
        let (x, width) = (scale.x(reign.from), scale.x(until) - scale.x(reign.from));
        put(
            svg,
            format_args!(
                "<rect class=\"leads\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"3\"><title>node {} leads, {:.2} s to {:.2} s, by ballot {}.{}.{}</title></rect>\n",
                rows.top(reign.node.0),
                width.max(1.5),
                reign.node,
                seconds(reign.from),
                seconds(until),
                reign.ballot.epoch,
                reign.ballot.initiator.id,
                reign.ballot.step,
            ),
        );
    }
}

/// What happened to a node, where it happened.
fn symbol_of(svg: &mut String, mark: &Mark, rows: &Rows, scale: Scale) {
    let (node, name, title) = match mark {
        Mark::Fact(_, Fact::Crashed(node)) => (*node, "crash", "goes down"),
        Mark::Fact(_, Fact::Leaving(node)) => (*node, "bye", "says good-bye"),
        Mark::Observed(seen) if matches!(seen.event, NodeEvent::Membership(Event::Identity(_))) => {
            (seen.node, "join", "is in the mesh")
        }
        Mark::Observed(_) | Mark::Fact(_, Fact::Started(_) | Fact::Cut | Fact::Healed) => return,
    };
    symbol(svg, name, node, title, mark.at(), rows.top(node.0), scale);
}

/// When the others noticed that a node is gone: the first, and the last.
fn noticed(svg: &mut String, node: u64, top: f64, history: &[Stretch], scale: Scale) {
    let id = NodeId(node);
    let gone = |it: &&Stretch| it.opinion.failed + it.opinion.left > 0;
    let by_all = |it: &&Stretch| {
        let opinion = it.opinion;
        opinion.failed + opinion.left > 0 && opinion.alive + opinion.suspect == 0
    };
    // A good-bye is heard at once.
    if let Some(first) = history.iter().find(gone)
        && first.opinion.failed > 0
    {
        symbol(
            svg,
            "first",
            id,
            "is noticed by the first",
            first.from,
            top,
            scale,
        );
    }
    if let Some(all) = history.iter().find(by_all) {
        symbol(
            svg,
            "all",
            id,
            "is known by all to be gone",
            all.from,
            top,
            scale,
        );
    }
}

fn symbol(
    svg: &mut String,
    name: &str,
    node: NodeId,
    title: &str,
    at: Time,
    top: f64,
    scale: Scale,
) {
    let (x, y) = (scale.x(at), top + 4.0 + BAR / 2.0);
    put(
        svg,
        format_args!(
            "<g class=\"mark\" transform=\"translate({x:.1} {y:.1})\"><title>node {node} {title}, {:.2} s</title>{}</g>\n",
            seconds(at),
            shape(name),
        ),
    );
}

/// The outline of a symbol around the origin.
pub(crate) fn shape(name: &str) -> &'static str {
    match name {
        "join" => "<path d=\"M-5 4 L0 -5 L5 4 Z\"/>",
        "crash" => {
            "<path class=\"stroke halo\" d=\"M-5 -5 L5 5 M-5 5 L5 -5\"/><path class=\"stroke\" d=\"M-5 -5 L5 5 M-5 5 L5 -5\"/>"
        }
        "bye" => "<path d=\"M-5 -4 L0 5 L5 -4 Z\"/>",
        "first" => "<path class=\"hollow\" d=\"M0 -6 L6 0 L0 6 L-6 0 Z\"/>",
        "all" => "<path d=\"M0 -6 L6 0 L0 6 L-6 0 Z\"/>",
        _ => "",
    }
}

fn put(svg: &mut String, text: core::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _written = svg.write_fmt(text).is_ok();
}

fn count(number: u64) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}
