//! Functions on servers that mostly sleep: the lab's small Raft, with which `selvedge claims P1 P2`
//! compares PCM, and raft-rs 0.7, both behind the lab's mailboxes.
//!
//! Servers wake at the same moments in both. A row shows the cost of a function from the request to
//! the answer.

#[path = "../../../lab/src/claims/pcm/servers/mod.rs"]
mod servers;
mod theirs;

use chacha20::ChaCha8Rng;
use clap::Args;
use rand_core::SeedableRng;
use selvedge_core::Span;
use serde::Serialize;

use servers::awake::Cycle;
use servers::broker::{Broker, Server};
use servers::raft::{Raft, Rule};
use servers::voters::Voters;
use theirs::RaftRs;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Number of functions; each runs on new servers, with a seed of its own
    #[arg(long, default_value_t = 2_000)]
    functions: u64,
    /// Milliseconds in which a server can be used in its period
    #[arg(long, default_value_t = 1_000)]
    active: u64,
    /// Milliseconds in which it sleeps
    #[arg(long, default_value_t = 9_000)]
    asleep: u64,
    /// Milliseconds that a function runs
    #[arg(long, num_args = 1.., default_values_t = [3_000, 23_000, 100_000])]
    length: Vec<u64>,
    /// Number of servers, including Pirogue's witness
    #[arg(long, default_value_t = 5)]
    servers: usize,
    /// The first seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the rows as JSON
    #[arg(long)]
    json: bool,
}

const RULES: [(Rule, &str); 3] = [
    (Rule::Acknowledge, "run, then acknowledge"),
    (Rule::Apply, "run what is committed"),
    (Rule::Compare, "the same, and compare"),
];

/// Means of all functions.
#[derive(Debug, Serialize)]
struct Row {
    length_ms: u64,
    rule: &'static str,
    who: &'static str,
    seconds: f64,
    /// All servers together.
    awake_seconds: f64,
    messages: f64,
}

pub(crate) fn run(arguments: &Arguments) {
    let rows: Vec<Row> = arguments
        .length
        .iter()
        .flat_map(|&length| RULES.map(|(rule, name)| (length, rule, name)))
        .flat_map(|(length, rule, name)| {
            let count = arguments.servers;
            let all = Voters::all(count);
            let ours = || Raft::cluster(&all, rule);
            let theirs = || RaftRs::cluster(count, rule);
            let voters = Voters::with_witness(count - 1);
            let pirogue = || Raft::cluster(&voters, rule);
            [
                measure(arguments, (length, name, "small"), ours, Raft::leads),
                measure(arguments, (length, name, "raft-rs"), theirs, RaftRs::leads),
                measure(
                    arguments,
                    (length, name, "small, as Pirogue"),
                    pirogue,
                    Raft::leads,
                ),
            ]
        })
        .collect();
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&rows).expect("rows"));
        return;
    }
    println!("| function s | servers | | s to the answer | s awake | messages |");
    println!("|---|---|---|---|---|---|");
    for row in &rows {
        println!(
            "| {:.0} | {} | {} | {:.2} | {:.1} | {:.1} |",
            row.length_ms as f64 / 1e3,
            row.rule,
            row.who,
            row.seconds,
            row.awake_seconds,
            row.messages,
        );
    }
}

fn measure<S: Server>(
    arguments: &Arguments,
    (length_ms, rule, who): (u64, &'static str, &'static str),
    cluster: impl Fn() -> Vec<S>,
    leads: impl Fn(&S) -> bool,
) -> Row {
    let active = Span::millis(arguments.active);
    let asleep = Span::millis(arguments.asleep);
    let cycle = Cycle { active, asleep };
    let length = Span::millis(length_ms);
    let mut sums = [0; 3];
    for nth in 0..arguments.functions {
        let rng = ChaCha8Rng::seed_from_u64(arguments.seed + nth);
        let mut broker = Broker::new(cluster(), cycle, length, rng);
        // Until the first one leads, and all servers know it.
        broker.run_for(cycle.period() * 8);
        let wait = Span(broker.below(cycle.period().0));
        broker.run_for(wait);
        let is_led = broker.servers().next().is_some_and(&leads);
        assert!(is_led, "the first server does not lead");
        let (start, awake, sent) = (broker.now(), broker.awake(), broker.sent());
        let task = 1;
        broker.submit(0, task);
        let most = Span(10 * (length.0 + 10 * cycle.period().0));
        assert!(broker.run_until_answered(task, most), "no answer came");
        sums[0] += broker.now().since(start).0;
        sums[1] += broker.awake().0 - awake.0;
        sums[2] += broker.sent() - sent;
    }
    let mean = |sum: u64| sum as f64 / arguments.functions as f64;
    Row {
        length_ms,
        rule,
        who,
        seconds: mean(sums[0]) / 1e6,
        awake_seconds: mean(sums[1]) / 1e6,
        messages: mean(sums[2]),
    }
}
