//! The page: every claim with its verdict and its plots, in one file that needs nothing else.

use core::fmt::Write;

use super::{Finding, Paper, Verdict};

/// The whole page.
#[must_use]
pub fn page(findings: &[Finding], seed: u64) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Selvedge: the papers' claims</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <h1>The papers' claims, run again</h1>\n\
         <p>Points are ours, with their spread; dashed lines are the papers' figures. Seed {seed}.</p>\n"
    );
    summary(&mut page, findings);
    for finding in findings {
        section(&mut page, finding);
    }
    page.push_str("</body>\n</html>\n");
    page
}

fn summary(page: &mut String, findings: &[Finding]) {
    page.push_str("<table>\n<thead><tr><th></th><th>claim</th><th>paper</th><th>ours</th><th>unit</th><th>verdict</th></tr></thead>\n<tbody>\n");
    for finding in findings {
        let claim = &finding.claim;
        let (paper, ours, verdict) = finding.judgement.as_ref().map_or_else(
            || (String::new(), String::new(), "not run".to_owned()),
            |it| {
                let (class, word) = word(it.verdict);
                (
                    text(&it.paper),
                    text(&it.ours),
                    format!("<span class=\"{class}\">{word}</span>"),
                )
            },
        );
        put(
            page,
            format_args!(
                "<tr><td><a href=\"#{id}\">{id}</a></td><td>{}</td><td>{paper}</td><td>{ours}</td><td>{}</td><td>{verdict}</td></tr>\n",
                text(claim.claim),
                text(claim.unit),
                id = claim.id,
            ),
        );
    }
    page.push_str("</tbody>\n</table>\n");
}

fn section(page: &mut String, finding: &Finding) {
    let claim = &finding.claim;
    put(
        page,
        format_args!(
            "<section id=\"{id}\">\n<h2>{id}: {}</h2>\n<p class=\"why\">{}</p>\n",
            text(claim.claim),
            text(claim.source),
            id = claim.id,
        ),
    );
    if let Some(judgement) = &finding.judgement {
        let (class, word) = word(judgement.verdict);
        put(
            page,
            format_args!(
                "<p>Paper {} {unit}, ours {} {unit}: <span class=\"{class}\">{word}</span>. {} ({} trials)</p>\n",
                text(&judgement.paper),
                text(&judgement.ours),
                text(&judgement.reason),
                judgement.trials,
                unit = text(claim.unit),
            ),
        );
        for plot in &judgement.plots {
            if let Some(svg) = plot.svg() {
                put(
                    page,
                    format_args!(
                        "<figure>\n<figcaption>{}{}</figcaption>\n<div class=\"plot\">{svg}</div>\n</figure>\n",
                        text(&plot.title),
                        beside(&plot.paper),
                    ),
                );
            }
        }
    }
    page.push_str("</section>\n");
}

/// The text beside a title when nothing of the paper is drawn.
fn beside(paper: &Paper) -> String {
    match paper {
        Paper::Figures(_) => String::new(),
        Paper::Words(words) => format!(
            "<span class=\"why\"> The paper gives no figure to draw: {}.</span>",
            text(words)
        ),
    }
}

fn word(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Better => ("better", "better"),
        Verdict::Holds => ("holds", "holds"),
        Verdict::Differs => ("differs", "differs"),
    }
}

fn put(page: &mut String, text: core::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _written = page.write_fmt(text).is_ok();
}

/// Escapes characters that have a meaning in HTML.
fn text(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Plots come with fixed colours for ink, grid and reference; these follow the reader's scheme.
const STYLE: &str = "\
:root { color-scheme: light dark; --ground: #fff; --ink: #1a1a1a; --soft: #6b6b6b; --grid: #e4e4e4; --good: #00664b; --same: #0a5a94; --bad: #a83b00; }
@media (prefers-color-scheme: dark) { :root { --ground: #16181b; --ink: #ececec; --soft: #a5a5a5; --grid: #2e3136; --good: #4fc79f; --same: #6db8ee; --bad: #ff9b5e; } }
body { margin: 2rem auto; max-width: 880px; padding: 0 1rem; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .3rem; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .2rem; }
p { margin: 0 0 .8rem; }
figure { margin: 0 0 1rem; }
figcaption { font-weight: 600; font-size: 14px; }
.plot { overflow-x: auto; }
.plot svg { max-width: 100%; height: auto; min-width: 560px; display: block; }
.plot [fill=\"#000000\"] { fill: var(--ink); }
.plot [stroke=\"#000000\"] { stroke: var(--ink); }
.plot [fill=\"#6B6B6B\"] { fill: var(--soft); }
.plot [stroke=\"#6B6B6B\"] { stroke: var(--soft); }
.plot [stroke=\"#E4E4E4\"] { stroke: var(--grid); }
table { border-collapse: collapse; width: 100%; margin-top: 1rem; font-size: 14px; }
th, td { text-align: left; padding: .35rem .7rem .35rem 0; border-bottom: 1px solid var(--grid); vertical-align: top; }
th { font-weight: 600; }
a { color: inherit; }
.why { color: var(--soft); font-size: 13px; }
.better { color: var(--good); font-weight: 600; } .holds { color: var(--same); font-weight: 600; } .differs { color: var(--bad); font-weight: 700; }
";
