//! A replicated map with compare-and-set and watches, over UDP and an embedded database.
//! It survives `kill -9` of any minority at any time, and of all nodes at once: an update that was
//! reported as done stays done.
//!
//! Type it into three terminals, each with its own `--id`, `--listen` and `--data`; `--first` only
//! at the first start:
//!
//! ```text
//! alias map='cargo run --release -p selvedge-examples --example replicated_map --'
//! map --id 1 --listen 127.0.0.1:7001 --peer 2=127.0.0.1:7002 --peer 3=127.0.0.1:7003 --data map1 --first
//! map --id 2 --listen 127.0.0.1:7002 --peer 1=127.0.0.1:7001 --peer 3=127.0.0.1:7003 --data map2 --first
//! map --id 3 --listen 127.0.0.1:7003 --peer 1=127.0.0.1:7001 --peer 2=127.0.0.1:7002 --data map3 --first
//! ```
//!
//! Then type commands into any of them:
//!
//! ```text
//! set KEY VALUE
//! cas KEY OLD VALUE     sets if the key holds OLD: a value, @REVISION, or - for an absent key
//! get KEY               its value, with all updates that were done anywhere before
//! watch KEY             prints each later value, in order; after a long absence only the last one
//! status
//! ```
//!
//! Lines do not wait for each other: an answer comes when it is ready, with its line in front.
//!
//! | event | reaction |
//! |---|---|
//! | a node is killed, or the power fails | start it again without `--first`: it has its memory, and votes at once |
//! | its directory is lost | start it with `--forgot`, and never with `--first`: it has no vote until the others have named it again. A node that forgets, and votes as before, breaks promises that it gave |
//! | a quorum is missing | answers wait. An update through a node that is killed meanwhile may have been done or not: `get` shows it, and `cas` with a revision does nothing twice |
//! | the database fails or is damaged | the process ends with an error. A later start continues from the stored data |
//! | the input ends | nothing: the others count on this member, and its answers are still to come. Ctrl-C ends it, as `kill -9` does |
//! | the output is not read | a closed output is ignored; a slow reader delays the member |
//!
//! `map.rs` has the state, `storage.rs` the database, `host.rs` the setup, `console.rs` the lines.
//! All nodes start with the same members. Datagrams are taken from the members' addresses without a
//! check; `selvedge-seal` makes them secret and safe from forgery.

#![allow(
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]
mod console;
mod host;
mod map;
mod storage;
#[cfg(test)]
mod tests;

use core::convert::Infallible;
use core::error::Error;
use core::fmt::Display;
use core::net::SocketAddr;
use core::str::FromStr;
use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::ExitCode;

use selvedge_core::{Member, NodeId};
use selvedge_replica::Configuration;

use crate::storage::Memory;

const USAGE: &str = "give --id N --listen ADDRESS --data DIR, --peer N=ADDRESS for each other member, and at the first start --first";

fn main() -> ExitCode {
    let Err(error) = run(std::env::args().skip(1));
    eprintln!("replicated_map: {error}");
    ExitCode::FAILURE
}

fn run(mut args: impl Iterator<Item = String>) -> Result<Infallible, Box<dyn Error>> {
    let (mut id, mut listen, mut data) = (None, None, None);
    let (mut peers, mut memory) = (BTreeMap::new(), Memory::Kept);
    while let Some(name) = args.next() {
        let mut value = || args.next().ok_or(USAGE);
        match name.as_str() {
            "--id" => id = Some(NodeId(parse(&value()?)?)),
            "--listen" => listen = Some(parse::<SocketAddr>(&value()?)?),
            "--data" => data = Some(PathBuf::from(value()?)),
            "--peer" => {
                let peer = value()?;
                let (id, address) = peer.split_once('=').ok_or(USAGE)?;
                peers.insert(NodeId(parse(id)?), parse::<SocketAddr>(address)?);
            }
            "--first" => memory = Memory::NeverStarted,
            "--forgot" => memory = Memory::Lost,
            _ => return Err(format!("{name} is no argument: {USAGE}").into()),
        }
    }
    let (id, listen, data) = (id.ok_or(USAGE)?, listen.ok_or(USAGE)?, data.ok_or(USAGE)?);
    let mut members: Vec<NodeId> = peers.keys().copied().chain([id]).collect();
    members.sort_unstable();
    let first = Configuration::of(members.into_iter().map(|id| Member::new(id.0, 0)));
    let socket =
        UdpSocket::bind(listen).map_err(|it| format!("cannot listen at {listen}: {it}"))?;
    let (store, replica) = storage::open(&data, id, memory, first)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(host::run(replica, store, socket, peers))
}

fn parse<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|it| format!("{text:?}: {it}: {USAGE}"))
}
