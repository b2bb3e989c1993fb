//! The timeline: a row for every node, time to the right.

use maud::{Markup, html};
use selvedge_core::{NodeId, Time};
use selvedge_draw::{Px, Shape, Timeline};
use selvedge_membership::Event;
use selvedge_udp::NodeEvent;

use super::history::{Opinion, Stretch, histories};
use super::leaders::{Leaders, Reign};
use super::narrator::list;
use super::plan::{Plan, seconds};
use super::run::Outcome;
use super::trace::{Fact, Mark};

/// The height of a bar that all others agree on.
const BAR: f64 = 14.0;
/// The number of steps in which time is drawn: two pixels each.
const STEPS: u64 = 500;

/// Draws the run. Colours come from the page's style sheet.
#[must_use]
pub fn timeline(outcome: &Outcome) -> String {
    let plan = &outcome.plan;
    // Nodes with many events are next to each other.
    let mut order: Vec<u64> = (1..=plan.nodes).collect();
    order.sort_by_key(|&node| (plan.is_cut_off(node), !plan.stays(node), node));
    let time = Timeline {
        width: 1_180.0,
        left: 150.0,
        top: 46.0,
        row: 26.0,
        rows: order.len(),
        end: seconds(outcome.end),
    };
    let sketch = Sketch { plan, order, time };
    let histories = histories(&outcome.trace, plan.nodes, outcome.end, STEPS);
    let ended = plan.crashing.into_iter().chain([plan.leaving]);
    let mut leaders = Leaders::default();
    outcome.trace.iter().for_each(|mark| leaders.apply(mark));
    let marks = html! {
        (sketch.cut())
        (time.grid("the first node started"))
        (sketch.turns())
        @for (history, node) in histories.iter().zip(1..) { (sketch.row(node, history)) }
        @for reign in leaders.reigns() { (sketch.reign(reign, outcome.end)) }
        @for mark in outcome.trace.iter() { (sketch.happened(mark)) }
        @for (history, node) in histories.iter().zip(1..) {
            @if ended.clone().any(|it| it == node) { (sketch.noticed(node, history)) }
        }
    };
    time.svg("Timeline of the run", &marks).into_string()
}

struct Sketch<'a> {
    plan: &'a Plan,
    /// The order of the nodes' rows.
    order: Vec<u64>,
    time: Timeline,
}

