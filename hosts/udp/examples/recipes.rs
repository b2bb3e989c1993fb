//! Recipes of coordination on three nodes: a lock, an election, a queue and a registry. The node that leads
//! stops without an announcement, and another one leads after the time to live. All nodes are in this process:
//!
//! ```console
//! $ cargo run -p selvedge-udp --example recipes
//! ```

#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use selvedge_udp::recipes::election::Election;
use selvedge_udp::recipes::lock::Lock;
use selvedge_udp::recipes::queue::Queue;
use selvedge_udp::recipes::registry::Registry;
use selvedge_udp::selvedge::groups::{Node, Place, Selection};
use selvedge_udp::selvedge::membership::Config;
use selvedge_udp::selvedge::{Coordination, kgroup};
use selvedge_udp::{Handle, Host, NodeId, Setup, Span};
use tokio::time::timeout;

/// A request waits for as long as too few nodes are up, so it gets a limit.
const PATIENCE: Duration = Duration::from_secs(60);

/// The time for which a node that stopped still counts. Other nodes have their changes in the meantime.
const TTL: Span = Span::secs(3);

/// Starts a node of a mesh of three. All of them have the same site.
async fn start(id: u64, seeds: &[SocketAddr]) -> Result<Handle, Box<dyn Error>> {
    let nodes = (1..=3).map(|id| Node::new(id, Place::default()));
    let site = kgroup::Site::new(Selection::new().with_failures(1), nodes, [], 1)?;
    let membership = Config::default()
        .with_period(Span::millis(200))
        .with_jitter(Span::millis(20))
        .with_probe_timeout(Span::millis(60));
    let setup = Setup::new(NodeId(id), "127.0.0.1:0".parse()?)
        .membership(membership)
        .seeds(seeds.iter().copied())
        .coordination(Coordination::new(site), Span::secs(3_600))
        // The nodes of an example forget; others store what they promise: `state`.
        .stateless();
    Ok(Host::start(setup).await?)
}

/// One node has the lock at a time, and the resource would refuse smaller tokens.
async fn print(node: &Handle) -> Result<(), Box<dyn Error>> {
    let lock = Lock::new(node.map("locks"), "printer", TTL);
    let guard = lock.acquire().await?;
    println!("node {} prints with {:?}", node.id(), guard.token());
    guard.release().await?;
    Ok(())
}

async fn run() -> Result<(), Box<dyn Error>> {
    let first = start(1, &[]).await?;
    let second = start(2, &[first.address()]).await?;
    let third = start(3, &[first.address()]).await?;
    for node in [&first, &second, &third] {
        node.wait_for(|state| state.members.len() == 3).await?;
    }
    tokio::try_join!(print(&first), print(&second), print(&third))?;

    let jobs = Queue::new(third.map("jobs"), "print");
    jobs.push(b"page 1").await?;
    let taken = Queue::new(second.map("jobs"), "print").pop().await?;
    println!("node 2 takes {:?}", str::from_utf8(&taken)?);
    assert_eq!(jobs.try_pop().await?, None);

    let services = Registry::new(first.map("services"));
    let listed = services.register("print", 1, "192.0.2.1:631", TTL).await?;
    let seen = Registry::new(third.map("services"))
        .resolve("print")
        .await?;
    println!("node 3 finds {seen:?}");
    assert_eq!(seen.len(), 1);
    listed.end().await?;
    assert!(services.resolve("print").await?.is_empty());

    let candidate = |node| Election::new(Handle::map(node, "elections"), "heating", TTL);
    let mut observer = candidate(&third).observe().await?;
    assert_eq!(observer.next().await?, None);
    let leads = candidate(&first).campaign(b"node 1").await?;
    let leader = observer.next().await?.ok_or("one leads")?;
    println!("node 3 sees {:?} lead", str::from_utf8(&leader.value)?);
    first.kill().await;
    println!("node 1 has stopped without an announcement");
    let next = timeout(PATIENCE, candidate(&second).campaign(b"node 2")).await??;
    assert!(next.token() > leads.token());
    // The candidates between are skipped, or seen.
    while observer
        .next()
        .await?
        .is_none_or(|it| *it.value != *b"node 2")
    {}
    println!("node 3 sees node 2 lead, with {:?}", next.token());
    next.resign().await?;
    second.leave().await?;
    third.kill().await;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    timeout(2 * PATIENCE, run()).await?
}

#[cfg(test)]
mod tests {
    #[test]
    fn another_candidate_leads_after_the_leader_has_stopped() {
        super::main().unwrap();
    }
}
