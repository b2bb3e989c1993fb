//! The page around the picture, in one file that needs nothing else.

use super::picture::{colour_of, picture, put, shape, text};
use super::report::{Report, seconds};

/// The whole page.
#[must_use]
pub fn page(report: &Report, title: &str, seed: u64) -> String {
    let title = text(title);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Selvedge: {title}</title>\n<style>\n{PAGE}{}</style>\n</head>\n<body>\n<h1>{title}</h1>\n",
        style(report),
    );
    page.push_str(&section(report, seed));
    page.push_str("</body>\n</html>\n");
    page
}

/// What was run, its result, the picture, and a line for each routine.
fn section(report: &Report, seed: u64) -> String {
    let routines = report.routines();
    let count = |outcome: &str| routines.iter().filter(|it| it.outcome == outcome).count();
    let config = &report.plan.config;
    let mut part = format!(
        "<p>{} routines on {} devices, {:?} visibility, {:?} scheduler: {} done, {} undone; over after {:.0} s. {} Seed {seed}.</p>\n",
        routines.len(),
        report.plan.home.catalogue.len(),
        config.visibility,
        config.scheduler,
        count("done"),
        count("undone"),
        seconds(report.trace.end),
        match report.explained {
            Some(true) =>
                "The end is as if the routines had run one by one, in the order that the hub told.",
            Some(false) => "The end is <strong>not</strong> as if the routines had run one by one.",
            None => "No serial order was told that could be compared with the end.",
        },
    );
    legend(&mut part);
    part.push_str("<div class=\"home\">\n<div class=\"wide\">\n");
    part.push_str(&picture(report));
    part.push_str("</div>\n");
    part.push_str(
        "<table>\n<thead><tr><th></th><th>routine</th><th>came</th><th>started</th><th>ended</th>\
         <th>outcome</th><th>in the serial order</th><th>why</th></tr></thead>\n<tbody>\n",
    );
    let shown = |time: Option<f64>| time.map_or_else(|| "-".into(), |it| format!("{it:.1} s"));
    for (it, id) in routines.iter().zip(report.trace.occurrences.keys()) {
        let class = if it.outcome == "done" { "yes" } else { "no" };
        put(
            &mut part,
            format_args!(
                "<tr class=\"it r{number}\"><td class=\"key\"><span style=\"background:{}\">{number}</span></td><td>{}</td><td class=\"number\">{:.1} s</td>\
                 <td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"{class}\">{}</td><td class=\"number\">{}</td><td class=\"why\">{}</td></tr>\n",
                colour_of(*id),
                text(&it.name),
                it.arrived,
                shown(it.started),
                shown(it.ended),
                it.outcome,
                it.order.map_or_else(|| "-".into(), |it| it.to_string()),
                text(&it.why),
                number = it.number,
            ),
        );
    }
    part.push_str("</tbody>\n</table>\n</div>\n");
    part
}

fn legend(page: &mut String) {
    page.push_str("<ul class=\"home-legend\">\n");
    for (drawing, meaning) in [
        (
            "<rect class=\"sample\" x=\"-12\" y=\"-6\" width=\"24\" height=\"12\"/>",
            "has the device, in its routine's colour and with its number",
        ),
        (
            "<line class=\"sample wait\" x1=\"-12\" x2=\"12\" y1=\"0\" y2=\"0\"/>",
            "waits for it",
        ),
        (
            "<rect class=\"sample kept\" x=\"-12\" y=\"-2\" width=\"24\" height=\"4\"/>",
            "keeps it between two commands",
        ),
    ] {
        put(
            page,
            format_args!("<li><svg viewBox=\"-13 -8 26 16\">{drawing}</svg>{meaning}</li>\n"),
        );
    }
    for (name, class, meaning) in [
        ("post", "sign", "lent by one that is not finished"),
        ("pre", "sign", "goes before one that has started"),
        ("abort", "sign aborted", "a routine is undone, here is why"),
        ("back", "sign back", "the device is brought back"),
        ("failed", "sign", "fails"),
        ("restarted", "sign", "restarts"),
    ] {
        put(
            page,
            format_args!(
                "<li><svg viewBox=\"-13 -8 26 16\"><g class=\"{class}\">{}</g></svg>{meaning}</li>\n",
                shape(name)
            ),
        );
    }
    page.push_str("</ul>\n<p class=\"hint\">Point at a bar or a line of the table to see one routine alone.</p>\n");
}

