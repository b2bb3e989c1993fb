//! C11: the cost of loss when requests come one by one (figure 5.8).

use super::lab::{plot, words};
use super::workload::{Arrivals, DEFAULT, LINE_NAMES, LINES, Requesters, Seen, Workload};
use crate::claims::{Claim, Judgement, Paper, Samples, Verdict};

/// Percent lost on a hop: the range of section 5.1, since the text of this figure names none.
const LOSS: [u32; 4] = [5, 10, 15, 20];

/// Without loss, to know the wait that is of no message's fault.
const NONE: u32 = 0;

/// Growths are the same if the largest is at most this many times the smallest.
const SAME: f64 = 1.5;

fn setting((requesters, arrivals): (Requesters, Arrivals), loss: u32) -> Workload {
    Workload {
        requesters,
        arrivals,
        loss,
        ..DEFAULT
    }
}

pub(super) fn claim() -> Claim {
    let losses = LOSS.into_iter().chain([NONE]);
    let settings = losses.flat_map(|loss| LINES.map(|line| setting(line, loss)));
    Claim {
        id: "C11",
        claim: "requests that come one by one, from 5% to 20% lost on a hop: wait and messages grow alike for all four kinds of them, and Zipf requesters wait less",
        source: "Camera, section 5.2, figure 5.8",
        unit: "times, at 20% against 5%: wait; messages (uniform: exponential, Weibull, Zipf: the same)",
        experiments: settings.map(Workload::experiment).collect(),
        judge,
    }
}

/// The figures of a line at 5, 10, 15 and 20%.
type Row = Vec<Seen>;

/// The figure at the most loss, as a multiple of that at the least.
fn growth(row: &Row, figure: fn(&Seen) -> f64) -> Option<f64> {
    Some(figure(row.last()?) / figure(row.first()?))
}

/// The largest of some figures as a multiple of the smallest.
fn spread(figures: &[f64]) -> f64 {
    let largest = figures.iter().copied().fold(0.0, f64::max);
    largest / figures.iter().copied().fold(f64::INFINITY, f64::min)
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let row = |line| -> Option<Row> {
        let settings = LOSS.map(|loss| setting(line, loss));
        settings.iter().map(|it| it.seen(samples)).collect()
    };
    let rows: Vec<Row> = LINES.map(row).into_iter().collect::<Option<_>>()?;
    let lossless = LINES.map(|line| setting(line, NONE).seen(samples));
    let lossless: Vec<Seen> = lossless.into_iter().collect::<Option<_>>()?;
    // The growth of the part of the wait that there is not without loss.
    let by_loss = rows.iter().zip(&lossless).map(|(row, without)| {
        let [least, most] = [row.first()?, row.last()?].map(|it| it.wait - without.wait);
        Some(most / least)
    });
    let by_loss: Vec<f64> = by_loss.collect::<Option<_>>()?;
    let [uniform, uniform_bursts, zipf, zipf_bursts] = rows.as_slice() else {
        return None;
    };
    let growths = |figure: fn(&Seen) -> f64| -> Option<Vec<f64>> {
        rows.iter().map(|row| growth(row, figure)).collect()
    };
    let (waits, messages) = (growths(|it| it.wait)?, growths(|it| it.messages)?);
    let grows = |figure: fn(&Seen) -> f64| rows.iter().all(|row| row.is_sorted_by_key(figure));
    let below = |zipf: &Row, uniform: &Row| {
        let mut pairs = zipf.iter().zip(uniform);
        pairs.all(|(zipf, uniform)| zipf.wait < uniform.wait)
    };
    let is_less = below(zipf, uniform) && below(zipf_bursts, uniform_bursts);
    let are_same = spread(&waits) <= SAME && spread(&messages) <= SAME;
    let all_grow = grows(|it| it.wait) && grows(|it| it.messages);
    let figures = |figure: fn(&Seen) -> f64| {
        let rows = rows.iter().map(|row| words(row.iter().map(figure)));
        rows.collect::<Vec<_>>().join("; ")
    };
    let names = LOSS.map(|it| format!("{it}%"));
    let plot_of = |title: &str, unit: &str, figure: fn(&Seen) -> f64| {
        let lines = rows.iter().map(|row| row.iter().map(figure).collect());
        let lines = LINE_NAMES.into_iter().zip(lines);
        let shape = "all grow alike, Zipf waits less (figure 5.8, curves)";
        plot(
            title,
            ("lost on a hop", &names),
            unit,
            lines,
            Paper::reports(shape),
        )
    };
    Some(Judgement {
        paper: "alike; alike; Zipf below uniform".to_owned(),
        ours: format!(
            "{}; {}",
            words(waits.iter().copied()),
            words(messages.iter().copied())
        ),
        verdict: if all_grow && are_same && is_less {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "At 5, 10, 15 and 20%, lines in the same order, ms of wait: {}; since the request came: {}; messages \
             an entry: {}. The largest growth is {:.2} times the smallest of waits, {:.2} of messages. Without \
             loss the waits are {}: requests come as fast as they can be served (IA:D 1), and bursts wait for \
             each other. The part of the wait beyond that grows {} times. Distributions are C7's; the text of \
             the figure has no numbers. Holds when wait and messages grow at each step, the largest growth is \
             at most {SAME} times the smallest, and Zipf is below uniform at each loss.",
            figures(|it| it.wait),
            figures(|it| it.with_queue),
            figures(|it| it.messages),
            spread(&waits),
            spread(&messages),
            words(lossless.iter().map(|it| it.wait)),
            words(by_loss.iter().copied()),
        ),
        trials: rows
            .iter()
            .flatten()
            .chain(&lossless)
            .map(|it| it.trials)
            .min()?,
        plots: vec![
            plot_of("Wait by loss, requests one by one", "ms", |it| it.wait),
            plot_of(
                "Messages by loss, requests one by one",
                "messages an entry",
                |it| it.messages,
            ),
        ],
    })
}