impl Sketch<'_> {
    fn x(&self, at: Time) -> f64 {
        self.time.x(seconds(at))
    }

    fn top(&self, node: u64) -> f64 {
        let row = self.order.iter().position(|&other| other == node);
        self.time.top_of(row.unwrap_or_default())
    }

    fn cut(&self) -> Markup {
        let plan = self.plan;
        let (x, until) = (self.x(plan.times.cut), self.x(plan.times.heal));
        let (x, width) = (Px(x), Px(until - x));
        let (top, bottom) = (self.time.top, self.time.bottom());
        let first = plan.cut_off.first().map_or(bottom, |&node| self.top(node));
        html! {
            rect.cut x=(x) y=(Px(top)) width=(width) height=(Px(bottom - top)) {}
            rect.cut-rows x=(x) y=(Px(first)) width=(width) height=(Px(bottom - first)) {
                title { (list(&plan.cut_off)) " are cut off" }
            }
        }
    }

    fn turns(&self) -> Markup {
        let times = &self.plan.times;
        let captions = [
            (times.crash, "two crash", false),
            (times.leave, "one leaves", true),
            (times.down, "one restarts", false),
            (times.cut, "cut off", false),
            (times.heal, "healed", false),
        ];
        html! { @for (at, caption, lower) in captions { (self.time.turn(seconds(at), caption, lower)) } }
    }

    fn row(&self, node: u64, history: &[Stretch]) -> Markup {
        let plan = self.plan;
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
        let base = self.top(node) + 4.0 + BAR;
        html! {
            (self.time.name(base - 3.0, &format!("node {node}{part}")))
            @for it in history {
                // A little overlap, lest a seam shows between two stretches.
                @let (x, width) = (self.x(it.from), self.x(it.until) + 0.4 - self.x(it.from));
                @if it.opinion.unaware < it.opinion.others() {
                    g { title { (title(node, it)) } (bars(it.opinion, x, width, base)) }
                }
                @if it.up { rect.up x=(Px(x)) y=(Px(base + 1.0)) width=(Px(width)) height="3" {} }
            }
        }
    }

    /// A reign of a node, according to its own events.
    fn reign(&self, reign: &Reign, end: Time) -> Markup {
        let until = reign.until.unwrap_or(end);
        let (x, ballot) = (self.x(reign.from), &reign.ballot);
        let width = (self.x(until) - x).max(1.5);
        let (from, until) = (seconds(reign.from), seconds(until));
        let title = format!(
            "node {} leads, {from:.2} s to {until:.2} s, by ballot {}.{}.{}",
            reign.node, ballot.epoch, ballot.initiator.id, ballot.step,
        );
        html! {
            rect.leads x=(Px(x)) y=(Px(self.top(reign.node.0))) width=(Px(width)) height="3" { title { (title) } }
        }
    }

    /// A sign for an event of a node.
    fn happened(&self, mark: &Mark) -> Markup {
        let (node, shape, what) = match mark {
            Mark::Fact(_, Fact::Crashed(node)) => (*node, Shape::Cross, "goes down"),
            Mark::Fact(_, Fact::Leaving(node)) => (*node, Shape::Down, "leaves"),
            Mark::Observed(seen)
                if matches!(seen.event, NodeEvent::Membership(Event::Identified(_))) =>
            {
                (seen.node, Shape::Up, "is in the mesh")
            }
            Mark::Observed(_) | Mark::Fact(_, Fact::Started(_) | Fact::Cut | Fact::Healed) => {
                return Markup::default();
            }
        };
        self.sign(node.0, mark.at(), shape, what)
    }

    /// Signs for the first and the last node to notice that a node has failed or left.
    fn noticed(&self, node: u64, history: &[Stretch]) -> Markup {
        let ended = |it: &&Stretch| it.opinion.failed + it.opinion.left > 0;
        let by_all = |it: &&Stretch| {
            let opinion = it.opinion;
            opinion.failed + opinion.left > 0 && opinion.alive + opinion.suspect == 0
        };
        // All nodes learn of a leave at once.
        let first = history.iter().find(ended);
        let first = first.filter(|it| it.opinion.failed > 0);
        html! {
            @if let Some(it) = first { (self.sign(node, it.from, Shape::Hollow, "is first noticed to be down")) }
            @if let Some(it) = history.iter().find(by_all) {
                (self.sign(node, it.from, Shape::Diamond, "is known by all to be down"))
            }
        }
    }

    fn sign(&self, node: u64, at: Time, shape: Shape, what: &str) -> Markup {
        let at = seconds(at);
        let title = format!("node {} {what}, {at:.2} s", NodeId(node));
        let y = self.top(node) + 4.0 + BAR / 2.0;
        self.time.sign("", at, y, shape, &title)
    }
}

fn title(node: u64, it: &Stretch) -> String {
    let Opinion {
        alive,
        suspect,
        failed,
        left,
        ..
    } = it.opinion;
    let (from, until, others) = (seconds(it.from), seconds(it.until), it.opinion.others());
    format!(
        "node {node}, {from:.2} s to {until:.2} s: {alive} of {others} others list it as alive, {suspect} suspect it, {failed} list it as failed, {left} as left"
    )
}

/// The statuses that other nodes give a node, as stacked bars.
fn bars(opinion: Opinion, x: f64, width: f64, base: f64) -> Markup {
    let others = opinion.others() as f64;
    let mut y = base;
    let parts = opinion
        .parts()
        .into_iter()
        .filter(|&(_, size)| size > 0)
        .map(|(class, size)| {
            let height = BAR * size as f64 / others;
            y -= height;
            (class, y, height)
        });
    html! {
        @for (class, y, height) in parts {
            rect class=(class) x=(Px(x)) y=(Px(y)) width=(Px(width)) height=(Px(height)) {}
        }
    }
}
