//! Accepts connections up to a limit, even after errors of single ones.

use core::convert::Infallible;
use core::net::SocketAddr;
use core::time::Duration;
use std::net::TcpListener;
use std::sync::Arc;
use std::{io, thread};

use tokio::net::TcpStream;
use tokio::sync::Semaphore;

/// The wait after a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// Listens there. Connections wait until they are [taken](start).
///
/// # Errors
/// If it cannot listen.
pub fn bind(listen: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(listen)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Accepts connections on a thread of this name until the process ends, up to this number at a time; others
/// wait.
///
/// # Errors
/// If the thread does not start.
pub fn start<C: Future<Output = ()> + Send + 'static>(
    name: &str,
    listener: TcpListener,
    most: usize,
    converse: impl Fn(TcpStream) -> C + Send + 'static,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    thread::Builder::new()
        .name(name.into())
        .spawn(move || runtime.block_on(take(listener, most, converse)).err())?;
    Ok(())
}

/// The loop of [`start`], on its thread.
async fn take<C: Future<Output = ()> + Send + 'static>(
    listener: TcpListener,
    most: usize,
    converse: impl Fn(TcpStream) -> C,
) -> io::Result<Infallible> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let room = Arc::new(Semaphore::new(most));
    loop {
        // The semaphore is never closed.
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else {
            return Err(io::Error::other("no room"));
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let conversation = converse(stream);
                tokio::spawn(async move {
                    conversation.await;
                    drop(permit);
                });
            }
            // A connection that went at once; or no file is left for one, and some end soon.
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}
