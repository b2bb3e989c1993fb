//! A plot: points with their spread over one axis, and the paper's figures as reference.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::stats::{mean, quantile};

/// A plot of figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// The title.
    pub title: String,
    /// The axis to the right.
    pub x: Axis,
    /// The axis upwards, from 0.
    pub y: Axis,
    /// Our figures.
    pub lines: Vec<Line>,
    /// The paper's figures.
    pub paper: Paper,
}

/// The paper's statement about the plotted figures.
#[derive(Clone, Debug, PartialEq)]
pub enum Paper {
    /// Figures, which are drawn.
    Figures(Vec<Reference>),
    /// No figures to draw; the paper's words stand beside the title instead.
    Words(String),
}

/// An axis with its name, which includes the unit.
#[derive(Clone, Debug, PartialEq)]
pub enum Axis {
    /// Numbers.
    Plain(String),
    /// Numbers on a logarithmic scale; points are given as logarithms to base 2.
    Log2(String),
    /// Things with names, at 0, 1 and so on.
    Names(String, Vec<String>),
}

/// Points that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The name of the line.
    pub name: String,
    /// The points, in order.
    pub points: Vec<Point>,
}

/// A point of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The place on the axis to the right.
    pub x: f64,
    /// The mean, median or ratio.
    pub y: f64,
    /// The lower end of its spread.
    pub low: f64,
    /// The upper end of its spread.
    pub high: f64,
}

impl Line {
    /// The points that have a place: not the ones without a measurement.
    fn drawn(&self) -> impl Iterator<Item = &Point> {
        let is_drawn = |it: &&Point| {
            [it.x, it.y, it.low, it.high]
                .iter()
                .all(|it| it.is_finite())
        };
        self.points.iter().filter(is_drawn)
    }
}

impl Point {
    /// The mean with the quartiles as spread; `None` without values.
    pub(crate) fn of(x: f64, values: &[f64]) -> Option<Self> {
        Some(Self {
            x,
            y: mean(values)?,
            low: quantile(values, 0.25)?,
            high: quantile(values, 0.75)?,
        })
    }
}

/// A figure of the paper: a dashed line.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// The name of the figure.
    pub name: String,
    /// Its value.
    pub y: f64,
    /// The range in which it holds; all of the axis without.
    pub x: Option<(f64, f64)>,
}

impl Reference {
    /// A figure that holds on the whole axis.
    pub(crate) fn everywhere(name: impl Into<String>, y: f64) -> Self {
        let (name, x) = (name.into(), None);
        Self { name, y, x }
    }

    /// A figure that holds for the thing with this number.
    pub(crate) fn at(nth: u32, name: impl Into<String>, y: f64) -> Self {
        let nth = f64::from(nth);
        let (name, x) = (name.into(), Some((nth - 0.4, nth + 0.4)));
        Self { name, y, x }
    }
}

impl Paper {
    /// A statement of the paper without a figure.
    pub(crate) fn reports(words: impl Into<String>) -> Self {
        Self::Words(words.into())
    }

    /// A figure for each thing with a name.
    pub(crate) fn table(name: &str, figures: impl IntoIterator<Item = f64>) -> Self {
        let figures = (0..).zip(figures);
        Self::Figures(
            figures
                .map(|(nth, y)| Reference::at(nth, name, y))
                .collect(),
        )
    }

    /// The figures to draw.
    #[must_use]
    pub fn figures(&self) -> &[Reference] {
        match self {
            Self::Figures(figures) => figures,
            Self::Words(_) => &[],
        }
    }
}

/// A plot of some figures over things with names.
pub(crate) fn over<'a>(
    title: &str,
    x: (&str, &[String]),
    unit: &str,
    lines: impl IntoIterator<Item = (&'a str, Vec<f64>)>,
    paper: Paper,
) -> Plot {
    let alone = |(name, figures): (_, Vec<f64>)| {
        let trials = figures.into_iter().map(|it| vec![it]);
        (name, trials.collect())
    };
    spread(title, x, unit, lines.into_iter().map(alone), paper)
}

/// The same for each trial's figures: the means, with their spread.
pub(crate) fn spread<'a>(
    title: &str,
    x: (&str, &[String]),
    unit: &str,
    lines: impl IntoIterator<Item = (&'a str, Vec<Vec<f64>>)>,
    paper: Paper,
) -> Plot {
    let line = |(name, trials): (&str, Vec<Vec<f64>>)| Line {
        name: name.to_owned(),
        points: (0..)
            .zip(trials)
            .filter_map(|(nth, values)| Point::of(f64::from(nth), &values))
            .collect(),
    };
    Plot {
        title: title.to_owned(),
        x: Axis::Names(x.0.to_owned(), x.1.to_vec()),
        y: Axis::Plain(unit.to_owned()),
        lines: lines.into_iter().map(line).collect(),
        paper,
    }
}

