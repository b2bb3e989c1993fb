//! A member: the host of its replica, the lines that are typed, and the events.

use core::convert::Infallible;
use core::error::Error;
use core::net::SocketAddr;
use std::collections::BTreeMap;
use std::io::{self, BufRead};
use std::net::UdpSocket;
use std::thread;

use selvedge_core::shared::{Limits, RecvError};
use selvedge_core::{NodeId, Span};
use selvedge_host::{Host, Setup};
use selvedge_replica::Replica;
use tokio::sync::mpsc::{self, Receiver};

use crate::console::Console;
use crate::map::Map;
use crate::storage::{self, Memories};

const HEARTBEAT: Span = Span::millis(100);
/// The number of events that may wait for the console: more than one round of the host has.
const EVENTS: usize = 4_096;

/// Runs until storage fails.
pub(crate) async fn run(
    replica: Replica<Map>,
    store: Memories,
    socket: UdpSocket,
    peers: BTreeMap<NodeId, SocketAddr>,
) -> Result<Infallible, Box<dyn Error>> {
    let me = replica.me();
    let limits = Limits {
        events: EVENTS.try_into()?,
        ..Limits::default()
    };
    let setup = Setup::bound(me, socket)
        .peers(peers)
        .heartbeat(HEARTBEAT)
        .limits(limits);
    let node = Host::start_durable(replica, setup, store, storage::base).await?;
    let (mut lines, mut events) = (lines(), node.events());
    let mut console = Console::new(node.clone(), me);
    loop {
        let done = tokio::select! {
            Some(line) = lines.recv() => console.ask(line).await,
            event = events.recv() => match event {
                Ok(event) => console.on_event(event).await,
                Err(RecvError::Lagged { .. }) => console.on_lag().await,
                Err(RecvError::Closed) => break,
            },
        };
        if done.is_err() {
            break;
        }
    }
    node.ended().await?;
    Err("the host was stopped".into())
}

/// The lines that are typed, read in a thread of their own: a read from a terminal cannot be cut off.
fn lines() -> Receiver<String> {
    let (typed, lines) = mpsc::channel(1_024);
    thread::spawn(move || {
        for line in io::stdin().lock().split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            if typed.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}
