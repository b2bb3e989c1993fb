//! selvedge-celect and raft-rs 0.7: the cost of an election.
//!
//! An election counts from the first datagram until every live node knows the same live leader.
//! Ours are encoded with postcard, header and sender included; theirs with protobuf.

mod ours;
mod theirs;

use chacha20::ChaCha8Rng;
use clap::Args;
use rand_core::{Rng, SeedableRng};
use selvedge_celect::{Config, Protocol};
use selvedge_core::Span;
use serde::Serialize;

use crate::median;
use crate::network::{Network, Out, PERIOD, Peer, Time};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Numbers of nodes
    #[arg(long, num_args = 1.., default_values_t = [5, 16, 49])]
    nodes: Vec<usize>,
    /// Percent of datagrams lost
    #[arg(long, num_args = 1.., default_values_t = [0, 5])]
    loss: Vec<u64>,
    /// Number of trials; each has its own seed
    #[arg(long, default_value_t = 101)]
    trials: u64,
    /// Milliseconds over which the survivors of a crash are notified of it; raft needs no
    /// notification
    #[arg(long, default_value_t = 1_000)]
    notified_within: u64,
    /// The first seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the rows as JSON
    #[arg(long)]
    json: bool,
}

/// A node of a contender.
trait Elects: Peer {
    /// The node that it takes for the leader.
    fn leader(&self) -> Option<usize>;
    /// Asks it to begin an election.
    fn begin(&mut self, now: Time, out: &mut Out<Self::Timer>);
    /// Notifies it that the leader failed.
    fn lose(&mut self, now: Time, leader: usize, out: &mut Out<Self::Timer>);
}

/// The cost until all nodes knew the leader; medians.
#[derive(Debug, Serialize)]
struct Taken {
    messages: f64,
    bytes: f64,
    milliseconds: f64,
    /// The number of trials in which all knew within a minute.
    trials: usize,
}

#[derive(Debug, Serialize)]
struct Row {
    who: &'static str,
    nodes: usize,
    loss_percent: u64,
    /// The first election, with no leader before it.
    first: Option<Taken>,
    /// Messages in the ten seconds after that.
    afterwards: Option<f64>,
    /// From the crash of the leader on.
    next: Option<Taken>,
}

/// The longest time that an election may take.
const PATIENCE: Time = 60 * PERIOD;
/// Longer than any datagram is in flight.
const IN_FLIGHT: Time = PERIOD / 10;
/// The time between two looks at the nodes.
const STEP: Time = 1_000;

pub(crate) fn run(arguments: &Arguments) {
    if !arguments.json {
        println!(
            "seeds from {}, {} trials; medians of messages, bytes and milliseconds until all know",
            arguments.seed, arguments.trials
        );
        println!(
            "{:24} {:>5} {:>5} {:>24} {:>12} {:>24}",
            "", "nodes", "loss", "the first leader", "next 10 s", "after its crash"
        );
    }
    let mut rows = Vec::new();
    for &nodes in &arguments.nodes {
        for &loss in &arguments.loss {
            for row in compare(nodes, loss, arguments) {
                if !arguments.json {
                    print(&row);
                }
                rows.push(row);
            }
        }
    }
    if arguments.json {
        let text = serde_json::to_string_pretty(&rows).expect("plain rows");
        println!("{text}");
    }
}

fn compare(nodes: usize, loss: u64, arguments: &Arguments) -> Vec<Row> {
    // Thesis, table 5.1: at 5% loss a node is missing from 4 of 49 lists.
    let base = Config::new(nodes.div_ceil(10) as u16, 1);
    let ours = [
        ("selvedge", base),
        ("selvedge, lean", base.with_protocol(Protocol::Lean)),
        // The range of raft's timeouts.
        ("selvedge, spread 2 s", base.with_spread(Span::secs(2))),
        // As many answers as a majority has members.
        ("selvedge, c = n / 2", Config::new((nodes / 2) as u16, 0)),
    ];
    let theirs = [("raft", false), ("raft, pre-vote", true)];
    let theirs = theirs.map(|(who, pre_vote)| {
        let cluster = |seed| theirs::cluster((nodes, loss, seed), pre_vote);
        (who, measure(arguments, cluster))
    });
    let ours = ours.map(|(who, config)| {
        let mesh = |seed| ours::mesh((nodes, loss, seed), config);
        (who, measure(arguments, mesh))
    });
    let row = |(who, (first, afterwards, next))| Row {
        who,
        nodes,
        loss_percent: loss,
        first,
        afterwards,
        next,
    };
    theirs.into_iter().chain(ours).map(row).collect()
}

