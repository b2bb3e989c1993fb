//! Takes connections by TLS, and hands them on to the broker inside.
//!
//! The broker has TLS of its own, and greets one client after the other: one that connects and says nothing
//! keeps all others out.

use core::net::SocketAddr;
use core::time::Duration;
use std::io;
use std::sync::Arc;

use selvedge_door::accept;
use tokio::io::{AsyncWriteExt as _, copy, split};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::Identity;

/// How many connections there may be at a time; others wait.
const CONNECTIONS: usize = 4_096;
/// How long a client may take to greet, or to say good-bye.
const GREETING: Duration = Duration::from_secs(5);

/// Listens here until the process ends, and hands on to there.
///
/// # Errors
/// If it cannot listen.
pub(crate) fn open(listen: SocketAddr, inside: SocketAddr, identity: &Identity) -> io::Result<()> {
    let listener = accept::bind(listen)?;
    let acceptor = TlsAcceptor::from(Arc::clone(&identity.server));
    accept::start("tls", listener, CONNECTIONS, move |stream| {
        let acceptor = acceptor.clone();
        async move {
            // What is wrong with a connection is its client's.
            hand_on(stream, inside, acceptor).await.ok();
        }
    })
}

/// Goes on until either side ends.
async fn hand_on(stream: TcpStream, inside: SocketAddr, acceptor: TlsAcceptor) -> io::Result<()> {
    // Each packet is waited for.
    stream.set_nodelay(true)?;
    let outer = timeout(GREETING, acceptor.accept(stream)).await??;
    let inner = TcpStream::connect(inside).await?;
    inner.set_nodelay(true)?;
    let (mut from_client, mut to_client) = split(outer);
    let (mut from_broker, mut to_broker) = split(inner);
    let ended = tokio::select! {
        ended = copy(&mut from_client, &mut to_broker) => ended,
        ended = copy(&mut from_broker, &mut to_client) => ended,
    };
    timeout(GREETING, to_client.shutdown()).await??;
    ended.map(drop)
}
