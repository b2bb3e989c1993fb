//! Figures as words and plots.

use super::lab::{Figure, Setting};
use crate::claims::stats::quantile;
use crate::claims::{Axis, Experiment, Line, Paper, Plot, Point, Samples};

/// The experiments that these settings need.
pub(super) fn experiments(settings: impl IntoIterator<Item = Setting>) -> Vec<Experiment> {
    settings.into_iter().map(Setting::experiment).collect()
}

/// The smallest number of trials of any of these.
pub(super) fn fewest(settings: impl IntoIterator<Item = Setting>, samples: &Samples) -> usize {
    let trials = settings.into_iter().map(|it| it.trials(samples));
    trials.min().unwrap_or_default()
}

/// A figure for each, as words.
pub(super) fn words(figures: impl IntoIterator<Item = f64>, digits: usize) -> String {
    let words = figures.into_iter().map(|it| format!("{it:.digits$}"));
    words.collect::<Vec<_>>().join(", ")
}

/// The percentage by which the mean of a figure is above the mean in another setting.
pub(super) fn above(
    ours: &Setting,
    base: &Setting,
    figure: Figure,
    samples: &Samples,
) -> Option<f64> {
    Some(100.0 * (ratio(ours, base, figure, samples)? - 1.0))
}

/// The mean of a figure, as a multiple of the mean in another setting.
pub(super) fn ratio(
    ours: &Setting,
    base: &Setting,
    figure: Figure,
    samples: &Samples,
) -> Option<f64> {
    Some(ours.mean(figure, samples)? / base.mean(figure, samples)?)
}

/// A figure of some settings: a line a name, a point a setting; the mean, and the middle 90% of all
/// trials.
pub(super) fn plot(
    title: &str,
    x: (&str, &[&str]),
    y: (&str, Figure, f64),
    lines: impl IntoIterator<Item = (&'static str, Vec<Setting>)>,
    samples: &Samples,
    paper: Paper,
) -> Plot {
    let (unit, figure, factor) = y;
    let point = |(x, setting): (u32, &Setting)| {
        let mean = setting.mean(figure, samples)?;
        let all = setting.figures(figure, samples);
        let parts = figure.parts();
        Some(Point {
            x: f64::from(x),
            y: mean * factor,
            low: quantile(&all, 0.05)? / parts * factor,
            high: quantile(&all, 0.95)? / parts * factor,
        })
    };
    let line = |(name, settings): (&'static str, Vec<Setting>)| Line {
        name: name.to_owned(),
        points: (0..).zip(&settings).filter_map(point).collect(),
    };
    Plot {
        title: title.to_owned(),
        x: Axis::Names(
            x.0.to_owned(),
            x.1.iter().map(|&it| it.to_owned()).collect(),
        ),
        y: Axis::Plain(unit.to_owned()),
        lines: lines.into_iter().map(line).collect(),
        paper,
    }
}