/// After Okabe and Ito: people with any kind of colour vision can distinguish these. The page's
/// style sheet replaces ink, grid and reference by its own.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0x8a, 0x6d, 0x3b),
];
const INK: RGBColor = RGBColor(0, 0, 0);
const GRID: RGBColor = RGBColor(0xe4, 0xe4, 0xe4);
const PAPER: RGBColor = RGBColor(0x6b, 0x6b, 0x6b);

const SIZE: (u32, u32) = (760, 380);
const FONT: &str = "system-ui, sans-serif";
/// The height of a row of the legend. The legend is above the plot, because a mark among the points
/// would look like one of them.
const ROW: i32 = 20;
/// About the width of a letter of the legend.
const LETTER: usize = 7;
/// Where the legend begins.
const MARGIN: i32 = 72;

impl Axis {
    fn name(&self) -> &str {
        match self {
            Self::Plain(name) | Self::Log2(name) | Self::Names(name, _) => name,
        }
    }

    fn mark(&self, at: f64) -> String {
        let is_whole = (at - at.round()).abs() < 1e-6;
        match self {
            Self::Plain(_) if is_whole => format!("{at:.0}"),
            Self::Plain(_) => format!("{at:.1}"),
            Self::Log2(_) if is_whole => format!("{:.0}", at.exp2()),
            Self::Names(_, names) if is_whole && at > -0.5 => {
                names.get(at.round() as usize).cloned().unwrap_or_default()
            }
            Self::Log2(_) | Self::Names(..) => String::new(),
        }
    }
}

impl Plot {
    /// The plot as SVG; `None` when it has no point. A point that is not a number is left out.
    #[must_use]
    pub fn svg(&self) -> Option<String> {
        let points = || self.lines.iter().flat_map(Line::drawn);
        let (left, right) = range(points().map(|point| point.x))?;
        let tops = points().map(|point| point.high.max(point.y));
        let lows = points().map(|point| point.low.min(point.y));
        let references = || self.paper.figures().iter().map(|it| it.y);
        let (_, top) = range(tops.chain(references()))?;
        let (bottom, _) = range(lows.chain(references()))?;
        // From 0, or from the lowest value if that is below 0.
        let (bottom, top) = (bottom.min(0.0) * 1.05, top.max(bottom + 1e-9) * 1.08);
        let margin = match self.x {
            Axis::Names(..) => 0.5,
            Axis::Plain(_) | Axis::Log2(_) => ((right - left) * 0.03).max(0.1),
        };
        let mut svg = String::new();
        self.draw(&mut svg, (left - margin, right + margin), (bottom, top))
            .ok()?;
        Some(svg)
    }

    fn draw(
        &self,
        svg: &mut String,
        (left, right): (f64, f64),
        (bottom, top): (f64, f64),
    ) -> Result<(), Box<dyn core::error::Error>> {
        let all = SVGBackend::with_string(svg, SIZE).into_drawing_area();
        let marks = self.marks();
        let rows = marks.last().map_or(0, |it| it.1 / ROW + 1);
        let (legend, area) = all.split_vertically(rows * ROW);
        for (x, y, line, colour) in marks {
            let middle = y + ROW / 2;
            legend.draw(&Circle::new((x, middle), 4, colour.filled()))?;
            let style = (FONT, 13)
                .into_font()
                .color(&INK)
                .pos(Pos::new(HPos::Left, VPos::Center));
            legend.draw(&Text::new(line, (x + 9, middle), style))?;
        }
        let mut chart = ChartBuilder::on(&area)
            .margin(8)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(left..right, bottom..top)?;
        let label = (FONT, 13).into_font().color(&INK);
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(PAPER)
            .x_labels(12)
            .y_labels(8)
            .x_desc(self.x.name())
            .y_desc(self.y.name())
            .x_label_formatter(&|at| self.x.mark(*at))
            .y_label_formatter(&|at| self.y.mark(*at))
            .label_style(label.clone())
            .axis_desc_style(label)
            .draw()?;
        for reference in self.paper.figures() {
            let (from, to) = reference.x.unwrap_or((left, right));
            let ends = [(from, reference.y), (to, reference.y)];
            chart.draw_series(DashedLineSeries::new(ends, 5, 4, PAPER.stroke_width(2)))?;
            let style = (FONT, 12)
                .into_font()
                .color(&PAPER)
                .pos(Pos::new(HPos::Right, VPos::Bottom));
            let name = reference.name.clone();
            chart.draw_series([Text::new(name, (to, reference.y), style)])?;
        }
        let lines = self.lines.len();
        for ((nth, line), colour) in self.lines.iter().enumerate().zip(COLOURS.iter().cycle()) {
            // Side by side, so that spreads do not hide each other.
            let step = match self.x {
                Axis::Names(..) => 0.6 / lines.max(6) as f64,
                Axis::Plain(_) | Axis::Log2(_) => (right - left) * 0.006,
            };
            let shift = (nth as f64 - (lines as f64 - 1.0) / 2.0) * step;
            let place = |point: &Point| (point.x + shift, point.y);
            if !matches!(self.x, Axis::Names(..)) {
                chart.draw_series(LineSeries::new(
                    line.drawn().map(place),
                    colour.stroke_width(2),
                ))?;
            }
            chart.draw_series(line.drawn().map(|point| {
                let x = point.x + shift;
                PathElement::new(
                    vec![(x, point.low), (x, point.high)],
                    colour.stroke_width(1),
                )
            }))?;
            chart.draw_series(
                line.drawn()
                    .map(|point| Circle::new(place(point), 4, colour.filled())),
            )?;
        }
        all.present()?;
        Ok(())
    }

