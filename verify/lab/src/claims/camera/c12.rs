//! C12: the cost of a larger mesh when requests come one by one (figure 5.9).

use super::lab::{plot, words};
use super::workload::{Arrivals, DEFAULT, LINE_NAMES, LINES, Requesters, Seen, Workload};
use crate::claims::stats::fit;
use crate::claims::{Claim, Judgement, Paper, Samples, Verdict};

/// The sizes of C5, since the text of this figure names none.
const NODES: [usize; 5] = [16, 32, 64, 128, 256];

/// Zipf requesters that are near each other, as in the thesis' simulator.
const NEAR: (Requesters, Arrivals) = (Requesters::Corner, Arrivals::Exponential);

/// Zipf requesters of which the first two have three quarters of the requests at any size.
const STEEP: (Requesters, Arrivals) = (Requesters::Steep, Arrivals::Exponential);

/// A slope is lower if it is lower by this share: less may be chance.
const LOWER: f64 = 0.05;

fn settings((requesters, arrivals): (Requesters, Arrivals)) -> [Workload; 5] {
    NODES.map(|nodes| Workload {
        requesters,
        arrivals,
        nodes,
        ..DEFAULT
    })
}

pub(super) fn claim() -> Claim {
    let lines = LINES.into_iter().chain([NEAR, STEEP]);
    Claim {
        id: "C12",
        claim: "requests that come one by one, in larger meshes: waits grow faster under uniform requesters than under Zipf's, which grow less than the nodes; uniform ones wait longer where requests come in bursts; messages a node grow less than the nodes",
        source: "Camera, section 5.2, figure 5.9",
        unit: "ms of wait a node more, by a line through 16 to 256 nodes (uniform: exponential, Weibull, Zipf: the same); times as many messages a node at 256 nodes as at 16",
        experiments: lines.flat_map(settings).map(Workload::experiment).collect(),
        judge,
    }
}

/// The figures of a line, at each size.
type Row = Vec<Seen>;

/// By how much the wait grows with each further node, in ms.
fn slope(row: &[Seen]) -> Option<f64> {
    let points = NODES.iter().zip(row);
    let points: Vec<(f64, f64)> = points.map(|(&it, seen)| (it as f64, seen.wait)).collect();
    Some(fit(&points)?.0)
}

/// Returns true if the wait grows less with each node from 64 to 256 nodes than from 16 to 64.
fn is_concave(row: &[Seen]) -> Option<bool> {
    let [small, _, middle, _, large] = row else {
        return None;
    };
    let [least, _, between, _, most] = NODES.map(|it| it as f64);
    let first = (middle.wait - small.wait) / (between - least);
    Some((large.wait - middle.wait) / (most - between) < first)
}

fn messages_a_node(row: &[Seen]) -> Vec<f64> {
    let pairs = row.iter().zip(NODES);
    pairs
        .map(|(it, nodes)| it.messages / nodes as f64)
        .collect()
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let row = |line| -> Option<Row> { settings(line).iter().map(|it| it.seen(samples)).collect() };
    let rows: Vec<Row> = LINES.map(row).into_iter().collect::<Option<_>>()?;
    let [near, steep] = [row(NEAR)?, row(STEEP)?];
    let [uniform, uniform_bursts, zipf, zipf_bursts] = rows.as_slice() else {
        return None;
    };
    let slopes = rows
        .iter()
        .map(|it| slope(it))
        .collect::<Option<Vec<_>>>()?;
    let [of_uniform, of_uniform_bursts, of_zipf, of_zipf_bursts] = slopes.as_slice() else {
        return None;
    };
    let below = |zipf: &f64, uniform: &f64| *zipf < uniform * (1.0 - LOWER);
    let is_slower = below(of_zipf, of_uniform) && below(of_zipf_bursts, of_uniform_bursts);
    let are_concave = is_concave(zipf)? && is_concave(zipf_bursts)?;
    let mut pairs = uniform_bursts.iter().zip(uniform);
    let bursts_wait_longer = pairs.all(|(bursts, steady)| bursts.wait > steady.wait);
    let a_node: Vec<Vec<f64>> = rows.iter().map(|it| messages_a_node(it)).collect();
    let growth = |row: &Vec<f64>| Some(row.last()? / row.first()?);
    let growths = a_node.iter().map(growth).collect::<Option<Vec<_>>>()?;
    let larger = *NODES.last()? as f64 / *NODES.first()? as f64;
    let is_sublinear = growths.iter().all(|it| *it < larger);
    let waits: Vec<Vec<f64>> = rows
        .iter()
        .map(|row| row.iter().map(|it| it.wait).collect())
        .collect();
    let figures = |rows: &[Vec<f64>]| {
        let rows = rows.iter().map(|row| words(row.iter().copied()));
        rows.collect::<Vec<_>>().join("; ")
    };
    let two_digits = |figures: &[f64]| {
        let words = figures.iter().map(|it| format!("{it:.2}"));
        words.collect::<Vec<_>>().join(", ")
    };
    let names = NODES.map(|it| it.to_string());
    let plot_of = |title: &str, unit: &str, rows: &[Vec<f64>], shape: &str| {
        let lines = LINE_NAMES.into_iter().zip(rows.iter().cloned());
        plot(title, ("nodes", &names), unit, lines, Paper::reports(shape))
    };
    Some(Judgement {
        paper: "uniform faster than Zipf, Zipf concave; below 16".to_owned(),
        ours: format!("{}; {}", two_digits(&slopes), two_digits(&growths)),
        verdict: if is_slower && are_concave && bursts_wait_longer && is_sublinear {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "At 16, 32, 64, 128 and 256 nodes, lines in the same order, ms of wait: {}; messages a node and \
             entry: {}. Zipf {}, and uniform requesters {} longer at each size where requests come in bursts. \
             The thesis does not give Zipf's exponent. With 1, the first node has 30% of the requests of 16 \
             nodes, and 16% of those of 256: the more nodes, the less are they concentrated. With 1 / n², \
             where the share of the first stays: {} ms, {:.2} a node. The thesis' Zipf requesters need more \
             messages than uniform ones, because its simulator numbers nodes by their places; ours are \
             numbered at random. With Zipf requesters in a corner, exponential: {} messages, {} ms. The text \
             of the figure has no numbers. Holds when the slope is lower by {:.0}% under Zipf for both kinds \
             of arrivals, Zipf's waits grow less with each node from 64 to 256 nodes than from 16 to 64, \
             uniform ones wait longer in bursts at each size, and messages a node grow less than {larger:.0} \
             times.",
            figures(&waits),
            figures(&a_node),
            if are_concave {
                "is concave"
            } else {
                "is not concave"
            },
            if bursts_wait_longer {
                "wait"
            } else {
                "do not wait"
            },
            words(steep.iter().map(|it| it.wait)),
            slope(&steep)?,
            words(messages_a_node(&near)),
            words(near.iter().map(|it| it.wait)),
            100.0 * LOWER,
        ),
        trials: rows
            .iter()
            .chain([&near, &steep])
            .flatten()
            .map(|it| it.trials)
            .min()?,
        plots: vec![
            plot_of(
                "Wait by nodes, requests one by one",
                "ms",
                &waits,
                "uniform grows faster, Zipf is concave (figure 5.9a, curves)",
            ),
            plot_of(
                "Messages a node and entry, requests one by one",
                "messages / nodes",
                &a_node,
                "it grows less than the nodes (figure 5.9b, curves)",
            ),
        ],
    })
}
