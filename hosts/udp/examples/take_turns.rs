//! Threads on several machines that take turns at one printer.
//!
//! ```console
//! $ selvedge key mesh.key
//! $ cargo run --example take_turns -- mesh.key 1 127.0.0.1:7001 127.0.0.1:7002
//! $ cargo run --example take_turns -- mesh.key 2 127.0.0.1:7002 127.0.0.1:7001
//! $ cargo run --example take_turns -- mesh.key 3 127.0.0.1:7003 127.0.0.1:7001
//! ```
//!
//! Each process is a node with three threads. One of all these threads has the printer at a time.
//! Kill a process while it prints: after a minute the others print which member they wait for, and
//! they go on when its end is certain (start it again, with the same id). There is no `takeover`,
//! because a printer does not check tokens. Enter
//! gives the printer back first, and leaves. The program has no async runtime: the node has a
//! thread of its own.

#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]

use std::env;
use std::error::Error;
use std::path::Path;
use std::thread;
use std::time::Duration;

use selvedge_udp::seal::{Seal, read_key_file};
use selvedge_udp::selvedge::core::shared::gate::EnterError;
use selvedge_udp::selvedge::lock::sections::Name;
use selvedge_udp::{FencingToken, Handle, Host, LockError, NodeId, Seed, Setup};

/// The largest number of nodes at one time, including nodes that restart.
const MOST_NODES: u32 = 4;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let usage = "usage: take_turns KEY_FILE ID LISTEN [SEED..]";
    let keys = read_key_file(Path::new(&arguments.next().ok_or(usage)?))?;
    let id = NodeId(arguments.next().ok_or(usage)?.parse()?);
    let listen = arguments.next().ok_or(usage)?.parse()?;
    let mut seeds = Vec::new();
    for seed in arguments {
        seeds.push(Seed::blocking_named(&seed)?);
    }
    // The node draws a life that it did not have before. So a process that is started again under
    // its id ends its former life for all others.
    let setup = Setup::new(id, listen)
        .seeds(seeds)
        .seal(Seal::new(keys, "printer"))
        .locks(MOST_NODES);
    let node = Host::blocking_start(setup)?;

    let printer: Name = "printer".parse()?;
    let threads = ["Ada", "Bob", "Cyd"].map(|name| {
        let node = node.clone();
        thread::spawn(move || print_now_and_then(name, &node, printer))
    });
    wait_for_enter()?;
    node.blocking_leave()?;
    for thread in threads {
        thread.join().map_err(|_| "a thread panicked")?;
    }
    Ok(())
}

fn print_now_and_then(name: &str, node: &Handle, printer: Name) {
    loop {
        match node.blocking_lock_timeout(printer, Duration::from_secs(60)) {
            Ok(guard) => {
                println!("{name} prints, token {}", FencingToken::from(guard.token()));
                thread::sleep(Duration::from_millis(700));
            }
            // The node has stopped, or is about to.
            Err(LockError::Unavailable(_) | LockError::NotEntered(EnterError::Closed)) => return,
            Err(error) => println!("{name} does not print: {error}"),
        }
        thread::sleep(Duration::from_secs(1));
    }
}

fn wait_for_enter() -> Result<(), std::io::Error> {
    println!("press Enter to leave");
    std::io::stdin().read_line(&mut String::new()).map(drop)
}
