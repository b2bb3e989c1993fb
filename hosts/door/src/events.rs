//! What is told to all that listen, each time that it changes.

use core::convert::Infallible;
use core::time::Duration;
use std::sync::Arc;

use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;

/// How many may listen; others are refused.
pub const LISTENERS: usize = 16;
/// After how many milliseconds a page that was cut off comes back.
const RETRY: &str = "retry: 2000\n";

/// After how long without news a listener hears that the host is there.
const QUIET: Duration = Duration::from_secs(15);

/// Something in JSON, without a line feed.
pub type Json = Arc<str>;

/// What is known, as server-sent events: each listener is told what is known now, and then each time that it
/// changes. One that is behind goes on with the latest, and one that is told nothing for 15 s hears a comment.
/// Up to 16 may listen.
#[derive(Clone, Debug)]
pub struct Events {
    notified: watch::Receiver<Json>,
    room: Arc<Semaphore>,
}

impl Events {
    /// Events of what is sent here.
    #[must_use]
    pub fn new(notified: watch::Receiver<Json>) -> Self {
        let room = Arc::new(Semaphore::new(LISTENERS));
        Self { notified, room }
    }

    /// What is known now.
    #[must_use]
    pub fn latest(&self) -> Json {
        Arc::clone(&self.notified.borrow())
    }

    /// The answer to one that listens: events, or that too many listen.
    pub fn listen(self) -> Response {
        let Ok(permit) = self.room.try_acquire_owned() else {
            let why = format!("{LISTENERS} listen already: close another page\n");
            let header = [(RETRY_AFTER, "2")];
            return (StatusCode::SERVICE_UNAVAILABLE, header, why).into_response();
        };
        let mut notified = self.notified;
        notified.mark_changed();
        let events = stream::unfold((notified, permit, RETRY), next);
        let header = [(CONTENT_TYPE, "text/event-stream")];
        (header, Body::from_stream(events)).into_response()
    }
}

type Listener = (watch::Receiver<Json>, OwnedSemaphorePermit, &'static str);

async fn next(
    (mut notified, permit, before): Listener,
) -> Option<(Result<String, Infallible>, Listener)> {
    let event = match timeout(QUIET, notified.changed()).await {
        Ok(changed) => {
            changed.ok()?;
            format!("{before}data: {}\n\n", *notified.borrow_and_update())
        }
        // A comment, without which the door would end the connection.
        Err(_) => ":\n\n".into(),
    };
    Some((Ok(event), (notified, permit, "")))
}
