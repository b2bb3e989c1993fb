//! The page around the picture.

use maud::{Markup, PreEscaped, html};
use selvedge_draw::{Shape, legend, sample};
use selvedge_safehome::RoutineId;

use super::picture::{colour_of, picture};
use super::report::{Report, RoutineReport, seconds};

/// The whole page: the scenario, its result, the picture, and a line for each routine.
#[must_use]
pub fn page(report: &Report, title: &str, seed: u64) -> String {
    let routines = report.routines();
    let rows = routines.iter().zip(report.trace.occurrences.keys());
    let body = html! {
        p { (result(report, &routines)) " Seed " (seed) "." }
        div.home {
            (meanings())
            p.hint { "Point at a bar or a line of the table to see one routine alone." }
            div.scroll { (PreEscaped(picture(report))) }
            table {
                thead {
                    tr {
                        th {} th { "routine" } th { "came" } th { "started" } th { "ended" }
                        th { "outcome" } th { "in the serial order" } th { "why" }
                    }
                }
                tbody { @for (it, id) in rows { (row(it, *id)) } }
            }
        }
    };
    selvedge_draw::page(title, &style(report), &body)
}

fn result(report: &Report, routines: &[RoutineReport]) -> String {
    let count = |outcome: &str| routines.iter().filter(|it| it.outcome == outcome).count();
    let config = &report.plan.config;
    format!(
        "{} routines on {} devices, {:?} visibility, {:?} scheduler: {} done, {} undone; over after {:.0} s. {}",
        routines.len(),
        report.plan.home.catalogue.len(),
        config.visibility,
        config.scheduler,
        count("done"),
        count("undone"),
        seconds(report.trace.end),
        match report.explained {
            Some(true) =>
                "The end is as if the routines had run one by one, in the order that the hub reported.",
            Some(false) => "The end is NOT as if the routines had run one by one.",
            None => "The hub reported no serial order to compare with the end.",
        },
    )
}

fn row(it: &RoutineReport, id: RoutineId) -> Markup {
    let class = if it.outcome == "done" { "yes" } else { "no" };
    let shown = |time: Option<f64>| time.map_or_else(|| "-".into(), |it| format!("{it:.1} s"));
    html! {
        tr class={ "it r" (it.number) } {
            td.key { span style={ "background:" (colour_of(id)) } { (it.number) } }
            td { (it.name) }
            td.number { (shown(Some(it.arrived))) }
            td.number { (shown(it.started)) }
            td.number { (shown(it.ended)) }
            td class=(class) { (it.outcome) }
            td.number { (it.order.map_or_else(|| "-".into(), |it| it.to_string())) }
            td.why { (it.why) }
        }
    }
}

fn meanings() -> Markup {
    let wait = html! { line class="sample wait" x1="-12" x2="12" y1="0" y2="0" {} };
    let had = "has the device, in its routine's colour and with its number";
    legend([
        (sample("sample", 12), had),
        (wait, "waits for it"),
        (sample("sample kept", 4), "keeps it between two commands"),
        (
            Shape::Circle.sample(""),
            "lent by a routine that is not finished",
        ),
        (
            Shape::Hollow.sample(""),
            "goes before a routine that has started",
        ),
        (
            Shape::Cross.sample("aborted"),
            "a routine is undone, with the reason",
        ),
        (Shape::Back.sample("back"), "the device is restored"),
        (Shape::Down.sample(""), "fails"),
        (Shape::Up.sample(""), "restarts"),
    ])
}

/// The style of the page, with the numbers of this report's routines.
fn style(report: &Report) -> String {
    let routines = report.trace.occurrences.keys().map(|RoutineId(id)| {
        format!(
            ".home:has(.r{id}:hover) .it:not(.r{id}) {{ opacity: .13; }} .home:has(.r{id}:hover) .way.r{id} {{ opacity: 1; }}\n"
        )
    });
    STYLE.to_owned() + &routines.collect::<String>()
}

/// It takes colours from the page's variables.
const STYLE: &str = "\
.home { --row: #f6f6f7; --mark: #a83b00; }
@media (prefers-color-scheme: dark) { .home { --row: #1c1f23; --mark: #ff9b5e; } }
.home .row { fill: var(--row); }
.home svg .in { fill: #fff; font-size: 11px; pointer-events: none; } .home svg .by { font-size: 11px; pointer-events: none; }
.home .bar { stroke-width: 0; } .home .bar.failed { fill-opacity: .25; stroke-width: 1.4; stroke-dasharray: 3 2; }
.wait { stroke-width: 2; } .home .kept { opacity: .6; stroke-width: 0; }
.home .down { fill: var(--mark); fill-opacity: .12; } .hatch { fill: none; stroke: var(--mark); stroke-width: 1.6; stroke-opacity: .6; }
.home .sign .stroke { stroke: #d02000; } .sign.back .solid { fill: #d02000; }
.way { fill: none; stroke: var(--ink); stroke-width: 1.2; stroke-dasharray: 2 2; opacity: 0; pointer-events: none; }
.key span { display: inline-block; min-width: 1.6em; padding: 0 .2em; border-radius: 3px; color: #fff; text-align: center; font-size: 12px; }
.sample { fill: #0072b2; stroke: #0072b2; stroke-width: 0; } .sample.wait { stroke-width: 2; } .home .sample.kept { opacity: .6; }
.hint { color: var(--soft); font-size: 13px; margin: 0 0 .5rem; }
";
