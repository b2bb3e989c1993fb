//! A page under bytes that no browser sends: for the fuzz targets of hosts.

use core::future::{Future as _, poll_fn};
use core::pin::pin;
use core::time::Duration;
use std::io;

use axum::Router;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::page::Page;
use crate::serve::{IDLE, converse, guarded};

/// The number of turns that a connection gets before its client has sent all.
const YIELDS: u32 = 64;
/// The longest time until an answer ends.
const PATIENCE: Duration = Duration::from_secs(10);
/// The statuses that a page may answer with.
const KNOWN: [&[u8]; 10] = [
    b"200", b"202", b"400", b"403", b"404", b"405", b"409", b"414", b"431", b"503",
];

/// Sends these bytes to a router behind a server. At the end, `end` has to end the events for listeners.
/// Returns the status of the answer, if the bytes were a whole request.
///
/// # Panics
/// If the answer is not HTTP, or is a defect, or does not end.
pub fn is_answered(bytes: &[u8], router: Router, page: &Page, end: impl FnOnce()) -> Option<u16> {
    is_answered_with(bytes, router, page, || (), end)
}

/// The same, where a router waits for work that `turn` does at each call.
///
/// # Panics
/// If the answer is not HTTP, or is a defect, or does not end.
pub fn is_answered_with(
    bytes: &[u8],
    router: Router,
    page: &Page,
    turn: impl FnMut(),
    end: impl FnOnce(),
) -> Option<u16> {
    let answer = answer(bytes, router, page, turn, end);
    let is_late = |it: &io::Error| it.kind() == io::ErrorKind::TimedOut;
    assert!(!answer.as_ref().is_err_and(is_late), "it has no end");
    let answer = answer.unwrap_or_default();
    if answer.is_empty() {
        return None; // It was no whole request.
    }
    let status = answer.strip_prefix(b"HTTP/1.");
    let status = status.and_then(|it| it.get(2..5));
    assert!(
        status.is_some_and(|it| KNOWN.contains(&it)),
        "the page answers {:?}",
        String::from_utf8_lossy(&answer)
    );
    core::str::from_utf8(status?).ok()?.parse().ok()
}

fn answer(
    bytes: &[u8],
    router: Router,
    page: &Page,
    mut turn: impl FnMut(),
    end: impl FnOnce(),
) -> io::Result<Vec<u8>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    let router = guarded(router, None, page);
    runtime.block_on(async {
        let (mut here, there) = tokio::io::duplex(1 << 20);
        let serving = tokio::spawn(converse(there, router, IDLE));
        // A connection that is refused early is not read to its end.
        here.write_all(bytes).await.ok();
        for _ in 0..YIELDS {
            turn();
            tokio::task::yield_now().await;
        }
        here.shutdown().await?;
        // A listener gets the end of events even if the rest of its bytes is not read.
        end();
        let mut answer = Vec::new();
        let read = tokio::time::timeout(PATIENCE, here.read_to_end(&mut answer));
        let mut read = pin!(read);
        let read = poll_fn(|context| {
            turn();
            let read = read.as_mut().poll(context);
            if read.is_pending() {
                context.waker().wake_by_ref();
            }
            read
        });
        read.await??;
        serving.await.map_err(io::Error::other)?;
        Ok(answer)
    })
}
