//! The page: timeline, legend and table in one file that needs nothing else.

use core::fmt::Write;

use super::promises::Promise;
use super::run::Outcome;
use super::svg::{shape, timeline};
use super::table::{UNJUDGED, limit, seen};

/// The page of the mesh.
#[must_use]
pub fn page(outcome: &Outcome, table: &[Promise], seed: u64) -> String {
    let plan = &outcome.plan;
    let (nodes, period) = (plan.nodes, plan.config.period);
    let (sent, bytes) = (outcome.frames(), outcome.bytes_a_node_and_second());
    let mut legend = String::new();
    self::legend(&mut legend);
    sheet(&Sheet {
        title: &format!("A mesh of {nodes} nodes"),
        story: &format!(
            "{nodes} real nodes with a socket each, in real time, on one machine; 5 of 100 packets got lost from start to end. \
             {} Seed {seed}, period {period:?}, {sent} frames, {bytes:.0} bytes a node and second.",
            verdict(table),
        ),
        style: "",
        legend: &legend,
        picture: &timeline(outcome),
        table,
    })
}

/// The parts of a page.
pub(super) struct Sheet<'a> {
    pub(super) title: &'a str,
    pub(super) story: &'a str,
    /// Style of its own, beside that of all pages.
    pub(super) style: &'a str,
    pub(super) legend: &'a str,
    pub(super) picture: &'a str,
    pub(super) table: &'a [Promise],
}

/// The whole page.
pub(super) fn sheet(sheet: &Sheet<'_>) -> String {
    let Sheet {
        title,
        story,
        style,
        legend,
        picture,
        ..
    } = sheet;
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Selvedge: {title}</title>\n<style>\n{STYLE}{style}</style>\n</head>\n<body>\n\
         <h1>{title}</h1>\n<p>{story}</p>\n{legend}<div class=\"scroll\">\n{picture}</div>\n",
    );
    self::table(&mut page, sheet.table);
    page.push_str("</body>\n</html>\n");
    page
}

/// Whether the promises of a table held, in words.
pub(super) fn verdict(table: &[Promise]) -> &'static str {
    let is_broken = table.iter().any(Promise::is_broken);
    match (is_broken, table.iter().all(|it| it.judged)) {
        (false, true) => "Every promise held.",
        (false, false) => "Every promise held that the machine was fast enough for.",
        (true, _) => "Not every promise held.",
    }
}

fn legend(page: &mut String) {
    page.push_str("<ul class=\"legend\">\n");
    for (class, meaning) in [
        ("alive", "others list it as alive"),
        ("suspect", "suspect it"),
        ("failed", "take it for failed"),
        ("left", "know that it left"),
    ] {
        put(
            page,
            format_args!(
                "<li><svg viewBox=\"0 0 16 14\"><rect class=\"{class}\" width=\"16\" height=\"14\"/></svg>{meaning}</li>\n"
            ),
        );
    }
    page.push_str("<li><svg viewBox=\"0 0 16 14\"><rect class=\"up\" y=\"6\" width=\"16\" height=\"3\"/></svg>it is really up</li>\n");
    page.push_str("<li><svg viewBox=\"0 0 16 14\"><rect class=\"leads\" y=\"6\" width=\"16\" height=\"3\"/></svg>it leads, by its own word</li>\n");
    for (symbol, meaning) in [
        ("join", "joined"),
        ("crash", "down"),
        ("bye", "good-bye"),
        ("first", "the first notices"),
        ("all", "all know"),
    ] {
        put(
            page,
            format_args!(
                "<li><svg viewBox=\"-8 -7 16 14\"><g class=\"mark\">{}</g></svg>{meaning}</li>\n",
                shape(symbol)
            ),
        );
    }
    page.push_str("</ul>\n");
}

fn table(page: &mut String, promises: &[Promise]) {
    page.push_str("<table>\n<thead><tr><th>promise</th><th>at most</th><th>seen</th><th>held</th><th>where the limit comes from</th></tr></thead>\n<tbody>\n");
    for it in promises {
        let (class, held) = match (it.held, it.judged) {
            (true, _) => ("yes", "yes"),
            (false, true) => ("no", "NO"),
            (false, false) => ("", UNJUDGED),
        };
        put(
            page,
            format_args!(
                "<tr><td>{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"{class}\">{held}</td><td class=\"why\">{}</td></tr>\n",
                it.promise,
                limit(it),
                seen(it),
                it.why,
            ),
        );
    }
    page.push_str("</tbody>\n</table>\n");
}

fn put(page: &mut String, text: core::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _written = page.write_fmt(text).is_ok();
}

/// Colours after Okabe and Ito, which people with any kind of colour vision can tell apart.
const STYLE: &str = "\
:root { color-scheme: light dark; --ground: #fff; --ink: #1a1a1a; --soft: #6b6b6b; --grid: #e4e4e4;
  --alive: #56b4e9; --suspect: #f0e442; --failed: #d55e00; --left: #a9a9a9; --cut: #cc79a7; --leads: #009e73; --good: #00664b; --bad: #a83b00; }
@media (prefers-color-scheme: dark) { :root { --ground: #16181b; --ink: #ececec; --soft: #a5a5a5; --grid: #2e3136;
  --alive: #2f7fb5; --suspect: #d8c61c; --failed: #e0701a; --left: #777; --cut: #cc79a7; --leads: #2fc79a; --good: #4fc79f; --bad: #ff9b5e; } }
body { margin: 2rem auto; max-width: 1240px; padding: 0 1rem; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .3rem; }
p { margin: 0 0 1rem; }
.scroll { overflow-x: auto; }
.scroll > svg { width: 100%; min-width: 860px; height: auto; display: block; }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
.name { text-anchor: end; }
.tick, .axis, .caption { text-anchor: middle; }
svg .tick, svg .axis { fill: var(--soft); }
.grid { stroke: var(--grid); }
.turn { stroke: var(--soft); stroke-dasharray: 3 3; }
.alive { fill: var(--alive); } .suspect { fill: var(--suspect); } .failed { fill: var(--failed); } .left { fill: var(--left); }
.up { fill: var(--ink); } .leads { fill: var(--leads); } .scroll rect { shape-rendering: crispEdges; }
.cut { fill: var(--cut); opacity: .10; } .cut-rows { fill: var(--cut); opacity: .22; }
.mark path { fill: var(--ink); stroke: var(--ground); stroke-width: 1.2; }
.mark .hollow { fill: var(--ground); stroke: var(--ink); stroke-width: 1.6; }
.mark .stroke { fill: none; stroke: var(--ink); stroke-width: 2.4; } .mark .halo { stroke: var(--ground); stroke-width: 5; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; padding: 0; margin: 0 0 .8rem; font-size: 13px; }
.legend svg { width: 16px; height: 14px; margin-right: .4rem; vertical-align: -2px; }
table { border-collapse: collapse; width: 100%; margin-top: 1.5rem; font-size: 14px; }
th, td { text-align: left; padding: .35rem .7rem .35rem 0; border-bottom: 1px solid var(--grid); vertical-align: top; }
th { font-weight: 600; }
.number { white-space: nowrap; font-variant-numeric: tabular-nums; }
.why { color: var(--soft); font-size: 13px; }
.yes { color: var(--good); font-weight: 600; } .no { color: var(--bad); font-weight: 700; }
";
