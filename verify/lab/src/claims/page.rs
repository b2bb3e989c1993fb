//! The page: every claim with its verdict and its plots.

use maud::{Markup, PreEscaped, html};

use super::{Finding, Paper, Plot, Verdict};

/// The whole page.
#[must_use]
pub fn page(findings: &[Finding], seed: u64) -> String {
    let body = html! {
        p { "Points are ours, with their spread; dashed lines are the papers' figures. Seed " (seed) "." }
        table {
            thead {
                tr { th {} th { "claim" } th { "paper" } th { "ours" } th { "unit" } th { "verdict" } }
            }
            tbody { @for finding in findings { (row(finding)) } }
        }
        @for finding in findings { (section(finding)) }
    };
    selvedge_draw::page("The papers' claims, run again", STYLE, &body)
}

fn row(finding: &Finding) -> Markup {
    let (claim, judgement) = (&finding.claim, finding.judgement.as_ref());
    html! {
        tr {
            td { a href={ "#" (claim.id) } { (claim.id) } }
            td { (claim.claim) }
            td { @if let Some(it) = judgement { (it.paper) } }
            td { @if let Some(it) = judgement { (it.ours) } }
            td { (claim.unit) }
            td { @if let Some(it) = judgement { (word(it.verdict)) } @else { "not run" } }
        }
    }
}

fn section(finding: &Finding) -> Markup {
    let claim = &finding.claim;
    html! {
        section id=(claim.id) {
            h2 { (claim.id) ": " (claim.claim) }
            p.why { (claim.source) }
            @if let Some(it) = &finding.judgement {
                p {
                    "Paper " (it.paper) " " (claim.unit) ", ours " (it.ours) " " (claim.unit) ": "
                    (word(it.verdict)) ". " (it.reason) " (" (it.trials) " trials)"
                }
                @for plot in &it.plots { (figure(plot)) }
            }
        }
    }
}

fn figure(plot: &Plot) -> Markup {
    let Some(svg) = plot.svg() else {
        return Markup::default();
    };
    html! {
        figure {
            figcaption {
                (plot.title)
                @if let Paper::Words(words) = &plot.paper {
                    span.why { " The paper gives no figure to draw: " (words) "." }
                }
            }
            div.plot { (PreEscaped(svg)) }
        }
    }
}

fn word(verdict: Verdict) -> Markup {
    let word = match verdict {
        Verdict::Better => "better",
        Verdict::Holds => "holds",
        Verdict::Differs => "differs",
    };
    html! { span class=(word) { (word) } }
}

/// Plots come with fixed colours for ink, grid and reference; these follow the reader's scheme.
const STYLE: &str = "\
:root { --same: #0a5a94; }
@media (prefers-color-scheme: dark) { :root { --same: #6db8ee; } }
body { max-width: 880px; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .2rem; }
figure { margin: 0 0 1rem; }
figcaption { font-weight: 600; font-size: 14px; }
.plot { overflow-x: auto; }
.plot svg { max-width: 100%; height: auto; min-width: 560px; display: block; }
.plot [fill=\"#000000\"] { fill: var(--ink); }
.plot [stroke=\"#000000\"] { stroke: var(--ink); }
.plot [fill=\"#6B6B6B\"] { fill: var(--soft); }
.plot [stroke=\"#6B6B6B\"] { stroke: var(--soft); }
.plot [stroke=\"#E4E4E4\"] { stroke: var(--grid); }
a { color: inherit; }
.better { color: var(--good); font-weight: 600; } .holds { color: var(--same); font-weight: 600; } .differs { color: var(--bad); font-weight: 700; }
";