/// The style of [`section`]; it knows the numbers of this report's routines.
fn style(report: &Report) -> String {
    let mut style = STYLE.to_owned();
    for id in report.trace.occurrences.keys() {
        put(
            &mut style,
            format_args!(
                ".home:has(.r{0}:hover) .it:not(.r{0}) {{ opacity: .13; }} .home:has(.r{0}:hover) .way.r{0} {{ opacity: 1; }}\n",
                id.0
            ),
        );
    }
    style
}

const PAGE: &str = "\
:root { color-scheme: light dark; --ground: #fff; --ink: #1a1a1a; --soft: #6b6b6b; --grid: #e4e4e4; --good: #00664b; --bad: #a83b00; }
@media (prefers-color-scheme: dark) { :root { --ground: #16181b; --ink: #ececec; --soft: #a5a5a5; --grid: #2e3136; --good: #4fc79f; --bad: #ff9b5e; } }
body { margin: 2rem auto; max-width: 1300px; padding: 0 1rem; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .3rem; }
p { margin: 0 0 .8rem; }
table { border-collapse: collapse; width: 100%; margin-top: 1.5rem; font-size: 14px; }
th, td { text-align: left; padding: .25rem .7rem .25rem 0; border-bottom: 1px solid var(--grid); vertical-align: top; }
th { font-weight: 600; }
.number { white-space: nowrap; font-variant-numeric: tabular-nums; }
.why { color: var(--soft); font-size: 13px; }
.yes { color: var(--good); font-weight: 600; } .no { color: var(--bad); font-weight: 700; }
";

/// It takes colours from the page's variables.
const STYLE: &str = "\
.home { --row: #f6f6f7; --mark: #a83b00; }
@media (prefers-color-scheme: dark) { .home { --row: #1c1f23; --mark: #ff9b5e; } }
.wide { overflow-x: auto; }
.wide > svg { width: 100%; min-width: 900px; height: auto; display: block; }
.home svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
.home svg .name { text-anchor: end; } .home svg .tick { text-anchor: middle; fill: var(--soft); }
.home .row { fill: var(--row); } .home .grid { stroke: var(--grid); }
.home svg .in { fill: #fff; font-size: 11px; pointer-events: none; } .home svg .by { font-size: 11px; pointer-events: none; }
.home .bar { stroke-width: 0; } .home .bar.failed { fill-opacity: .25; stroke-width: 1.4; stroke-dasharray: 3 2; }
.wait { stroke-width: 2; } .home .kept { opacity: .6; }
.home .down { fill: var(--mark); fill-opacity: .12; } .hatch { fill: none; stroke: var(--mark); stroke-width: 1.6; stroke-opacity: .6; }
.sign .lent { fill: var(--ground); stroke: var(--ink); stroke-width: 1.5; }
.sign .stroke { fill: none; stroke: #d02000; stroke-width: 2.4; } .sign .halo { stroke: var(--ground); stroke-width: 5; }
.sign .solid { fill: var(--ink); stroke: var(--ground); stroke-width: 1.2; } .sign.back .solid { fill: #d02000; }
.way { fill: none; stroke: var(--ink); stroke-width: 1.2; stroke-dasharray: 2 2; opacity: 0; pointer-events: none; }
.key span { display: inline-block; min-width: 1.6em; padding: 0 .2em; border-radius: 3px; color: #fff; text-align: center; font-size: 12px; }
.home-legend { list-style: none; display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; padding: 0; margin: 0 0 .3rem; font-size: 13px; }
.home-legend svg { width: 26px; height: 16px; margin-right: .4rem; vertical-align: -3px; }
.sample { fill: #0072b2; stroke: #0072b2; stroke-width: 0; } .sample.wait { stroke-width: 2; } .sample.kept { opacity: .6; }
.hint { color: var(--soft); font-size: 13px; margin: 0 0 .5rem; }
";
