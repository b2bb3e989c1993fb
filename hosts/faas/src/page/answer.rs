//! Answers to requests.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{ALLOW, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use selvedge_http::{Events, Json, NoChance, Page};
use tokio::sync::watch;

/// The page, in the form of [`Page::new`].
const PAGE: &str = include_str!("page.html");

#[derive(Clone)]
struct Shared {
    events: Events,
    page: Page,
}

/// The page.
///
/// # Errors
/// If the system gives no random numbers.
pub(crate) fn page() -> Result<Page, NoChance> {
    Page::new(PAGE)
}

/// A router that answers all accepted requests.
pub(crate) fn router(notified: watch::Receiver<Json>, page: Page) -> Router {
    let shared = Shared {
        events: Events::new(notified),
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
    let json = shared.events.latest().to_string();
    ([(CONTENT_TYPE, "application/json")], json)
}

async fn events(State(shared): State<Shared>) -> Response {
    shared.events.listen()
}

async fn nothing() -> impl IntoResponse {
    let why = "not found: there are /, /api/status and /api/events\n";
    (StatusCode::NOT_FOUND, why)
}

async fn not_so() -> impl IntoResponse {
    let why = "this page is read-only: ask with GET\n";
    (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, "GET, HEAD")], why)
}
