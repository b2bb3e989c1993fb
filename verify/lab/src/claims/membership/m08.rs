//! M8: detection does not depend on the number of nodes, dissemination on its logarithm.

use super::figures::{column, detection, excess, middle, units};
use super::lab::{Seen, Setting, Variant};
use crate::claims::stats::{deviation, fit, mean, median};
use crate::claims::{Axis, Claim, Judgement, Line, Paper, Plot, Samples, Verdict};

/// Numbers of nodes, and of trials. The thesis ran 1,000 trials of each, 200 of the last. Our
/// trials take a tenth of the time at 49 nodes and grow with the square, so large meshes get fewer.
const SIZES: [(usize, u32); 7] = [
    (32, 1_000),
    (64, 1_000),
    (128, 1_000),
    (256, 500),
    (512, 200),
    (1_024, 60),
    (2_048, 20),
];

const VARIANTS: [Variant; 4] = [
    Variant::Plain,
    Variant::Active,
    Variant::Passive,
    Variant::Lean,
];

/// Detection is flat when its mean at any size lies within this many units (half a period) plus two
/// standard errors of the mean over all sizes: the largest meshes have few trials.
const FLAT: f64 = 10.0;

const fn setting(variant: Variant, nodes: usize) -> Setting {
    Setting {
        nodes,
        ..Setting::new(variant, 3)
    }
}

pub(super) fn claim() -> Claim {
    Claim {
        id: "M8",
        claim: "from 32 to 2,048 nodes at 0.22 a square metre, m = 3: detection does not grow, median dissemination grows with log N",
        source: "Medley-F, section 4.1.2, figure 4.6, Random",
        unit: "units, detection at the least and most nodes; units of dissemination a doubling",
        experiments: VARIANTS
            .into_iter()
            .flat_map(|variant| {
                SIZES.map(|(nodes, trials)| setting(variant, nodes).experiment(trials))
            })
            .collect(),
        judge,
    }
}

fn half_spread(seen: &Seen) -> Option<f64> {
    seen.half_spread.map(units)
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let mut words = Vec::new();
    let mut is_flat = true;
    let mut is_log = true;
    let mut figures = None;
    for variant in VARIANTS {
        let columns = SIZES.map(|(nodes, _)| column(samples, &setting(variant, nodes), excess));
        let means = columns
            .iter()
            .map(|column| mean(column))
            .collect::<Option<Vec<_>>>()?;
        let over_all = mean(&means)?;
        let deviation = deviation(&columns.concat())?;
        is_flat &= means.iter().zip(&columns).all(|(mean, column)| {
            let error = deviation / (column.len() as f64).sqrt();
            (mean - over_all).abs() <= FLAT + 2.0 * error
        });
        let spreads = SIZES
            .map(|(nodes, _)| {
                let times = column(samples, &setting(variant, nodes), half_spread);
                Some(((nodes as f64).log2(), median(&times)?))
            })
            .into_iter()
            .collect::<Option<Vec<_>>>()?;
        let (slope, start) = fit(&spreads)?;
        let far = spreads
            .iter()
            .map(|&(x, y)| (y - start - slope * x).abs())
            .fold(0.0, f64::max);
        // A straight line over log N: no point further from it than a doubling moves it.
        is_log &= slope > 0.0 && far <= slope.max(5.0);
        words.push(format!(
            "{}: excess {}, dissemination {slope:.1} a doubling, at most {far:.1} off the line",
            variant.name(),
            means
                .iter()
                .map(|it| format!("{it:.0}"))
                .collect::<Vec<_>>()
                .join(" "),
        ));
        figures.get_or_insert((*means.first()?, *means.last()?, slope));
    }
    let (first, last, slope) = figures?;
    let unaware: u64 = VARIANTS
        .iter()
        .flat_map(|&variant| SIZES.map(|(nodes, _)| setting(variant, nodes)))
        .flat_map(|setting| setting.seen(samples).into_values())
        .map(|seen| seen.unaware)
        .sum();
    let line = |variant: Variant, figure: fn(&Seen) -> Option<f64>| Line {
        name: variant.name().to_owned(),
        points: SIZES
            .iter()
            .filter_map(|&(nodes, _)| {
                let values = column(samples, &setting(variant, nodes), figure);
                middle((nodes as f64).log2(), &values)
            })
            .collect(),
    };
    let plot = |title: &str, y: &str, figure: fn(&Seen) -> Option<f64>, shape: &str| Plot {
        title: format!("{title}; bars: quartiles"),
        x: Axis::Log2("nodes".to_owned()),
        y: Axis::Plain(y.to_owned()),
        lines: VARIANTS.map(|variant| line(variant, figure)).to_vec(),
        paper: Paper::reports(shape),
    };
    Some(Judgement {
        paper: "flat; a straight line over log N".to_owned(),
        ours: format!("{:.0} to {:.0}; {slope:.1}", first + 180.0, last + 180.0),
        verdict: if is_flat && is_log {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "Mean excess from 32 to 2,048 nodes, and median time from the first detection until half \
             of all know. {}. {unaware} nodes had not learned of a failure when their trial ended; \
             the thesis shows up to some percent of such. Holds when no mean excess is more than \
             {FLAT} units and two standard errors from the mean of all sizes, and no median further \
             from its line than a doubling.",
            words.join("; ")
        ),
        trials: column(samples, &setting(Variant::Plain, 2_048), detection).len(),
        plots: vec![
            plot(
                "Median excess of the first detection time",
                "excess [units]",
                excess,
                "flat (figure 4.6, curves)",
            ),
            plot(
                "Median time from the first detection until half of all know",
                "dissemination [units]",
                half_spread,
                "a straight line over log N (figure 4.6, curves)",
            ),
        ],
    })
}
