//! A page for a browser, and the interfaces it uses: a JSON API and server-sent events.
//!
//! | request | answer |
//! |---|---|
//! | `GET /` | the page: one file, which loads nothing else |
//! | `GET /api/home` | a [`View`](crate::house::View): devices, routines, runs |
//! | `GET /metrics` | [numbers](metrics), in the text format of Prometheus |
//! | `GET /api/events` | the same after each change, five times a second at most, as server-sent events |
//! | `POST /api/routines/NAME/run` | 202 and `{"id":7}`: the run is stored, and runs |
//! | `GET /api/routines/NAME/preview` | a [`PreviewView`](crate::house::PreviewView): the effects on this run and on others |
//! | `GET /api/runs/7` | a [`RunView`] |
//! | `POST /api/runs/7/cancel` | 202 and `{"id":7}`: the run is being undone |
//!
//! A request that the hub refuses is answered `{"error":".."}`, with the thing found and the remedy; a
//! request that the guard refuses is answered with a line of text. A POST needs no body, and none is read. A
//! page of another site cannot post, because its origin is checked.

pub mod metrics;

use std::sync::mpsc::Sender;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderName};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use selvedge_http::{Events, Json, NoChance, Page};
use selvedge_safehome::RoutineId;
use serde::Serialize;
use tokio::sync::{oneshot, watch};

use self::metrics::Metrics;
use crate::event_loop::Request;
use crate::house::{Refusal, RunView};

/// The page, in the form of [`Page::new`].
const PAGE: &str = include_str!("http/page.html");
const JSON: [(HeaderName, &str); 1] = [(CONTENT_TYPE, "application/json")];

#[derive(Clone)]
struct Shared {
    events: Events,
    requests: Sender<Request>,
    page: Page,
    metrics: Metrics,
}

/// The page.
///
/// # Errors
/// When the system gives no random numbers.
pub fn page() -> Result<Page, NoChance> {
    Page::new(PAGE)
}

/// Answers all requests that the guard lets in.
pub fn router(
    notified: watch::Receiver<Json>,
    requests: Sender<Request>,
    page: Page,
    metrics: Metrics,
) -> Router {
    let shared = Shared {
        events: Events::new(notified),
        requests,
        page,
        metrics,
    };
    Router::new()
        .route("/", get(show))
        .route("/api/home", get(home))
        .route("/api/events", get(events))
        .route("/metrics", get(numbers))
        .route("/api/routines/{name}/run", post(run))
        .route("/api/routines/{name}/preview", get(preview))
        .route("/api/runs/{id}", get(one))
        .route("/api/runs/{id}/cancel", post(cancel))
        .fallback(nothing)
        .method_not_allowed_fallback(not_so)
        .with_state(shared)
}

async fn show(State(shared): State<Shared>) -> impl IntoResponse {
    shared.page
}

async fn home(State(shared): State<Shared>) -> impl IntoResponse {
    (JSON, shared.events.latest().to_string())
}

#[derive(Serialize)]
struct Id {
    id: u64,
}

#[derive(Serialize)]
struct Error {
    error: String,
}

fn json(status: StatusCode, it: &impl Serialize) -> Response {
    // Only a map with keys that are not strings can fail, and no such map is written.
    let text = serde_json::to_string(it).unwrap_or_default();
    (status, JSON, text).into_response()
}

fn refused(refusal: Refusal) -> Response {
    let status = match refusal {
        Refusal::Unknown(_) => StatusCode::NOT_FOUND,
        Refusal::Hub(_) => StatusCode::CONFLICT,
    };
    let error = refusal.to_string();
    json(status, &Error { error })
}

/// Asks the house, and waits for its answer; `None` when it has stopped.
async fn ask<T>(shared: &Shared, request: impl FnOnce(oneshot::Sender<T>) -> Request) -> Option<T> {
    let (to, answer) = oneshot::channel();
    shared.requests.send(request(to)).ok()?;
    answer.await.ok()
}

fn stopped() -> Response {
    let error = "the hub is about to stop: ask again when it runs".into();
    json(StatusCode::SERVICE_UNAVAILABLE, &Error { error })
}

async fn run(State(shared): State<Shared>, Path(name): Path<String>) -> Response {
    match ask(&shared, |to| Request::Run(name, to)).await {
        Some(Ok(RoutineId(id))) => json(StatusCode::ACCEPTED, &Id { id }),
        Some(Err(refusal)) => refused(refusal),
        None => stopped(),
    }
}

async fn preview(State(shared): State<Shared>, Path(name): Path<String>) -> Response {
    match ask(&shared, |to| Request::Preview(name, to)).await {
        Some(Ok(found)) => json(StatusCode::OK, &found),
        Some(Err(refusal)) => refused(refusal),
        None => stopped(),
    }
}

fn no_run(text: &str) -> Response {
    let error = format!("there is no run {text:?}: a run is a number, see /api/home");
    json(StatusCode::NOT_FOUND, &Error { error })
}

async fn one(State(shared): State<Shared>, Path(text): Path<String>) -> Response {
    let Ok(id) = text.parse() else {
        return no_run(&text);
    };
    let shown: Option<Option<RunView>> = ask(&shared, |to| Request::Show(RoutineId(id), to)).await;
    match shown {
        Some(Some(run)) => json(StatusCode::OK, &run),
        Some(None) => no_run(&text),
        None => stopped(),
    }
}

async fn cancel(State(shared): State<Shared>, Path(text): Path<String>) -> Response {
    let Ok(id) = text.parse() else {
        return no_run(&text);
    };
    match ask(&shared, |to| Request::Cancel(RoutineId(id), to)).await {
        Some(Ok(())) => json(StatusCode::ACCEPTED, &Id { id }),
        Some(Err(refusal)) => refused(refusal),
        None => stopped(),
    }
}

async fn events(State(shared): State<Shared>) -> Response {
    shared.events.listen()
}

async fn numbers(State(shared): State<Shared>) -> Response {
    const TEXT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    match shared.metrics.text() {
        Ok(text) => ([(CONTENT_TYPE, TEXT)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn nothing() -> Response {
    let error = "there is nothing here: see /, /api/home, /api/events and /metrics".into();
    json(StatusCode::NOT_FOUND, &Error { error })
}

async fn not_so() -> Response {
    let error = "method not allowed: run and cancel with POST, read with GET".into();
    json(StatusCode::METHOD_NOT_ALLOWED, &Error { error })
}
