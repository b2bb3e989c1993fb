//! The present state for all listeners, at each change.

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

/// The most listeners; others are refused.
pub const LISTENERS: usize = 16;
/// The delay after which a page that was cut off connects again, in milliseconds.
const RETRY: &str = "retry: 2000\n";

/// The time without an event after which a listener receives a comment.
const QUIET: Duration = Duration::from_secs(15);

/// A value in JSON, without a line feed.
pub type Json = Arc<str>;

/// The present state as server-sent events: each listener receives the state at once, and again at each
/// change. A listener that is behind continues with the latest state, and after 15 s without an event it
/// receives a comment. Up to 16 may listen.
#[derive(Clone, Debug)]
pub struct Events {
    notified: watch::Receiver<Json>,
    room: Arc<Semaphore>,
}

impl Events {
    /// Events of the states that are sent to this channel.
    #[must_use]
    pub fn new(notified: watch::Receiver<Json>) -> Self {
        let room = Arc::new(Semaphore::new(LISTENERS));
        Self { notified, room }
    }

    /// The present state.
    #[must_use]
    pub fn latest(&self) -> Json {
        Arc::clone(&self.notified.borrow())
    }

    /// The response to a listener: events, or a refusal if there are too many listeners.
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
        // A comment, without which the server would end the connection.
        Err(_) => ":\n\n".into(),
    };
    Some((Ok(event), (notified, permit, "")))
}
