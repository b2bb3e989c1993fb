//! A counter that three nodes hold together. It survives `kill -9` of any node, and of all at once.
//! Type it into three terminals, with `--first` only at the first start of each node:
//!
//! ```text
//! cargo run --release --example counter -- 1 counter1 --first
//! cargo run --release --example counter -- 2 counter2 --first
//! cargo run --release --example counter -- 3 counter3 --first
//! ```
//!
//! Each line is a number to add. All nodes print the count after each addition; two of them decide.

use core::error::Error;
use core::net::SocketAddr;
use std::io::stdin;
use std::thread;

use selvedge_core::durable::Durable;
use selvedge_core::{Member, NodeId, Span};
use selvedge_host::{Host, Setup, block_on};
use selvedge_replica::{Command, Config, Configuration, Event, Fact, Replica, State, Stored};
use selvedge_store::{Beginning, Memory, Schema};
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

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [id, folder, first @ ..] = &args[..] else {
        return Err("give ID FOLDER, and --first at the first start of this node".into());
    };
    let memory = first.first().map_or(Memory::Kept, |_| Memory::NeverStarted);
    let id = NodeId(id.parse()?);
    let members = [1, 2, 3].map(|id| Member::new(id, 0));
    let address = |id: NodeId| SocketAddr::from(([127, 0, 0, 1], 7_000 + id.0 as u16));
    let opened = memory.open::<Stored<Counter>, Fact<Counter>>(folder.as_ref(), SCHEMA, id);
    let (store, beginning) = opened?;
    let replica = match beginning {
        Beginning::First(me) | Beginning::Lost(me) => {
            let first = Configuration::of(members);
            Replica::new(me, Config::new(), first, Counter::default())?
        }
        Beginning::Later(me, found) => {
            let mut replica = Replica::restore(me, Config::new(), found.base)?;
            found.facts.iter().try_for_each(|fact| replica.fold(fact))?;
            replica
        }
    };
    let setup = Setup::new(replica.me(), address(id))
        .heartbeat(Span::millis(100))
        .peers(members.map(|member| (member.id, address(member.id))));
    let base = |replica: &Replica<Counter>| (replica.me(), replica.stored());
    let node = Host::blocking_start_durable(replica, setup, store, base)?;

    let (printer, mut events) = (node.clone(), node.events());
    thread::spawn(move || {
        while let Ok(event) = events.blocking_recv() {
            if let Event::Applied { by, outcome, .. } = event {
                println!("{outcome}, by node {}", by.id);
            }
        }
        println!("ended: {:?}", block_on(printer.ended()));
    });
    for line in stdin().lines() {
        match line?.parse() {
            Ok(number) => node.blocking_submit(Command::Propose(number))?,
            Err(error) => println!("type a number: {error}"),
        }
    }
    Ok(block_on(node.ended())?)
}
