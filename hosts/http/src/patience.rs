//! A connection that is closed when its client stands still.

use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;
use std::io;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// The longest time for which a client may leave waiting bytes unread.
const WRITE: Duration = Duration::from_secs(10);
/// A stream on which reading and writing fail when nothing moves for too long.
#[derive(Debug)]
pub(crate) struct Patience<S> {
    stream: S,
    /// The longest time for which a client may send and read nothing.
    limit: Duration,
    /// The end of the wait for any byte.
    idle: Pin<Box<Sleep>>,
    /// The end of the wait for a write, while bytes wait to be written.
    stuck: Option<Pin<Box<Sleep>>>,
}

impl<S> Patience<S> {
    pub(crate) fn new(stream: S, limit: Duration) -> Self {
        let idle = Box::pin(sleep(limit));
        let stuck = None;
        Self {
            stream,
            limit,
            idle,
            stuck,
        }
    }

    fn moves(&mut self) {
        self.idle.as_mut().reset(deadline(self.limit));
    }

    /// The result of a write, or an error if it has waited for too long.
    fn written<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stuck = None;
            self.moves();
            return written;
        }
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(sleep(WRITE)));
        ready!(stuck.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

#[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
fn deadline(time: Duration) -> Instant {
    Instant::now() + time
}

impl<S: AsyncRead + Unpin> AsyncRead for Patience<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if read.is_ready() {
            self.moves();
            return read;
        }
        ready!(self.idle.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patience<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.written(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.written(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.written(cx, ended)
    }
}
