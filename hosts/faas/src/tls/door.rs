//! Takes connections by TLS, and hands them on to the broker inside.
//!
//! The broker has TLS of its own, and greets one client after the other: one that connects and says nothing
//! keeps all others out.

use core::convert::Infallible;
use core::net::SocketAddr;
use core::time::Duration;
use std::net::TcpListener;
use std::sync::Arc;
use std::{io, thread};

use tokio::io::{AsyncWriteExt as _, copy, split};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
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
    let listener = TcpListener::bind(listen)?;
    listener.set_nonblocking(true)?;
    let acceptor = TlsAcceptor::from(Arc::clone(&identity.server));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    thread::Builder::new()
        .name("tls".into())
        .spawn(move || runtime.block_on(serve(listener, inside, acceptor)).err())?;
    Ok(())
}

async fn serve(
    listener: TcpListener,
    inside: SocketAddr,
    acceptor: TlsAcceptor,
) -> io::Result<Infallible> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        // The semaphore is never closed.
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else {
            return Err(io::Error::other("no room"));
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    // What is wrong with a connection is its client's.
                    hand_on(stream, inside, acceptor).await.ok();
                    drop(permit);
                });
            }
            // A connection that went at once; or no file is left for one, and some end soon.
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
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
