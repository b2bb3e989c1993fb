//! A counter that three nodes hold together. It survives `kill -9` of any node, and of all at once.
//! Type it into three terminals, with `--first` only at the first start of each node:
//!
//! ```text
//! cargo run --release --example counter -- 1 counter1 --first
//! cargo run --release --example counter -- 2 counter2 --first
//! cargo run --release --example counter -- 3 counter3 --first
//! ```
//!
//! Each line is a number to add. All nodes print the count after each addition; two of them decide. After a
//! restart a node prints additions again that it printed before.
//! A node that lost its folder starts with `--forgot`, and never with `--first` again: it has no vote
//! until the leader of the others has named its new life, which it does by itself. With the vote of a node that forgets its promises, an
//! addition that was printed could be undone.
//!
//! A crate that copies it needs these packages, from a folder beside that of Selvedge:
//!
//! ```toml
//! [dependencies]
//! selvedge-core = { path = "../selvedge/core" }
//! selvedge-host = { path = "../selvedge/hosts/host" }
//! selvedge-replica = { path = "../selvedge/replica" }
//! selvedge-store = { path = "../selvedge/hosts/store" }
//! serde = { version = "1", features = ["derive"] }
//! ```

use core::error::Error;
use core::net::SocketAddr;
use std::io::stdin;
use std::path::Path;
use std::process::ExitCode;
use std::thread;

use selvedge_core::durable::Durable;
use selvedge_core::shared;
use selvedge_core::{Member, NodeId, Span};
use selvedge_host::{Host, Setup, block_on};
use selvedge_replica::{Command, Config, Configuration, Event, Fact, Replica, State, Stored};
use selvedge_store::{Beginning, Memory, NodeStore, Schema};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Counter(u64);

impl State for Counter {
    type Update = u64;
    type Outcome = u64;

    fn apply(&mut self, number: &u64) -> u64 {
        self.0 = self.0.saturating_add(*number);
        self.0
    }
}

const SCHEMA: Schema = Schema {
    file: "counter.redb",
    base: "selvedge example counter: base",
    facts: "selvedge example counter: facts",
    format: 1,
    limit: 1_000,
};

const MEMBERS: [Member; 3] = [Member::new(1, 0), Member::new(2, 0), Member::new(3, 0)];

type Memories = NodeStore<Stored<Counter>, Fact<Counter>>;

/// Opens the folder of a node, and begins a life that the node never had before.
fn begin(
    id: NodeId,
    folder: &Path,
    memory: Memory,
) -> Result<(Memories, Replica<Counter>), Box<dyn Error>> {
    let (store, beginning) = memory.open::<Stored<Counter>, Fact<Counter>>(folder, SCHEMA, id)?;
    let replica = match beginning {
        // The members name the first life of each node. After a loss the life is another one, so it
        // has no vote: the replica asks its leader to name it, and gets the count from the others.
        Beginning::First(me) | Beginning::Lost(me) => {
            let first = Configuration::of(MEMBERS);
            Replica::new(me, Config::new(), first, Counter::default())?
        }
        Beginning::Later(me, found) => {
            let mut replica = Replica::restore(me, Config::new(), found.base)?;
            found.facts.iter().try_for_each(|fact| replica.fold(fact))?;
            replica
        }
    };
    Ok((store, replica))
}

/// Prints an error as a sentence: it names the remedy.
fn main() -> ExitCode {
    let Err(error) = run() else {
        return ExitCode::SUCCESS;
    };
    eprintln!("{error}");
    ExitCode::FAILURE
}

fn run() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (id, folder, memory) = match args[..] {
        [id, folder] => (id, folder, Memory::Kept),
        [id, folder, "--first"] => (id, folder, Memory::NeverStarted),
        [id, folder, "--forgot"] => (id, folder, Memory::Lost),
        _ => {
            return Err(
                "give ID FOLDER; --first at its first start; --forgot if its folder is lost".into(),
            );
        }
    };
    let id = NodeId(id.parse()?);
    if !MEMBERS.iter().any(|member| member.id == id) {
        return Err("the ids are 1, 2 and 3".into());
    }
    let address = |id: NodeId| SocketAddr::from(([127, 0, 0, 1], 7_000 + id.0 as u16));
    let (store, replica) = begin(id, folder.as_ref(), memory)?;
    let setup = Setup::new(replica.me(), address(id))
        .heartbeat(Span::millis(100))
        .peers(MEMBERS.map(|member| (member.id, address(member.id))));
    let base = |replica: &Replica<Counter>| (replica.me(), replica.stored());
    let node = Host::blocking_start_durable(replica, setup, store, base)?;

    let (printer, mut events) = (node.clone(), node.events());
    thread::spawn(move || {
        while let Ok(event) = events.blocking_recv() {
            if let Event::Applied { by, outcome, .. } = event {
                println!("{outcome}, by node {}", by.id);
            } else if let Event::Unavailable { .. } = event {
                println!("too few nodes answer: start another one");
            }
        }
        println!("ended: {:?}", block_on(printer.ended()));
    });
    for line in stdin().lines() {
        match line?.parse() {
            Ok(number) => match node.blocking_submit(Command::Propose(number)) {
                // Such as too many additions that wait: nothing was added.
                Err(shared::Error::Rejected(why)) => println!("{why}"),
                proposed => proposed?,
            },
            Err(error) => println!("type a number: {error}"),
        }
    }
    Ok(block_on(node.ended())?)
}

#[cfg(test)]
mod tests {
    use super::{Memory, NodeId, begin};

    #[test]
    fn a_node_votes_from_its_first_start_on_and_not_after_a_loss() {
        let folder = std::env::temp_dir().join(format!("selvedge-counter-{}", std::process::id()));
        let votes = |memory| begin(NodeId(1), &folder, memory).map(|(_, replica)| replica.votes());
        assert!(votes(Memory::NeverStarted).unwrap());
        assert!(!votes(Memory::Lost).unwrap());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
