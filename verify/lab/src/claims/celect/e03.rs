//! E3: the number of announcements in an election of Hybrid, and their cost.

use selvedge_celect::Protocol;

use super::figures::{
    Over, experiments, fewest, hop_bytes, leaders, lowest_and_highest, mean_of, otherwise, plot,
    plots, settings,
};
use super::lab::{PROTOCOLS, Setting};
use crate::claims::stats::mean;
use crate::claims::{Claim, Judgement, Paper, Reference, Samples, Verdict};

/// At 5 and 20% lost.
const PAPER: [f64; 2] = [28.0, 157.0];

/// Figures up to this many percentage points above the thesis' still hold.
const ABOVE: f64 = 10.0;

pub(super) fn claim() -> Claim {
    let others = otherwise().into_iter().flat_map(|(_, both)| both);
    Claim {
        id: "E3",
        claim: "at 5% / 20% lost, leaders announce themselves more often in an election of Hybrid than in one of Base, by",
        source: "Election, section 6.1.3, figure 6.7; bandwidth: section 6.1.1",
        unit: "%",
        experiments: experiments(settings().into_iter().chain(others)),
        judge,
    }
}

/// The percentage by which there are more leaders.
fn more(samples: &Samples, setting: &Setting) -> Option<f64> {
    let of = |protocol| mean_of(samples, setting, protocol, leaders);
    Some(100.0 * (of(Protocol::Hybrid)? / of(Protocol::Base)? - 1.0))
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let [low, high] = lowest_and_highest(|it| it).map(|it| more(samples, &it));
    let ours = [low?, high?];
    let within = |above: f64| {
        let pairs = ours.iter().zip(PAPER);
        pairs.clone().all(|(ours, paper)| *ours <= paper + above)
    };
    let others = otherwise().into_iter().map(|(name, settings)| {
        let [low, high] = settings.map(|it| more(samples, &it));
        Some(format!("{:.0} / {:.0} with {name}", low?, high?))
    });
    let others: Option<Vec<String>> = others.collect();
    // In the mean of all settings.
    let all = settings();
    let bytes = PROTOCOLS.map(|protocol| {
        let each = all
            .iter()
            .map(|it| mean_of(samples, it, protocol, hop_bytes));
        let mean = mean(&each.collect::<Option<Vec<f64>>>()?)?;
        Some(format!("{protocol:?} {mean:.0}"))
    });
    let bytes: Option<Vec<String>> = bytes.into_iter().collect();
    let [low, high] = lowest_and_highest(|it| it);
    let base = [low, high].map(|it| mean_of(samples, &it, Protocol::Base, leaders));
    let references = PAPER.iter().zip(base).zip([0, 3]);
    let references = references.filter_map(|((paper, base), nth)| {
        let times = 1.0 + paper / 100.0;
        let name = format!("thesis: Hybrid, {times:.2} times Base");
        Some(Reference::at(nth, name, base? * times))
    });
    let mut all_plots = vec![plot(
        samples,
        Over::Losses,
        ("Leaders in one election", "announcements"),
        leaders,
        Paper::Figures(references.collect()),
    )];
    all_plots.extend(plots(
        samples,
        "Bytes of an election, summed over hops",
        "bytes",
        hop_bytes,
        "curves (figures 6.1 to 6.3)",
    ));
    Some(Judgement {
        paper: PAPER.map(|it| format!("{it:.0}")).join(" / "),
        ours: ours.map(|it| format!("{it:.0}")).join(" / "),
        verdict: if within(0.0) {
            Verdict::Better
        } else if within(ABOVE) {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "Fewer are better. At 5% / 20%: {}. Suspicions reach all lists, so that the first answers leave out whom the \
             last ones do; where nodes count what they find out themselves, answers differ. Each LEADER \
             goes to all, so Hybrid costs most: in the mean of all settings {} bytes. The rest as in E1. \
             Better up to the thesis' figures, holds up to {ABOVE} points above.",
            others?.join("; "),
            bytes?.join(", "),
        ),
        trials: fewest(samples, &settings())?,
        plots: all_plots,
    })
}
