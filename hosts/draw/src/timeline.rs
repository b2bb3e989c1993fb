//! Rows, and time to the right.

use maud::{Markup, html};

use crate::{Px, Shape};

/// A picture with a row for each thing and time to the right, in seconds. Lengths are in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timeline {
    /// The width of the picture.
    pub width: f64,
    /// The space for names of rows.
    pub left: f64,
    /// The space above the rows.
    pub top: f64,
    /// The height of a row.
    pub row: f64,
    /// The number of rows.
    pub rows: usize,
    /// The last second that is drawn.
    pub end: f64,
}

/// The space to the right of the last second.
const RIGHT: f64 = 22.0;
/// The space below the rows.
const BELOW: f64 = 44.0;

impl Timeline {
    /// The place of a second.
    #[must_use]
    pub fn x(&self, at: f64) -> f64 {
        let share = (at / self.end.max(0.001)).min(1.0);
        self.left + share * (self.width - self.left - RIGHT)
    }

    /// The top of a row.
    #[must_use]
    pub fn top_of(&self, row: usize) -> f64 {
        self.top + self.row * row as f64
    }

    /// The bottom of the last row.
    #[must_use]
    pub fn bottom(&self) -> f64 {
        self.top_of(self.rows)
    }

    /// The picture around its marks.
    #[must_use]
    pub fn svg(&self, label: &str, marks: &Markup) -> Markup {
        let size = format!("0 0 {} {}", self.width, self.bottom() + BELOW);
        html! { svg viewBox=(size) role="img" aria-label=(label) { (marks) } }
    }

    /// The name of a row's content, with its base line at `y`.
    #[must_use]
    pub fn name(&self, y: f64, name: &str) -> Markup {
        html! { text.name x=(Px(self.left - 10.0)) y=(Px(y)) { (name) } }
    }

    /// Lines with their time since `origin`, some ten or twenty.
    #[must_use]
    pub fn grid(&self, origin: &str) -> Markup {
        let unit = match self.end {
            end if end < 60.0 => "seconds",
            end if end < 3_600.0 => "minutes and seconds",
            _ => "hours, minutes and seconds",
        };
        let bottom = self.bottom();
        let middle = f64::midpoint(self.left, self.width - RIGHT);
        let step = step(self.end);
        let ticks = (0..).map(|nth| nth * step);
        html! {
            @for at in ticks.take_while(|at| (*at as f64) <= self.end) {
                @let x = Px(self.x(at as f64));
                line.grid x1=(x) x2=(x) y1=(Px(self.top)) y2=(Px(bottom)) {}
                text.tick x=(x) y=(Px(bottom + 16.0)) { (self.tick(at)) }
            }
            text.tick x=(Px(middle)) y=(Px(bottom + 36.0)) { (unit) " since " (origin) }
        }
    }

    /// A moment that concerns all rows, with a caption above them, `lower` or not.
    #[must_use]
    pub fn turn(&self, at: f64, caption: &str, lower: bool) -> Markup {
        let x = self.x(at);
        let y = self.top - if lower { 6.0 } else { 20.0 };
        // The caption of a late moment is to the left of its line.
        let class = if x + 50.0 > self.width {
            "name"
        } else {
            "caption"
        };
        html! {
            line.turn x1=(Px(x)) x2=(Px(x)) y1=(Px(y + 6.0)) y2=(Px(self.bottom())) {}
            text class=(class) x=(Px(x)) y=(Px(y)) { (caption) }
        }
    }

    /// A sign at a moment, around `y`.
    #[must_use]
    pub fn sign(&self, class: &str, at: f64, y: f64, shape: Shape, title: &str) -> Markup {
        let place = format!("translate({:.1} {y:.1})", self.x(at));
        html! { g class={ "sign " (class) } transform=(place) { title { (title) } (shape) } }
    }

    fn tick(&self, at: u64) -> String {
        match at {
            _ if self.end < 60.0 => at.to_string(),
            0..3_600 => format!("{}:{:02}", at / 60, at % 60),
            _ => format!("{}:{:02}:{:02}", at / 3_600, at / 60 % 60, at % 60),
        }
    }
}

/// Seconds between two lines of the grid.
fn step(end: f64) -> u64 {
    let steps = [
        1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 43_200, 86_400,
    ];
    let fits = |step: &u64| end / *step as f64 <= 20.0;
    steps.into_iter().find(fits).unwrap_or(604_800)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(end: f64) -> Timeline {
        Timeline {
            width: 1_000.0,
            left: 100.0,
            top: 40.0,
            row: 20.0,
            rows: 3,
            end,
        }
    }

    #[test]
    fn nothing_is_drawn_beside_the_picture() {
        let short = timeline(10.0);
        assert_eq!((short.x(0.0), short.x(10.0)), (100.0, 978.0));
        assert_eq!(short.x(11.0), 978.0);
        assert_eq!(timeline(0.0).x(0.0), 100.0);
        assert_eq!((short.top_of(1), short.bottom()), (60.0, 100.0));
    }

    #[test]
    fn a_grid_has_few_lines_and_says_its_unit() {
        for (end, lines, texts) in [
            (17.0, 18, [">17<", "seconds since the start"]),
            (
                1_500.0,
                13,
                [">24:00<", "minutes and seconds since the start"],
            ),
            (
                7_200.0,
                13,
                [">1:50:00<", "hours, minutes and seconds since the start"],
            ),
            (0.0, 1, [">0<", "seconds since the start"]),
        ] {
            let grid = timeline(end).grid("the start").into_string();
            assert_eq!(grid.matches("<line").count(), lines, "{end}");
            for text in texts {
                assert!(grid.contains(text), "{end}: {text} in {grid}");
            }
        }
    }
}
