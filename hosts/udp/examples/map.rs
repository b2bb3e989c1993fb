//! A named map on three nodes: a change that names the version that it replaces, a read, and a
//! watch. One node stops without an announcement, and the map still answers. All nodes are in this process:
//!
//! ```console
//! $ cargo run -p selvedge-udp --example map
//! ```

#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use selvedge_udp::selvedge::groups::store::{Expected, Stored};
use selvedge_udp::selvedge::groups::{Node, Place, Selection};
use selvedge_udp::selvedge::membership::Config;
use selvedge_udp::selvedge::{Coordination, kgroup};
use selvedge_udp::{Handle, Host, NodeId, Setup, Span};
use tokio::time::timeout;

/// A request waits for as long as too few nodes are up, so it gets a limit.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts a node of a mesh of three. All of them have the same site.
async fn start(id: u64, seeds: &[SocketAddr]) -> Result<Handle, Box<dyn Error>> {
    let nodes = (1..=3).map(|id| Node::new(id, Place::default()));
    // Each map is at 2 * 1 + 1 nodes, of which one may fail.
    let site = kgroup::Site::new(Selection::new().with_failures(1), nodes, [], 1)?;
    // Answers on one machine are fast: a failure is detected sooner than with the defaults.
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

async fn run() -> Result<(), Box<dyn Error>> {
    let first = start(1, &[]).await?;
    let second = start(2, &[first.address()]).await?;
    let third = start(3, &[first.address()]).await?;
    for node in [&first, &second, &third] {
        node.wait_for(|state| state.members.len() == 3).await?;
    }
    println!("three nodes are members");

    let mut front = third.map("doors").watch("front").await?;
    assert_eq!(front.next().await?, None);
    let stored = first.map("doors").put("front", b"shut").await?;
    println!("node 1 puts \"shut\": {stored:?}");
    let shut = front.next().await?.ok_or("the entry is there")?;
    println!(
        "node 3 watches: version {}, {:?}",
        shut.version,
        str::from_utf8(&shut.value)?
    );

    // The change is made if no other one came between. `Expected::Absent` is for a new entry.
    let expected = Expected::Version(shut.version);
    let doors = second.map("doors");
    let opened = doors
        .compare_and_set("front", expected, Some(b"open"))
        .await?;
    println!(
        "node 2 sets \"open\" in place of version {}: {opened:?}",
        shut.version
    );
    assert!(matches!(opened, Stored::Done { .. }));
    let late = first
        .map("doors")
        .compare_and_set("front", expected, Some(b"locked"))
        .await?;
    println!(
        "node 1 sets \"locked\" in place of version {}: {late:?}",
        shut.version
    );
    assert!(matches!(late, Stored::Mismatch { .. }));
    let open = front.next().await?.ok_or("the entry is there")?;
    assert_eq!(first.map("doors").get("front").await?.as_ref(), Some(&open));

    first.kill().await;
    println!("node 1 has stopped without an announcement");
    let entry = timeout(PATIENCE, doors.get("front")).await??;
    assert_eq!(entry, Some(open));
    let shut = timeout(PATIENCE, doors.put("front", b"shut again")).await??;
    println!("node 2 puts \"shut again\": {shut:?}");
    let entry = timeout(PATIENCE, front.next())
        .await??
        .ok_or("the entry is there")?;
    assert_eq!(entry.value.to_vec(), b"shut again");
    println!(
        "node 3 watches: version {}, {:?}",
        entry.version,
        str::from_utf8(&entry.value)?
    );
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
    fn a_map_answers_after_one_of_its_nodes_has_stopped() {
        super::main().unwrap();
    }
}
