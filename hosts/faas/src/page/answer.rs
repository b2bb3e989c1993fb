//! What requests are answered.

use core::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream;
use selvedge_door::{NoChance, Page};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::{Json, LISTENERS};

/// The page. `NONCE` stands for what its style and its program are known by.
const PAGE: &str = include_str!("page.html");
/// After how many milliseconds a page that was cut off comes back.
const RETRY: &str = "retry: 2000\n";

#[derive(Clone)]
struct Shared {
    told: watch::Receiver<Json>,
    listeners: Arc<Semaphore>,
    page: Page,
}

/// The page.
///
/// # Errors
/// When the system has no chance to give.
pub(crate) fn page() -> Result<Page, NoChance> {
    Page::new(PAGE)
}

/// Answers all requests that a door lets in.
pub(crate) fn router(told: watch::Receiver<Json>, page: Page) -> Router {
    let shared = Shared {
        told,
        listeners: Arc::new(Semaphore::new(LISTENERS)),
        page,
    };
    Router::new()
        .route("/", get(show))
        .route("/api/status", get(status))
        .route("/api/events", get(events))
        .fallback(nothing)
        .method_not_allowed_fallback(not_so)
        .with_state(shared)
}

async fn show(State(shared): State<Shared>) -> impl IntoResponse {
    shared.page
}

async fn status(State(shared): State<Shared>) -> impl IntoResponse {
    let json = shared.told.borrow().to_string();
    ([(CONTENT_TYPE, "application/json")], json)
}

/// Tells what is known, each time that it is told anew. A listener that is behind goes on with the latest.
async fn events(State(shared): State<Shared>) -> Response {
    let Ok(permit) = Arc::clone(&shared.listeners).try_acquire_owned() else {
        let why = format!("{LISTENERS} listen already: close another page\n");
        let header = [(RETRY_AFTER, "2")];
        return (StatusCode::SERVICE_UNAVAILABLE, header, why).into_response();
    };
    let mut told = shared.told;
    told.mark_changed();
    let events = stream::unfold((told, permit, RETRY), next_event);
    let header = [(CONTENT_TYPE, "text/event-stream")];
    (header, Body::from_stream(events)).into_response()
}

type Listener = (watch::Receiver<Json>, OwnedSemaphorePermit, &'static str);

async fn next_event(
    (mut told, permit, before): Listener,
) -> Option<(Result<String, Infallible>, Listener)> {
    told.changed().await.ok()?;
    // Compact JSON has no line feed.
    let event = format!("{before}data: {}\n\n", *told.borrow_and_update());
    Some((Ok(event), (told, permit, "")))
}

async fn nothing() -> impl IntoResponse {
    let why = "there is nothing here; there are /, /api/status and /api/events\n";
    (StatusCode::NOT_FOUND, why)
}

async fn not_so() -> impl IntoResponse {
    let why = "this page can be read and not written: ask with GET\n";
    (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, "GET, HEAD")], why)
}
