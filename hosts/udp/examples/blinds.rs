//! A routine that time triggers, on nodes that differ: three nodes in this process keep it together, and
//! each second one of them gives its command. The third node runs on a battery, so it leads less often.
//! The node that leads stops without an announcement, and the routine goes on:
//!
//! ```console
//! $ cargo run -p selvedge-udp --example blinds
//! ```

#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use selvedge_routine::trigger::Trigger;
use selvedge_routine::{Routine, Step};
use selvedge_udp::selvedge::Coordination;
use selvedge_udp::selvedge::core::shared::RecvError;
use selvedge_udp::selvedge::groups::{Node, Place, Selection, Weight};
use selvedge_udp::selvedge::kgroup::routines::Definition;
use selvedge_udp::selvedge::kgroup::{ConfigError, Event, LeaderEvent, Outcome, Site, devices};
use selvedge_udp::selvedge::membership::Config;
use selvedge_udp::{Handle, Host, NodeEvent, NodeId, Setup, Span};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

const BLINDS: NodeId = NodeId(101);
const PATIENCE: Duration = Duration::from_secs(60);

/// The site, which is equal on all nodes.
fn site() -> Result<Site, ConfigError> {
    let here = Place::default();
    let weights = [(1, Weight(16)), (2, Weight(16)), (3, Weight(4))];
    let nodes = weights.map(|(id, weight)| Node::new(id, here).with_weight(weight));
    let steps = vec![Step::new(BLINDS, "down".into())];
    // In a house rather `Trigger::Sun`, with the sun and the zone by `Setup::local_clock`.
    let down = Definition::new(Routine { steps }).with_trigger(Trigger::Every(Span::secs(1)));
    Site::new(
        Selection::new().with_failures(1),
        nodes,
        [(BLINDS, here)],
        1,
    )?
    .with_routine(down)
}

async fn start(id: u64, seeds: &[SocketAddr]) -> Result<Handle, Box<dyn Error>> {
    // Answers on one machine are fast: a failure is detected sooner than with the defaults.
    let membership = Config::default()
        .with_period(Span::millis(200))
        .with_jitter(Span::millis(20))
        .with_probe_timeout(Span::millis(60));
    let setup = Setup::new(NodeId(id), "127.0.0.1:0".parse()?)
        .membership(membership)
        .seeds(seeds.iter().copied())
        .coordination(Coordination::new(site()?), Span::secs(3_600))
        // The nodes of an example forget; others store what they promise: `state`.
        .stateless();
    Ok(Host::start(setup).await?)
}

/// Moves the blinds where this node leads their group, and reports its id and the command.
async fn serve(node: Handle, moved: UnboundedSender<(NodeId, u64)>) {
    let mut events = node.events_from_oldest();
    loop {
        let event = match events.recv().await {
            Ok(observed) => observed.event,
            Err(RecvError::Lagged { .. }) => continue,
            Err(RecvError::Closed) => return,
        };
        let NodeEvent::Groups(Event::Leader { event, .. }) = event else {
            continue;
        };
        // A report is refused if another node leads by then, which does the same.
        if let LeaderEvent::Devices(devices::Event::Ping { device }) = event {
            let _taken = node.reported(device, None).await.is_ok();
        } else if let LeaderEvent::Devices(devices::Event::Act { ticket, .. }) = event {
            let _read = moved.send((node.id(), ticket.number)).is_ok();
            let _taken = node.acted(ticket, Outcome::Done).await.is_ok();
        }
    }
}

/// The node that moves the blinds next.
async fn next(moves: &mut UnboundedReceiver<(NodeId, u64)>) -> Result<NodeId, Box<dyn Error>> {
    let moved = timeout(PATIENCE, moves.recv()).await?;
    let (node, number) = moved.ok_or("all nodes have stopped")?;
    println!("node {node} lets the blinds down (command {number})");
    Ok(node)
}

async fn run() -> Result<(), Box<dyn Error>> {
    let first = start(1, &[]).await?;
    let seeds = [first.address()];
    let nodes = [first, start(2, &seeds).await?, start(3, &seeds).await?];
    let (moved, mut moves) = unbounded_channel();
    for node in &nodes {
        tokio::spawn(serve(node.clone(), moved.clone()));
    }
    next(&mut moves).await?;
    let leader = next(&mut moves).await?;
    for node in nodes.iter().filter(|it| it.id() == leader) {
        node.kill().await;
    }
    println!("node {leader} has stopped without an announcement");
    // A command may have been on its way.
    while next(&mut moves).await? == leader {}
    next(&mut moves).await?;
    for node in nodes.iter().filter(|it| it.id() != leader) {
        node.kill().await;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    timeout(4 * PATIENCE, run()).await?
}

#[cfg(test)]
mod tests {
    #[test]
    fn time_triggers_a_routine_also_after_its_leader_has_stopped() {
        super::main().unwrap();
    }
}
