//! The lock over UDP.

use std::error::Error;
use std::net::SocketAddr;

use selvedge_core::{Member, NodeId};
use selvedge_host::{Handle, Host, Setup};

use crate::machine::{Command, Lock, Rules};

// ANCHOR: start
/// Starts node `id` of the service. All nodes have one list of addresses; node 0 is the server.
pub(crate) async fn start(
    id: u64,
    socket: std::net::UdpSocket,
    peers: Vec<(NodeId, SocketAddr)>,
) -> Result<Handle<Lock>, Box<dyn Error>> {
    let (me, server) = (Member::new(id, 0), Member::new(0, 0));
    let setup = Setup::bound(me, socket).peers(peers);
    Ok(Host::start(Lock::new(me, server, Rules::Reminds), setup).await?)
}

/// Enters, works and exits.
pub(crate) async fn take_turn(node: &Handle<Lock>) -> Result<(), Box<dyn Error>> {
    let mut events = node.events();
    node.submit(Command::Enter).await?;
    while events.recv().await? != "entered" {}
    println!("inside");
    node.submit(Command::Exit).await?;
    Ok(())
}
// ANCHOR_END: start

/// A server and two clients in one process.
pub(crate) async fn serve() -> Result<(), Box<dyn Error>> {
    let (mut sockets, mut peers) = (Vec::new(), Vec::new());
    for id in 0..3 {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0")?;
        peers.push((NodeId(id), socket.local_addr()?));
        sockets.push(socket);
    }
    let mut nodes = Vec::new();
    for (id, socket) in (0..).zip(sockets) {
        nodes.push(start(id, socket, peers.clone()).await?);
    }
    for client in nodes.iter().skip(1) {
        take_turn(client).await?;
    }
    for node in nodes {
        node.stop().await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn both_clients_enter() {
        let turns = tokio::time::timeout(std::time::Duration::from_secs(30), super::serve());
        turns.await.unwrap().unwrap();
    }
}
