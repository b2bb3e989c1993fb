//! Accepts connections up to a limit, even after errors of single ones.

use core::convert::Infallible;
use core::net::SocketAddr;
use core::time::Duration;
use std::net::TcpListener;
use std::sync::Arc;
use std::{io, thread};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;

/// The wait after a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// A socket of a tokio runtime that accepts connections.
pub trait Listener: Send {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Waits for a connection.
    fn accept(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

impl Listener for tokio::net::TcpListener {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<TcpStream> {
        self.accept().await.map(|it| it.0)
    }
}

#[cfg(unix)]
impl Listener for UnixListener {
    type Stream = UnixStream;

    async fn accept(&self) -> io::Result<UnixStream> {
        self.accept().await.map(|it| it.0)
    }
}

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
    serve(listener, most, converse).await
}

/// Accepts connections in a task of a tokio runtime, up to this number at a time; others wait.
///
/// # Errors
/// Never in practice: errors of single connections are passed over.
pub async fn serve<L: Listener, C: Future<Output = ()> + Send + 'static>(
    listener: L,
    most: usize,
    converse: impl Fn(L::Stream) -> C,
) -> io::Result<Infallible> {
    let room = Arc::new(Semaphore::new(most));
    loop {
        // The semaphore is never closed.
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else {
            return Err(io::Error::other("no room"));
        };
        match Listener::accept(&listener).await {
            Ok(stream) => {
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
