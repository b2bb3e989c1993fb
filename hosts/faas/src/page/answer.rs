//! What requests are answered.

use core::convert::Infallible;
use core::fmt::Write as _;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, RETRY_AFTER,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::guard::{Token, refusal};
use super::{Json, LISTENERS};
use crate::clock::NoChance;

/// The page. `NONCE` stands for what its style and its program are known by.
const PAGE: &str = include_str!("page.html");
/// After how many milliseconds a page that was cut off comes back.
const RETRY: &str = "retry: 2000\n";

#[derive(Clone)]
struct Shared {
    told: watch::Receiver<Json>,
    listeners: Arc<Semaphore>,
    token: Option<Token>,
    page: Bytes,
    policy: HeaderValue,
}

/// Answers all requests.
pub(crate) fn router(
    told: watch::Receiver<Json>,
    token: Option<Token>,
) -> Result<Router, NoChance> {
    let mut nonce = String::new();
    for part in [getrandom::u64()?, getrandom::u64()?] {
        // A string takes all that is written.
        let _written = write!(nonce, "{part:016x}");
    }
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let shared = Shared {
        told,
        listeners: Arc::new(Semaphore::new(LISTENERS)),
        token,
        page: PAGE.replace("NONCE", &nonce).into(),
        // It has hexadecimal digits and the text above.
        policy: HeaderValue::try_from(policy)
            .unwrap_or(HeaderValue::from_static("default-src 'none'")),
    };
    Ok(Router::new()
        .route("/", get(page))
        .route("/api/status", get(status))
        .route("/api/events", get(events))
        .fallback(nothing)
        .method_not_allowed_fallback(not_so)
        .layer(middleware::from_fn_with_state(shared.clone(), guard))
        .with_state(shared))
}

/// Refuses what may not be answered, and says how answers are to be taken.
async fn guard(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    let refused = refusal(shared.token.as_ref(), request.uri(), request.headers());
    let mut response = match refused {
        Some(refused) => refused,
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, shared.policy);
    for (name, value) in [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // The address may hold the token.
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn page(State(shared): State<Shared>) -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/html; charset=utf-8")], shared.page)
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
