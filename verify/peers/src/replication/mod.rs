//! selvedge-replica, OmniPaxos and raft-rs: the cost of an update.
//!
//! The leader proposes updates of eight bytes. An update counts with all messages and computing for
//! it, at the leader and at the others, until it is applied at the leader; the notice of its commit
//! may be part of the next message. Ours are encoded with postcard, header and sender included,
//! OmniPaxos' with postcard, and raft's with protobuf. Time is the time in the own code of all
//! nodes together, codec included and the network's excluded. Each datagram takes the same time, so
//! that they arrive in order, as OmniPaxos needs them to.

mod omnipaxos;
mod ours;
mod theirs;

use std::time::Duration;

use clap::Args;
use selvedge_replica::State;
use serde::{Deserialize, Serialize};

use crate::network::{Network, Out, PERIOD, Peer, Time};
use crate::{clock, median, raft};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Numbers of nodes
    #[arg(long, num_args = 1.., default_values_t = [5])]
    nodes: Vec<usize>,
    /// Number of updates measured in a run
    #[arg(long, default_value_t = 5_000)]
    updates: u64,
    /// Number of updates before them
    #[arg(long, default_value_t = 1_000)]
    warm_up: u64,
    /// Number of runs; each has its own seed
    #[arg(long, default_value_t = 9)]
    runs: u64,
    /// The first seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only this contender
    #[arg(long)]
    only: Option<String>,
    /// Only this load
    #[arg(long)]
    load: Option<String>,
    /// Write the rows as JSON
    #[arg(long)]
    json: bool,
}

impl Arguments {
    fn is_wanted(&self, who: &str) -> bool {
        self.only.as_ref().is_none_or(|it| it == who)
    }
}

pub(crate) type Update = [u8; 8];

/// The result of the updates: two nodes with equal ones applied the same updates in the same order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Sum {
    updates: u64,
    mixed: u64,
}

impl Sum {
    pub(crate) fn take(&mut self, update: &Update) {
        self.updates += 1;
        self.mixed = self.mixed.rotate_left(5) ^ u64::from_le_bytes(*update);
    }
}

impl State for Sum {
    type Update = Update;
    type Outcome = ();

    fn apply(&mut self, update: &Update) {
        self.take(update);
    }
}

/// A node of a contender.
trait Replicates: Peer {
    fn leads(&self) -> bool;
    /// Asks it to lead.
    fn stand(&mut self, now: Time, out: &mut Out<Self::Timer>);
    /// Notifies it that the leader failed, and passes true to the first of the remaining nodes.
    fn lose(&mut self, now: Time, leader: usize, is_first: bool, out: &mut Out<Self::Timer>);
    /// Passes updates to it in one call.
    fn propose(&mut self, now: Time, updates: &[Update], out: &mut Out<Self::Timer>);
    /// The state that it has applied.
    fn state(&self) -> &Sum;
}

/// The pattern in which updates arrive.
#[derive(Clone, Copy)]
struct Load {
    name: &'static str,
    /// The number in flight at once.
    at_once: u64,
    /// True if they are passed in one call, and not one by one.
    together: bool,
}

const LOADS: [Load; 3] = [
    Load {
        name: "1",
        at_once: 1,
        together: false,
    },
    Load {
        name: "64",
        at_once: 64,
        together: false,
    },
    Load {
        name: "64 in one call",
        at_once: 64,
        together: true,
    },
];

/// The cost of an update; medians.
#[derive(Debug, Serialize)]
struct Taken {
    load: &'static str,
    messages: f64,
    bytes: f64,
    /// Microseconds of all nodes together.
    microseconds: f64,
}

#[derive(Debug, Serialize)]
struct Row {
    who: &'static str,
    nodes: usize,
    updates: Vec<Taken>,
    /// Messages in ten seconds in which nothing is proposed.
    idle: Option<f64>,
    /// Round trips from the notice that the leader failed until another node leads.
    replaced: Option<f64>,
}

/// The measurements of one contender's runs.
#[derive(Default)]
struct Runs {
    updates: [Vec<[f64; 3]>; LOADS.len()],
    idle: Vec<f64>,
    replaced: Vec<f64>,
}

/// The time that a datagram takes: short, so that few heartbeats fall into the time of an update.
const DELAY: Time = 50;
/// The time limit of each wait.
const PATIENCE: Time = 60 * PERIOD;

pub(crate) fn run(arguments: &Arguments) {
    let clock = clock::cost();
    if !arguments.json {
        println!(
            "seeds from {}, {} runs of {} updates; medians an update, all nodes together; two clock \
             readings {clock:?} (taken off)",
            arguments.seed, arguments.runs, arguments.updates
        );
        println!(
            "{:22} {:>5} {:>15} {:>8} {:>7} {:>7} {:>10} {:>22}",
            "",
            "nodes",
            "on their way",
            "messages",
            "bytes",
            "us",
            "idle 10 s",
            "leader replaced after"
        );
    }
    let mut rows = Vec::new();
    for &nodes in &arguments.nodes {
        for row in compare(nodes, arguments, clock) {
            if !arguments.json {
                print(&row);
            }
            rows.push(row);
        }
    }
    if arguments.json {
        let text = serde_json::to_string_pretty(&rows).expect("plain rows");
        println!("{text}");
    }
}

