//! From trials to figures, for the claims of this family.

use super::lab::{FLOOR, PERIOD, Seen, Setting, Variant};
use crate::claims::stats::{Estimate, cut, mean, median};
pub(super) use crate::claims::verdict::{BAND, verdict_on_cut, worst};
use crate::claims::{Axis, Experiment, Line, Paper, Plot, Point, Reference, Samples};

/// The trials of the thesis for one point of a figure.
pub(super) const TRIALS: u32 = 1_000;

/// The exponents of Medley; 0 would be SWIM.
pub(super) const EXPONENTS: [u8; 5] = [1, 2, 3, 4, 5];

/// In the thesis' units.
pub(super) fn units(micros: u64) -> f64 {
    micros as f64 / 1_000.0
}

/// Raw first detection time in units.
pub(super) fn detection(seen: &Seen) -> Option<f64> {
    seen.first.map(units)
}

/// First detection time beyond the shortest possible one, in units.
pub(super) fn excess(seen: &Seen) -> Option<f64> {
    detection(seen).map(|time| time - FLOOR as f64)
}

/// Time from the first detection until all nodes know, in units.
pub(super) fn spread(seen: &Seen) -> Option<f64> {
    seen.spread.map(units)
}

/// A figure of all trials of a setting in which it exists.
pub(super) fn column(
    samples: &Samples,
    setting: &Setting,
    figure: fn(&Seen) -> Option<f64>,
) -> Vec<f64> {
    setting.seen(samples).values().filter_map(figure).collect()
}

/// A figure of two settings, of those trials in which both have it.
pub(super) fn paired(
    samples: &Samples,
    (base, other): (&Setting, &Setting),
    figure: fn(&Seen) -> Option<f64>,
) -> (Vec<f64>, Vec<f64>) {
    let others = other.seen(samples);
    base.seen(samples)
        .iter()
        .filter_map(|(trial, seen)| Some((figure(seen)?, figure(others.get(trial)?)?)))
        .unzip()
}

/// All exponents of Medley under these rules.
pub(super) fn sweep(variants: &[Variant]) -> Vec<Experiment> {
    variants
        .iter()
        .flat_map(|&variant| {
            EXPONENTS.map(|exponent| Setting::new(variant, exponent).experiment(TRIALS))
        })
        .collect()
}

/// The cuts of a figure of plain Medley by a variant, by exponent.
pub(super) struct Cuts {
    pub(super) by_exponent: Vec<(u8, Estimate)>,
    pub(super) trials: usize,
}

impl Cuts {
    pub(super) fn of(
        samples: &Samples,
        variant: Variant,
        figure: fn(&Seen) -> Option<f64>,
    ) -> Option<Self> {
        let mut trials = usize::MAX;
        let by_exponent = EXPONENTS
            .into_iter()
            .map(|exponent| {
                let settings = (
                    &Setting::new(Variant::Plain, exponent),
                    &Setting::new(variant, exponent),
                );
                let (base, other) = paired(samples, settings, figure);
                trials = trials.min(base.len());
                Some((exponent, cut(&base, &other)?))
            })
            .collect::<Option<_>>()?;
        Some(Self {
            by_exponent,
            trials,
        })
    }

    /// The largest cut, and its exponent.
    pub(super) fn best(&self) -> Option<(u8, Estimate)> {
        let by_value = |a: &&(u8, Estimate), b: &&(u8, Estimate)| a.1.value.total_cmp(&b.1.value);
        self.by_exponent.iter().max_by(by_value).copied()
    }

    /// In words, with standard errors.
    pub(super) fn words(&self) -> String {
        let words = self.by_exponent.iter().map(|(exponent, cut)| {
            format!("{:.1} (+-{:.1}) at m = {exponent}", cut.value, cut.error)
        });
        words.collect::<Vec<_>>().join(", ")
    }

    pub(super) fn line(&self, name: &str) -> Line {
        Line {
            name: name.to_owned(),
            points: self
                .by_exponent
                .iter()
                .map(|&(exponent, cut)| Point {
                    x: f64::from(exponent),
                    y: cut.value,
                    low: cut.value - cut.error,
                    high: cut.value + cut.error,
                })
                .collect(),
        }
    }
}

/// The median with the quartiles as spread.
pub(super) fn middle(x: f64, values: &[f64]) -> Option<Point> {
    Some(Point {
        y: median(values)?,
        ..Point::of(x, values)?
    })
}

/// A figure of some variants by exponent, 0 included where it was run.
pub(super) fn by_exponent(
    samples: &Samples,
    variants: &[Variant],
    figure: fn(&Seen) -> Option<f64>,
) -> Vec<Line> {
    let line = |&variant: &Variant| Line {
        name: variant.name().to_owned(),
        points: (0..=5)
            .filter_map(|exponent| {
                let values = column(samples, &Setting::new(variant, exponent), figure);
                Point::of(f64::from(exponent), &values)
            })
            .collect(),
    };
    variants.iter().map(line).collect()
}

/// A plot of cuts by exponent, with the paper's largest ones.
pub(super) fn plot_of_cuts(title: &str, lines: Vec<Line>, papers: &[(&str, f64)]) -> Plot {
    Plot {
        title: format!("{title}; bars: one standard error"),
        x: Axis::Plain("exponent m".to_owned()),
        y: Axis::Plain("cut against plain Medley [%]".to_owned()),
        lines,
        paper: Paper::Figures(
            papers
                .iter()
                .map(|&(name, y)| Reference::everywhere(format!("thesis, largest: {name}"), y))
                .collect(),
        ),
    }
}

/// Hops a node and period: the transmissions of all messages.
pub(super) fn hops(seen: &Seen) -> Option<f64> {
    (seen.node_periods > 0).then(|| seen.hops as f64 / seen.node_periods as f64)
}

/// Detection time and traffic in one figure: the root of mean detection time (units) times hops (a
/// node and period).
pub(super) fn product(samples: &Samples, setting: &Setting) -> Option<f64> {
    let times = column(samples, setting, detection);
    let hops = column(samples, setting, hops);
    Some((mean(&times)? * mean(&hops)?).sqrt())
}

/// The bound on the time between two signs of life that one node gets of another.
pub(super) fn bound(variant: Variant, nodes: u64) -> Option<u64> {
    variant
        .every()
        .map(|every| nodes * u64::from(every) * PERIOD)
}
