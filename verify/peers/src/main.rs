//! Drives ours and other implementations through one virtual network, and compares them:
//! selvedge-membership with foca 2, selvedge-celect with raft-rs 0.7, and selvedge-replica with
//! OmniPaxos 0.2 and raft-rs 0.7; and the lab's baseline of PCM with raft-rs 0.7.

mod clock;
mod election;
mod functions;
mod heap;
mod host;
mod membership;
mod network;
mod raft;
mod replication;

use clap::{Parser, Subcommand};

/// Compare selvedge-membership with foca 2 in one run, or elections or updates with others'
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    membership: membership::Arguments,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Compare elections of selvedge-celect with those of raft-rs
    Elections(election::Arguments),
    /// Compare updates of selvedge-replica with those of OmniPaxos and raft-rs
    Replication(replication::Arguments),
    /// Compare the lab's small Raft with raft-rs, running functions on servers that mostly sleep
    Functions(functions::Arguments),
}

fn main() {
    let arguments = Arguments::parse();
    match &arguments.what {
        None => membership::run(&arguments.membership),
        Some(What::Elections(elections)) => election::run(elections),
        Some(What::Replication(updates)) => replication::run(updates),
        Some(What::Functions(functions)) => functions::run(functions),
    }
}

/// The middle one, the upper of two.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