/// The first leader; messages after that; the next one.
fn measure<P: Elects>(
    arguments: &Arguments,
    make: impl Fn(u64) -> Network<P>,
) -> (Option<Taken>, Option<f64>, Option<Taken>) {
    let (mut firsts, mut afterwards, mut nexts) = (Vec::new(), Vec::new(), Vec::new());
    for seed in (arguments.seed..).take(arguments.trials as usize) {
        let mut network = make(seed);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut draw = |below: u64| rng.next_u64() % below;
        network.reset();
        let initiator = draw(network.peers.len() as u64) as usize;
        network.with(initiator, P::begin);
        let Some((leader, taken)) = elect(&mut network, None, Vec::new()) else {
            continue;
        };
        firsts.push(taken);
        network.reset();
        network.run_for(10);
        afterwards.push(network.counted.sent as f64);
        network.crash(leader);
        // Datagrams in flight are answered in vain, and do not count in the next election.
        network.run_until(network.now + IN_FLIGHT);
        network.reset();
        // Each node is notified at a time of its own, as by a membership service.
        let (now, within) = (network.now, arguments.notified_within.max(1) * 1_000);
        let notified = network
            .up()
            .map(|(node, _)| (now + draw(within), node))
            .collect();
        nexts.extend(elect(&mut network, Some(leader), notified).map(|(_, taken)| taken));
    }
    (summary(&firsts), median(afterwards), summary(&nexts))
}

/// Runs the network until all nodes that are up know the same leader that is up, and not `former`.
/// `notified` returns the time at which each node is notified that `former` failed.
fn elect<P: Elects>(
    network: &mut Network<P>,
    former: Option<usize>,
    mut notified: Vec<(Time, usize)>,
) -> Option<(usize, [f64; 3])> {
    notified.sort_unstable();
    let mut notified = notified.into_iter().peekable();
    let end = network.now + PATIENCE;
    let mut began = None;
    while network.now < end {
        if began.is_none() && network.counted.sent > 0 {
            began = Some(network.now);
        }
        if let (Some(leader), Some(began)) = (common_leader(network), began)
            && Some(leader) != former
        {
            let counted = network.counted;
            let milliseconds = (network.now - began) as f64 / 1_000.0;
            let taken = [counted.sent as f64, counted.bytes as f64, milliseconds];
            return Some((leader, taken));
        }
        network.run_until(network.now + STEP);
        while let Some((_, node)) = notified.next_if(|&(at, _)| at <= network.now) {
            if let Some(former) = former {
                network.with(node, |peer, now, out| peer.lose(now, former, out));
            }
        }
    }
    None
}

/// The node that all nodes that are up take for the leader.
fn common_leader<P: Elects>(network: &Network<P>) -> Option<usize> {
    let mut leaders = network.up().map(|(_, peer)| peer.leader());
    let leader = leaders.next().flatten()?;
    let is_up = network.up().any(|(node, _)| node == leader);
    (is_up && leaders.all(|it| it == Some(leader))).then_some(leader)
}

fn summary(trials: &[[f64; 3]]) -> Option<Taken> {
    let of = |which: usize| median(trials.iter().map(|it| it[which]).collect());
    Some(Taken {
        messages: of(0)?,
        bytes: of(1)?,
        milliseconds: of(2)?,
        trials: trials.len(),
    })
}

fn print(row: &Row) {
    let show = |taken: &Option<Taken>| {
        taken.as_ref().map_or_else(
            || "never".to_owned(),
            |it| {
                format!(
                    "{:.0} {:>6.0} {:>6.0} ms",
                    it.messages, it.bytes, it.milliseconds
                )
            },
        )
    };
    let of = |taken: &Option<Taken>| taken.as_ref().map_or(0, |it| it.trials);
    println!(
        "{:24} {:>5} {:>4}% {:>24} {:>12.0} {:>24} ({}, {})",
        row.who,
        row.nodes,
        row.loss_percent,
        show(&row.first),
        row.afterwards.unwrap_or(f64::NAN),
        show(&row.next),
        of(&row.first),
        of(&row.next),
    );
}