/// Runs the contenders in turns, so that other work on the machine affects all of them.
fn compare(nodes: usize, arguments: &Arguments, clock: Duration) -> Vec<Row> {
    let loud = raft::Variant::default();
    let quiet = raft::Variant {
        skip_bcast_commit: true,
        ..raft::Variant::default()
    };
    let names = ["raft", "raft, commits later", "omnipaxos", "selvedge"];
    let mut all = names.map(|who| (who, Runs::default()));
    for seed in (arguments.seed..).take(arguments.runs as usize) {
        for (who, runs) in &mut all {
            if !arguments.is_wanted(who) {
                continue;
            }
            match *who {
                "omnipaxos" => measure(omnipaxos::cluster(nodes, seed), arguments, clock, runs),
                "selvedge" => measure(ours::group(nodes, seed), arguments, clock, runs),
                "raft" => measure(
                    raft::cluster((nodes, 0, seed), loud),
                    arguments,
                    clock,
                    runs,
                ),
                _ => measure(
                    raft::cluster((nodes, 0, seed), quiet),
                    arguments,
                    clock,
                    runs,
                ),
            }
        }
    }
    let wanted = all.into_iter().filter(|(who, _)| arguments.is_wanted(who));
    wanted.map(|(who, runs)| runs.row(who, nodes)).collect()
}

impl Runs {
    fn row(self, who: &'static str, nodes: usize) -> Row {
        let taken = LOADS.iter().zip(&self.updates).filter_map(|(load, runs)| {
            let of = |which: usize| median(runs.iter().map(|it| it[which]).collect());
            Some(Taken {
                load: load.name,
                messages: of(0)?,
                bytes: of(1)?,
                microseconds: of(2)?,
            })
        });
        Row {
            who,
            nodes,
            updates: taken.collect(),
            idle: median(self.idle),
            replaced: median(self.replaced),
        }
    }
}

/// Runs once: a leader, updates in all patterns, a quiet time, and the next leader.
fn measure<P: Replicates>(
    mut network: Network<P>,
    arguments: &Arguments,
    clock: Duration,
    runs: &mut Runs,
) {
    network.set_delay(DELAY);
    // Time for the first actions of nodes.
    network.run_for(1);
    let leader = 0;
    network.with(leader, P::stand);
    wait(&mut network, |it| it.peers[leader].leads());
    network.run_for(1);
    let mut total = 0;
    for (load, runs) in LOADS.iter().zip(&mut runs.updates) {
        if arguments.load.as_ref().is_some_and(|it| it != load.name) {
            continue;
        }
        total += arguments.warm_up + arguments.updates;
        update(&mut network, leader, *load, arguments.warm_up);
        network.reset();
        update(&mut network, leader, *load, arguments.updates);
        let counted = network.counted;
        let busy = clock::without(clock, &counted).as_secs_f64() * 1e6;
        let all = [counted.sent as f64, counted.bytes as f64, busy];
        runs.push(all.map(|it| it / arguments.updates as f64));
    }
    network.run_for(1);
    let state = network.peers[leader].state();
    assert_eq!(state.updates, total, "each update is applied once");
    assert!(
        network.up().all(|(_, it)| it.state() == state),
        "all nodes hold the same"
    );

    network.reset();
    network.run_for(10);
    runs.idle.push(network.counted.sent as f64);

    network.crash(leader);
    let notified = network.now;
    let left: Vec<usize> = network.up().map(|(node, _)| node).collect();
    for (nth, &node) in left.iter().enumerate() {
        network.with(node, |peer, now, out| peer.lose(now, leader, nth == 0, out));
    }
    wait(&mut network, |it| it.up().any(|(_, it)| it.leads()));
    let round_trips = (network.now - notified) as f64 / (2 * DELAY) as f64;
    runs.replaced.push(round_trips);
}

/// Has the leader propose `count` updates, and waits until it has applied them.
fn update<P: Replicates>(network: &mut Network<P>, leader: usize, load: Load, count: u64) {
    let start = network.peers[leader].state().updates;
    let end = start + count;
    let mut proposed = start;
    let mut updates = Vec::new();
    wait(network, |network| {
        let applied = network.peers[leader].state().updates;
        let next = end.min(applied + load.at_once);
        updates.clear();
        updates.extend((proposed..next).map(|it| it.wrapping_mul(GOLDEN).to_le_bytes()));
        proposed = proposed.max(next);
        let size = if load.together { updates.len() } else { 1 };
        for updates in updates.chunks(size.max(1)) {
            network.with(leader, |peer, now, out| peer.propose(now, updates, out));
        }
        applied == end
    });
}

/// Makes all eight bytes of an update count.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Runs the network until this holds; it is looked at each time that datagrams may have come.
fn wait<P: Replicates>(network: &mut Network<P>, mut holds: impl FnMut(&mut Network<P>) -> bool) {
    let end = network.now + PATIENCE;
    while !holds(network) {
        assert!(network.now < end, "nothing came of it within a minute");
        network.run_until(network.now + DELAY);
    }
}

fn print(row: &Row) {
    let number = |it: Option<f64>| it.map_or_else(|| "never".to_owned(), |it| format!("{it:.0}"));
    for (nth, taken) in row.updates.iter().enumerate() {
        let is_first = nth == 0;
        println!(
            "{:22} {:>5} {:>15} {:>8.2} {:>7.0} {:>7.2} {:>10} {:>22}",
            if is_first { row.who } else { "" },
            row.nodes,
            taken.load,
            taken.messages,
            taken.bytes,
            taken.microseconds,
            if is_first {
                number(row.idle)
            } else {
                String::new()
            },
            match row.replaced {
                Some(it) if is_first => format!("{it:.1} round trips"),
                _ => String::new(),
            },
        );
    }
}
