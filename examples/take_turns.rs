//! Threads on several machines that take turns at one printer.
//!
//! ```console
//! $ selvedge key mesh.key
//! $ cargo run --example take_turns -- mesh.key 1 127.0.0.1:7001 127.0.0.1:7002
//! $ cargo run --example take_turns -- mesh.key 2 127.0.0.1:7002 127.0.0.1:7001
//! $ cargo run --example take_turns -- mesh.key 3 127.0.0.1:7003 127.0.0.1:7001
//! ```
//!
//! Each process is a node with three threads. One of all these threads has the printer at a time;
//! kill a process while it prints, and the others go on when they are sure that it is gone (start
//! it again, with the same id), for there is no `takeover`: a printer does not check tokens. Ctrl-C
//! gives the printer back first.

#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]

use std::env;
use std::error::Error;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use selvedge::Exclusion;
use selvedge_camera::sections;
use selvedge_core::shared::gate::{EnterError, Limits};
use selvedge_core::{Member, NodeId};
use selvedge_seal::{Seal, read_key_file};
use selvedge_udp::{Clock, Host, SectionGate, Seed, Setup, Weather, new_life};
use tokio::sync::{mpsc, watch};

/// At most so many nodes are here at a time, with those that restart.
const MOST_NODES: u32 = 4;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let usage = "usage: take_turns KEY_FILE ID LISTEN [SEED..]";
    let key: PathBuf = arguments.next().ok_or(usage)?.into();
    // A process that is started again under its id ends its former life for all others.
    let id = NodeId(arguments.next().ok_or(usage)?.parse()?);
    let listen = arguments.next().ok_or(usage)?.parse()?;
    let mut seeds = Vec::new();
    for seed in arguments {
        seeds.push(Seed::named(&seed).await?);
    }
    let weather = watch::Sender::new(Weather::fair());
    // What membership tells is not needed here.
    let (events, _unread) = mpsc::channel(1);
    let host = Host::start(Setup {
        me: Member {
            id,
            incarnation: new_life().await?,
        },
        listen,
        socket: None,
        advertise: Vec::new(),
        seeds,
        config: Default::default(),
        exclusion: Some(Exclusion {
            sections: sections::Config::new(MOST_NODES),
            counting: None,
        }),
        election: None,
        seal: Some(Seal {
            keyring: read_key_file(&key)?,
            group: "printer".to_owned(),
            rate: None,
        }),
        seed: None,
        clock: Clock::start(),
        weather: weather.subscribe(),
        events,
    })
    .await?;

    let gate = host
        .section("printer".parse()?, None, Limits::default())
        .await?;
    for name in ["Ada", "Bob", "Cyd"] {
        let gate = gate.clone();
        thread::spawn(move || print_now_and_then(name, &gate));
    }
    tokio::signal::ctrl_c().await?;
    host.leave().await?;
    Ok(())
}

fn print_now_and_then(name: &str, gate: &SectionGate) {
    loop {
        match gate.blocking_enter_timeout(Duration::from_secs(60)) {
            Ok(guard) => {
                println!("{name} prints page {}", guard.token().number);
                thread::sleep(Duration::from_millis(700));
            }
            Err(EnterError::Closed) => return,
            Err(error) => println!("{name} does not print: {error}"),
        }
        thread::sleep(Duration::from_secs(1));
    }
}