    /// The places of the legend's marks, with their meanings. A line without a name has no mark.
    fn marks(&self) -> Vec<(i32, i32, String, RGBColor)> {
        let (mut x, mut y) = (MARGIN, 0);
        let named = self.lines.iter().zip(COLOURS.iter().cycle());
        named
            .filter(|(line, _)| !line.name.is_empty())
            .map(|(line, &colour)| {
                let width = 24 + (LETTER * line.name.chars().count()) as i32;
                if x > MARGIN && x + width > SIZE.0 as i32 {
                    (x, y) = (MARGIN, y + ROW);
                }
                let at = x;
                x += width;
                (at, y, line.name.clone(), colour)
            })
            .collect()
    }
}

/// The smallest and the largest; `None` without values.
fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |range, value| {
        let (low, high) = range.unwrap_or((value, value));
        Some((value.min(low), value.max(high)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(names: [&str; 2], paper: Paper) -> String {
        let unit = ["a".to_owned(), "b".to_owned(), "c".to_owned()];
        let lines = names.map(|name| (name, vec![1.0, 2.0, 3.0]));
        over("title", ("x", &unit), "y", lines, paper)
            .svg()
            .unwrap()
    }

    /// The heights of all circles.
    fn circles(svg: &str) -> Vec<i32> {
        let circles = svg.split("<circle ").skip(1);
        circles
            .map(|it| {
                let (_, rest) = it.split_once("cy=\"").unwrap();
                rest.split('"').next().unwrap().parse().unwrap()
            })
            .collect()
    }

    #[test]
    fn marks_of_the_legend_stand_above_all_points() {
        let svg = plot(["one", "other"], Paper::reports("nothing"));
        let heights = circles(&svg);
        let (marks, points): (Vec<i32>, Vec<i32>) = heights.iter().partition(|it| **it < ROW);
        assert_eq!((marks.len(), points.len()), (2, 6));
    }

    #[test]
    fn a_line_without_a_name_has_no_mark() {
        let svg = plot(["", ""], Paper::reports("nothing"));
        assert_eq!(circles(&svg).len(), 6);
    }

    #[test]
    fn what_the_paper_gives_is_drawn() {
        let without = plot(["one", "other"], Paper::reports("nothing"));
        let figure = Reference::at(1, "paper: 7", 7.0);
        let with = plot(["one", "other"], Paper::Figures(vec![figure]));
        assert!(with.contains("paper: 7") && !without.contains("paper: 7"));
    }

    /// The mean of 1 and 3 is where 2 is.
    #[test]
    fn trials_are_drawn_as_their_mean() {
        let names = ["a".to_owned(), "b".to_owned()];
        let lines = [("each", vec![vec![1.0, 3.0], vec![2.0]])];
        let plot = spread(
            "title",
            ("x", &names),
            "y",
            lines,
            Paper::reports("nothing"),
        );
        let points = plot.lines[0].points.clone();
        assert_eq!(points[0].y.to_bits(), points[1].y.to_bits());
        assert!(points[0].low < points[0].y && points[0].y < points[0].high);
    }

    /// Too short a run measures nothing in some setting.
    #[test]
    fn what_is_no_number_is_left_out() {
        let line = |x: f64, y: f64| {
            let point = Point {
                x,
                y,
                low: y,
                high: y,
            };
            let (name, points) = ("some".to_owned(), vec![point]);
            Line { name, points }
        };
        let plot = |lines, paper| Plot {
            title: "title".to_owned(),
            x: Axis::Plain("x".to_owned()),
            y: Axis::Plain("y".to_owned()),
            lines,
            paper,
        };
        let (nan, endless) = (f64::NAN, f64::INFINITY);
        let none = [
            (nan, 1.0),
            (1.0, nan),
            (nan, nan),
            (endless, 1.0),
            (1.0, endless),
        ];
        for (x, y) in none {
            let goal = || Paper::Figures(vec![Reference::everywhere("goal", 10.0)]);
            for paper in [goal(), Paper::reports("nothing")] {
                let alone = plot(vec![line(x, y)], paper.clone()).svg();
                assert_eq!(alone, None, "({x}, {y})");
                let svg = plot(vec![line(2.0, 3.0), line(x, y)], paper).svg().unwrap();
                assert_eq!(circles(&svg).len(), 3, "({x}, {y}): two marks and a point");
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "({x}, {y})");
            }
        }
    }
}
