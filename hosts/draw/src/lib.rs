//! Pages and timelines of the programs: HTML and SVG in one file that needs nothing else.
//!
//! A program writes its own marks with [`maud`], which escapes all text, and takes the frame from here:
//! the page with its colours for light and dark, the [`Timeline`] with its grid, a [`legend`], and
//! signs of one [`Shape`] each.

#![forbid(unsafe_code)]
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]

mod shape;
mod timeline;

use core::fmt::Write;

use maud::{DOCTYPE, Markup, PreEscaped, Render, html};

pub use shape::Shape;
pub use timeline::Timeline;

/// The whole page. `style` comes behind the style of all pages.
#[must_use]
pub fn page(title: &str, style: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Selvedge: " (title) }
                style { (PreEscaped(STYLE)) (PreEscaped(style)) }
            }
            body { h1 { (title) } (body) }
        }
    };
    page.into_string() + "\n"
}

/// A picture that stands alone, such as in a README: an SVG ([`Timeline::svg`]) with its style and its
/// ground. `style` comes behind the style of all pages.
#[must_use]
pub fn picture(style: &str, svg: &str) -> String {
    let (open, marks) = svg.split_once('>').unwrap_or((svg, ""));
    format!(
        "{open} xmlns=\"http://www.w3.org/2000/svg\"><style>\n{STYLE}svg {{ font-family: system-ui, sans-serif; }}\n{style}</style>\
         <rect width=\"100%\" height=\"100%\" style=\"fill: var(--ground)\"/>{marks}\n"
    )
}

/// A list of samples, each drawn around the origin, 26 wide and 16 high, and their meanings.
#[must_use]
pub fn legend<T: Render>(samples: impl IntoIterator<Item = (Markup, T)>) -> Markup {
    html! {
        ul.legend {
            @for (sample, meaning) in samples {
                li { svg viewBox="-13 -8 26 16" { (sample) } (meaning) }
            }
        }
    }
}

/// A sample for [`legend`]: a bar of the given height.
#[must_use]
pub fn sample(class: &str, height: u8) -> Markup {
    let height = f64::from(height);
    html! { rect class=(class) x="-12" y=(Px(-height / 2.0)) width="24" height=(Px(height)) {} }
}

/// A number of pixels, written with one decimal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Px(pub f64);

impl Render for Px {
    fn render_to(&self, out: &mut String) {
        // Writing to a string does not fail.
        let _written = write!(out, "{:.1}", self.0).is_ok();
    }
}

/// Colours after Okabe and Ito, which people with any kind of colour vision can distinguish.
const STYLE: &str = "\
:root { color-scheme: light dark; --ground: #fff; --ink: #1a1a1a; --soft: #6b6b6b; --grid: #e4e4e4; --good: #00664b; --bad: #a83b00; }
@media (prefers-color-scheme: dark) { :root { --ground: #16181b; --ink: #ececec; --soft: #a5a5a5; --grid: #2e3136; --good: #4fc79f; --bad: #ff9b5e; } }
body { margin: 2rem auto; max-width: 1300px; padding: 0 1rem; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .3rem; }
p { margin: 0 0 .8rem; }
.scroll { overflow-x: auto; }
.scroll > svg { width: 100%; min-width: 860px; height: auto; display: block; }
.scroll text { fill: var(--ink); font: 12px system-ui, sans-serif; }
.name { text-anchor: end; } .tick, .caption { text-anchor: middle; } .scroll .tick { fill: var(--soft); }
.grid { stroke: var(--grid); } .turn { stroke: var(--soft); stroke-dasharray: 3 3; }
.sign .solid { fill: var(--ink); stroke: var(--ground); stroke-width: 1.2; }
.sign .hollow { fill: var(--ground); stroke: var(--ink); stroke-width: 1.6; }
.sign .stroke { fill: none; stroke: var(--ink); stroke-width: 2.4; } .sign .halo { fill: none; stroke: var(--ground); stroke-width: 5; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; padding: 0; margin: 0 0 .8rem; font-size: 13px; }
.legend svg { width: 26px; height: 16px; margin-right: .4rem; vertical-align: -3px; }
table { border-collapse: collapse; width: 100%; margin-top: 1.5rem; font-size: 14px; }
th, td { text-align: left; padding: .3rem .7rem .3rem 0; border-bottom: 1px solid var(--grid); vertical-align: top; }
th { font-weight: 600; }
.number { white-space: nowrap; font-variant-numeric: tabular-nums; }
.why { color: var(--soft); font-size: 13px; }
.yes { color: var(--good); font-weight: 600; } .no { color: var(--bad); font-weight: 700; }
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_style_is_not() {
        let body = html! { p { "a < b & \"c\"" } };
        let page = page("<title>", "a > b { }\n", &body);
        assert!(page.contains("<h1>&lt;title&gt;</h1><p>a &lt; b &amp; &quot;c&quot;</p>"));
        assert!(page.contains("\na > b { }\n</style>"));
    }

    #[test]
    fn a_picture_has_its_style_within() {
        let picture = picture("a { }", "<svg viewBox=\"0 0 1 1\"><g></g></svg>");
        let (head, tail) = picture.split_once("<style>").unwrap();
        assert_eq!(
            head,
            "<svg viewBox=\"0 0 1 1\" xmlns=\"http://www.w3.org/2000/svg\">"
        );
        assert!(tail.contains("a { }</style><rect ") && tail.ends_with("/><g></g></svg>\n"));
    }
}
