//! The page of a demo: legend, timeline and table.

use maud::{Markup, PreEscaped, html};
use selvedge_draw::{Shape, legend, sample};

use super::promises::Promise;
use super::run::Outcome;
use super::svg::timeline;
use super::table::{UNJUDGED, limit, seen};

/// The page of the mesh.
#[must_use]
pub fn page(outcome: &Outcome, table: &[Promise], seed: u64) -> String {
    let plan = &outcome.plan;
    let (nodes, period) = (plan.nodes, plan.config.period);
    let (sent, bytes) = (outcome.frames(), outcome.bytes_a_node_and_second());
    let story = format!(
        "{nodes} real nodes with a socket each, in real time, on one machine; 5 of 100 packets got lost from start to end. \
         {} Seed {seed}, period {period:?}, {sent} frames, {bytes:.0} bytes a node and second.",
        verdict(table),
    );
    let legend = legend([
        (sample("alive", 14), "others list it as alive"),
        (sample("suspect", 14), "suspect it"),
        (sample("failed", 14), "list it as failed"),
        (sample("left", 14), "know that it left"),
        (sample("up", 3), "it is really up"),
        (sample("leads", 3), "it leads, by its own events"),
        (Shape::Up.sample(""), "joined"),
        (Shape::Cross.sample(""), "down"),
        (Shape::Down.sample(""), "leaves"),
        (Shape::Hollow.sample(""), "the first notices"),
        (Shape::Diamond.sample(""), "all know"),
    ]);
    let title = format!("A mesh of {nodes} nodes");
    sheet(&title, &story, STYLE, &legend, &timeline(outcome), table)
}

/// The timeline of the mesh alone, as an SVG.
#[must_use]
pub fn picture(outcome: &Outcome) -> String {
    selvedge_draw::picture(STYLE, &timeline(outcome))
}

/// A complete page.
pub(super) fn sheet(
    title: &str,
    story: &str,
    style: &str,
    legend: &Markup,
    picture: &str,
    table: &[Promise],
) -> String {
    let body = html! {
        p { (story) }
        (legend)
        div.scroll { (PreEscaped(picture)) }
        table {
            thead {
                tr { th { "promise" } th { "at most" } th { "seen" } th { "held" } th { "where the limit comes from" } }
            }
            tbody { @for it in table { (row(it)) } }
        }
    };
    selvedge_draw::page(title, style, &body)
}

fn row(it: &Promise) -> Markup {
    let (class, held) = match (it.held, it.judged) {
        (true, _) => ("yes", "yes"),
        (false, true) => ("no", "NO"),
        (false, false) => ("", UNJUDGED),
    };
    html! {
        tr {
            td { (it.promise) }
            td.number { (limit(it)) }
            td.number { (seen(it)) }
            td class=(class) { (held) }
            td.why { (it.why) }
        }
    }
}

/// The verdict on a table, in words.
pub(super) fn verdict(table: &[Promise]) -> &'static str {
    let is_broken = table.iter().any(Promise::is_broken);
    match (is_broken, table.iter().all(|it| it.judged)) {
        (false, true) => "Every promise held.",
        (false, false) => "Every promise held that the machine was fast enough for.",
        (true, _) => "Not every promise held.",
    }
}

const STYLE: &str = "\
:root { --alive: #56b4e9; --suspect: #f0e442; --failed: #d55e00; --left: #a9a9a9; --cut: #cc79a7; --leads: #009e73; }
@media (prefers-color-scheme: dark) { :root { --alive: #2f7fb5; --suspect: #d8c61c; --failed: #e0701a; --left: #777; --leads: #2fc79a; } }
.alive { fill: var(--alive); } .suspect { fill: var(--suspect); } .failed { fill: var(--failed); } .left { fill: var(--left); }
.up { fill: var(--ink); } .leads { fill: var(--leads); } .scroll rect { shape-rendering: crispEdges; }
.cut { fill: var(--cut); opacity: .10; } .cut-rows { fill: var(--cut); opacity: .22; }
";
