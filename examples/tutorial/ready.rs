//! The ready lock, and a map.

use std::error::Error;
use std::net::SocketAddr;

use selvedge_udp::selvedge::groups::{Node, Place, Selection};
use selvedge_udp::selvedge::{Coordination, kgroup};
use selvedge_udp::{FencingToken, Handle, Host, NodeId, Setup, Span};

// ANCHOR: ready
/// Starts node `id` of a mesh of three.
async fn start(id: u64, seeds: Vec<SocketAddr>) -> Result<Handle, Box<dyn Error>> {
    let nodes = (1..=3).map(|id| Node::new(id, Place::default()));
    let site = kgroup::Site::new(Selection::new().with_failures(1), nodes, [], 1)?;
    let setup = Setup::new(NodeId(id), "127.0.0.1:0".parse()?)
        .seeds(seeds)
        .locks(3)
        .coordination(Coordination::new(site), Span::secs(3_600))
        .stateless();
    Ok(Host::start(setup).await?)
}

/// Prints on one node, which stores a note about it; another node watches the note.
pub(crate) async fn run() -> Result<(), Box<dyn Error>> {
    let first = start(1, vec![]).await?;
    let second = start(2, vec![first.address()]).await?;
    let third = start(3, vec![first.address()]).await?;
    for node in [&first, &second, &third] {
        node.wait_for(|state| state.members.len() == 3).await?;
    }
    let mut jobs = third.map("jobs").watch("printer").await?;
    assert_eq!(jobs.next().await?, None);

    let guard = second.lock("printer".parse()?).await?;
    let token = FencingToken::from(guard.token());
    println!("printing, token {token}");
    second.map("jobs").put("printer", b"page 1").await?;
    drop(guard); // The lock is free again.

    let entry = jobs.next().await?.ok_or("the entry is there")?;
    assert_eq!(
        (entry.version, entry.value.to_vec()),
        (1, b"page 1".to_vec())
    );
    for node in [third, second, first] {
        node.leave().await?;
    }
    Ok(())
}
// ANCHOR_END: ready

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn a_node_prints_and_another_one_sees_the_note() {
        let run = tokio::time::timeout(std::time::Duration::from_secs(60), super::run());
        run.await.unwrap().unwrap();
    }
}
