//! selvedge-membership and foca 2: their cost, and their speed of detection.
//!
//! Both encode and decode every datagram with postcard, have ids of up to four bytes, a period of a
//! second and frames of up to 1,400 bytes. Time is the time spent in a node's own code, codec
//! included and the network's excluded.

mod ours;
mod theirs;

use std::time::Duration;

use clap::Args;
use serde::Serialize;

use crate::network::{Network, PERIOD, Peer};
use crate::{clock, heap, median};
use theirs::Mode;

/// The settings of a measurement.
#[derive(Debug, Args)]
// The arguments of the program, of which these are a part, have the name of the type.
#[group(id = "membership")]
pub(crate) struct Arguments {
    /// Numbers of nodes
    #[arg(long, num_args = 1.., default_values_t = [49, 256, 1_024, 2_048])]
    nodes: Vec<usize>,
    /// Percent of datagrams lost
    #[arg(long, num_args = 1.., default_values_t = [0, 5])]
    loss: Vec<u64>,
    /// Periods without a failure, which are measured
    #[arg(long, default_value_t = 60)]
    periods: u64,
    /// Number of failures of one node to time, one after the other
    #[arg(long, default_value_t = 3)]
    failures: usize,
    /// Seed of the network
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the rows as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Row {
    who: &'static str,
    nodes: usize,
    loss_percent: u64,
    /// Nanoseconds in a node's code for each datagram that it receives.
    ns_a_message: f64,
    /// Microseconds in its code a node and period.
    us_a_node_period: f64,
    bytes_a_packet: f64,
    packets_a_node_period: f64,
    heap_a_member: f64,
    /// Declared failures of live nodes in the quiet time, one for each node that declares one.
    false_removals: usize,
    /// Periods from a crash to its first detection; the median.
    first_detection: Option<f64>,
    /// Periods from there until all know; the median.
    full: Option<f64>,
    /// Survivors that did not know after 60 periods more, in all failures.
    stragglers: usize,
}

/// Periods to settle in before anything is measured: updates about joins are old then.
const SETTLING: u64 = 40;
/// Periods in which a failure must be known to all.
const PATIENCE: u64 = 120;

pub(crate) fn run(arguments: &Arguments) {
    let clock = clock::cost();
    if !arguments.json {
        println!(
            "seed {}, {} periods, two clock readings {clock:?} (taken off)",
            arguments.seed, arguments.periods
        );
        println!(
            "{:10} {:>5} {:>5} {:>11} {:>14} {:>12} {:>9} {:>11} {:>7} {:>6} {:>6} {:>10}",
            "",
            "nodes",
            "loss",
            "ns/message",
            "us/node-period",
            "bytes/packet",
            "packets",
            "heap/member",
            "false",
            "first",
            "full",
            "stragglers"
        );
    }
    let mut rows = Vec::new();
    for &nodes in &arguments.nodes {
        for &loss in &arguments.loss {
            let mut add = |row: Row| {
                if !arguments.json {
                    print(&row);
                }
                rows.push(row);
            };
            let seed = arguments.seed;
            add(measure(
                "foca pure",
                || theirs::settled(nodes, seed, Mode::Pure),
                loss,
                arguments,
                clock,
            ));
            add(measure(
                "foca lan",
                || theirs::settled(nodes, seed, Mode::Lan),
                loss,
                arguments,
                clock,
            ));
            add(measure(
                "selvedge",
                || ours::settled(nodes, seed),
                loss,
                arguments,
                clock,
            ));
        }
    }
    if arguments.json {
        let text = serde_json::to_string_pretty(&rows).expect("plain rows");
        println!("{text}");
    }
}

fn measure<P: Peer>(
    who: &'static str,
    settled: impl FnOnce() -> Network<P>,
    loss: u64,
    arguments: &Arguments,
    clock: Duration,
) -> Row {
    let before = heap::live();
    let mut network = settled();
    let nodes = network.peers.len();
    network.set_loss(loss);
    network.run_for(SETTLING);
    let heap = heap::live().saturating_sub(before);
    network.reset();
    network.run_for(arguments.periods);
    let counted = network.counted;
    let false_removals = network.failures.len();
    let busy = clock::without(clock, &counted).as_secs_f64();
    let node_periods = nodes as f64 * arguments.periods as f64;

    let mut firsts = Vec::new();
    let mut fulls = Vec::new();
    let mut stragglers = 0;
    for nth in 0..arguments.failures {
        let victim = (nth * 7 + 3) % nodes;
        let survivors = nodes - nth - 1;
        network.reset();
        network.crash(victim);
        let start = network.now;
        let mut knowing: Vec<bool> = vec![false; nodes];
        let (mut first, mut last) = (None, None);
        for _ in 0..PATIENCE {
            network.run_for(1);
            for (at, who, about) in network.failures.drain(..) {
                if about == victim && !knowing[who] {
                    knowing[who] = true;
                    first.get_or_insert(at);
                    last = Some(at);
                }
            }
            if knowing.iter().filter(|&&it| it).count() == survivors {
                break;
            }
        }
        let know = knowing.iter().filter(|&&it| it).count();
        stragglers += survivors - know;
        let periods = |from: u64, to: u64| (to - from) as f64 / PERIOD as f64;
        if let Some(first) = first {
            firsts.push(periods(start, first));
            if let Some(last) = last.filter(|_| know == survivors) {
                fulls.push(periods(first, last));
            }
        }
    }
    Row {
        who,
        nodes,
        loss_percent: loss,
        ns_a_message: busy * 1e9 / counted.received.max(1) as f64,
        us_a_node_period: busy * 1e6 / node_periods,
        bytes_a_packet: counted.bytes as f64 / counted.sent.max(1) as f64,
        packets_a_node_period: counted.sent as f64 / node_periods,
        heap_a_member: heap as f64 / (nodes * nodes) as f64,
        false_removals,
        first_detection: median(firsts),
        full: median(fulls),
        stragglers,
    }
}

fn print(row: &Row) {
    let periods = |it: Option<f64>| it.map_or_else(|| "never".to_owned(), |it| format!("{it:.1}"));
    println!(
        "{:10} {:>5} {:>4}% {:>11.0} {:>14.2} {:>12.1} {:>9.2} {:>11.0} {:>7} {:>6} {:>6} {:>10}",
        row.who,
        row.nodes,
        row.loss_percent,
        row.ns_a_message,
        row.us_a_node_period,
        row.bytes_a_packet,
        row.packets_a_node_period,
        row.heap_a_member,
        row.false_removals,
        periods(row.first_detection),
        periods(row.full),
        row.stragglers,
    );
}
