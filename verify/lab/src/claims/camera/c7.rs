//! C7: which nodes ask, and how often, when requests come one by one.

use super::lab::{plot, words};
use super::workload::{Arrivals, DEFAULT, LINE_NAMES, LINES, Requesters, Seen, Workload};
use crate::claims::{Claim, Judgement, Paper, Samples, Verdict};

/// The largest of Zipf's figures may be this many times the smallest.
const FLAT: f64 = 2.0;
/// Mean time between two requests, in hundredths of the time that a node stays inside.
const RATIOS: [u64; 4] = [100, 200, 300, 400];
const ARRIVALS: [Arrivals; 2] = [Arrivals::Exponential, Arrivals::Weibull];

const fn setting(requesters: Requesters, arrivals: Arrivals, ratio: u64) -> Workload {
    Workload {
        requesters,
        arrivals,
        ratio,
        ..DEFAULT
    }
}

/// Fewer requesters that ask more often.
fn steep() -> impl Iterator<Item = Workload> {
    ARRIVALS
        .into_iter()
        .flat_map(|arrivals| RATIOS.map(|ratio| setting(Requesters::Steep, arrivals, ratio)))
}

/// The same with permissions that are kept.
fn kept() -> impl Iterator<Item = Workload> {
    RATIOS.into_iter().map(|ratio| Workload {
        keep: true,
        ..setting(Requesters::Zipf, Arrivals::Exponential, ratio)
    })
}

pub(super) fn claim() -> Claim {
    let settings = LINES.into_iter().flat_map(|(requesters, arrivals)| {
        RATIOS.map(|ratio| setting(requesters, arrivals, ratio))
    });
    Claim {
        id: "C7",
        claim: "Zipf requesters wait less than uniform ones, and independently of how fast requests come",
        source: "Camera, section 5.2, figure 5.7",
        unit: "ms of wait, at 1, 2, 3 and 4 times as long between two requests as inside: uniform (exponential; Weibull) | Zipf (the same)",
        experiments: settings
            .chain(steep())
            .chain(kept())
            .map(Workload::experiment)
            .collect(),
        judge,
    }
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let row = |(requesters, arrivals): (Requesters, Arrivals)| -> Option<Vec<Seen>> {
        let settings = RATIOS.map(|ratio| setting(requesters, arrivals, ratio));
        settings.iter().map(|it| it.seen(samples)).collect()
    };
    let rows = LINES.into_iter().map(row).collect::<Option<Vec<_>>>()?;
    let [uniform, uniform_bursts, zipf, zipf_bursts] = rows.as_slice() else {
        return None;
    };
    let steep = steep()
        .map(|it| it.seen(samples))
        .collect::<Option<Vec<_>>>()?;
    let kept = kept()
        .map(|it| it.seen(samples))
        .collect::<Option<Vec<_>>>()?;
    let waits = |row: &[Seen]| row.iter().map(|it| it.wait).collect::<Vec<f64>>();
    let figures = |row: &[Seen], figure: fn(&Seen) -> f64| words(row.iter().map(figure));
    let below = |zipf: &[Seen], uniform: &[Seen]| {
        let mut pairs = zipf.iter().zip(uniform);
        pairs.all(|(zipf, uniform)| zipf.wait < uniform.wait)
    };
    let spread = |rows: &[&[Seen]]| {
        let all = || rows.iter().copied().flatten().map(|it| it.wait);
        all().fold(0.0, f64::max) / all().fold(f64::INFINITY, f64::min)
    };
    let less = below(zipf, uniform) && below(zipf_bursts, uniform_bursts);
    let of_uniform = spread(&[uniform, uniform_bursts]);
    let of_zipf = spread(&[zipf, zipf_bursts]);
    let of_steep = spread(&[&steep]);
    let names: Vec<String> = RATIOS.iter().map(|it| (it / 100).to_string()).collect();
    let plot_of = |title: &str, unit: &str, figure: fn(&Seen) -> f64| {
        let lines = rows.iter().map(|row| row.iter().map(figure).collect());
        let lines = LINE_NAMES.into_iter().zip(lines);
        let shape = Paper::reports("Zipf is below uniform, and flat (figure 5.7, curves)");
        plot(title, ("between / inside", &names), unit, lines, shape)
    };
    Some(Judgement {
        paper: "Zipf below uniform, and flat".to_owned(),
        ours: format!(
            "{}; {} | {}; {}",
            words(waits(uniform)),
            words(waits(uniform_bursts)),
            words(waits(zipf)),
            words(waits(zipf_bursts))
        ),
        verdict: if less && of_zipf <= FLAT {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "From Enter to Entered, as the thesis counts: a node that wants to enter again before its turn \
             is over waits below that. With this, since the request came: uniform {}; Zipf {} (both \
             exponential). Uniform's largest is {of_uniform:.1} times its smallest, Zipf's {of_zipf:.1} \
             times. The thesis names neither exponents nor the time inside: here Zipf's is 1, so that 256 \
             nodes share the requests of which the first has a sixth; Weibull's 1/2; and {} ms. With \
             1 / n², where the first two have three quarters: {}; {}, {of_steep:.1} times, for the fewer ask, \
             the fewer are before anyone, however fast requests come. Messages an entry: {}; {}. With \
             permissions that are kept after an exit (Config::keep), Zipf: {} messages an entry, {} ms. \
             Holds when Zipf is below uniform in all eight settings, and its largest figure is at most \
             {FLAT:.0} times its smallest.",
            figures(uniform, |it| it.with_queue),
            figures(zipf, |it| it.with_queue),
            super::workload::INSIDE.0 / 1_000,
            figures(steep.get(..RATIOS.len())?, |it| it.wait),
            figures(steep.get(RATIOS.len()..)?, |it| it.wait),
            figures(uniform, |it| it.messages),
            figures(zipf, |it| it.messages),
            figures(&kept, |it| it.messages),
            figures(&kept, |it| it.wait),
        ),
        trials: rows
            .iter()
            .flatten()
            .chain(&steep)
            .chain(&kept)
            .map(|it| it.trials)
            .min()?,
        plots: vec![
            plot_of("Wait by how fast requests come", "ms", |it| it.wait),
            plot_of("Messages an entry", "messages", |it| it.messages),
        ],
    })
}
