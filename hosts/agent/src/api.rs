//! The API of an agent: requests of programs on this host, over HTTP.
//!
//! | request | answer |
//! |---|---|
//! | `GET /v1/info`, `/v1/members`, `/v1/leader` | this node, all members, the leader of the mesh |
//! | `GET /v1/monitor` | server-sent events: `member`, `leader`, `message`, `question`, `missed` |
//! | `POST /v1/leave` | the node has left; the process ends |
//! | `POST /v1/reload` | the parts of the settings that were read again, or why not; as SIGHUP does |
//! | `POST /v1/members/{id}/confirm` | a failed member has ended for certain |
//! | `POST /v1/nodes/{id}/remove`, `/add` | the node is to hold no maps from now on; it is to hold some again |
//! | `POST /v1/messages/{name}`, `PUT /v1/tags` | a message to all members; the tags of this one |
//! | `POST /v1/queries/{name}?wait=` | the answers of all members to a question, that arrive within `wait` |
//! | `POST /v1/answers/{question}` | the answer of a program at this member, once |
//! | `GET /v1/maps/{map}/entries?prefix=&after=&all=` | a page of entries, or all |
//! | `GET`, `PUT`, `DELETE /v1/maps/{map}/entries/{key}` | the bytes of an entry; a change |
//! | `POST /v1/maps/{map}/transaction` | several changes as one |
//! | `GET /v1/maps/{map}/watch?prefix=&since=` | server-sent events: `changed`, `compacted` |
//! | `POST /v1/maps/{map}/sessions`, `/v1/locks/{name}`, `/v1/semaphores/{name}`, `/v1/elections/{name}`, `/v1/services/{service}`, `/v1/barriers/{name}` | a hold |
//! | `POST /v1/locks` | a hold: the lock of several names, `{"names": [..]}` |
//! | `GET`, `PUT`, `DELETE /v1/holds/{hold}` | shows a hold; extends it by its time to live; releases it |
//! | `POST /v1/holds/{hold}/hand-over?to=` | the candidate with this session leads, or the first one |
//! | `POST /v1/elections/{name}/hand-over?to=` | the same for a program that is not the leader, at the leader's agent |
//! | `GET /v1/locks/{name}`, `/v1/elections/{name}/candidates` | the holders of a lock and the waiting requests; the waiting candidates |
//! | `GET /v1/elections/{name}`, `/v1/services/{service}` | the leader, the instances; also as server-sent events |
//! | `POST`, `DELETE /v1/queues/{name}` | pushes an item; takes the one of the smallest `priority`, the oldest among equal ones |
//! | `GET`, `POST /v1/counters/{name}?add=` | the sum |
//! | `GET /metrics`, `/v1/openapi.json`, `/` | numbers for Prometheus; the description of this API; a page |
//!
//! Locks take `shared=true`, elections and queues a `priority` (100 by default; a smaller one is first).
//!
//! A hold lives as long as requests extend it within its `ttl`; where the request asks for `text/event-stream`,
//! as long as its connection. A request waits for the mesh as long as its `wait` (10 s by default, 1 h at most),
//! then it is refused with 408. All refusals are `{"error": "..", "kind": ".."}`.

mod answer;
mod asked;
mod audited;
mod elections;
mod holds;
mod latencies;
mod locks;
mod maps;
mod members;
mod metrics;
mod monitor;
mod queries;
mod recipes;
mod refusal;
mod transaction;

use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post, put};
use selvedge_http::{Access, Page};
use selvedge_udp::Handle;

use self::answer::Answer;
use self::latencies::Latencies;
pub(crate) use self::refusal::{Kind, Refusal};
use crate::audit::Audit;
use crate::growth::{self, Founders};
use crate::hold::Holds;
use crate::log::Log;
use crate::peers::Peers;
use crate::reload::Reloader;

/// The most bytes in the body of a request.
const BODY_MAX: usize = 64 * 1_024;
/// The longest time that a request waits for its node to be among those that hold maps.
const JOINS: Duration = Duration::from_secs(10);
/// The description of the API.
const OPENAPI: &str = include_str!("api/openapi.json");

/// The node, and the holds of its clients.
#[derive(Clone, Debug)]
pub struct Api {
    node: &'static Handle,
    founders: Founders,
    holds: Holds,
    latencies: Latencies,
    audit: Audit,
    log: Option<Log>,
    peers: Peers,
    reloader: Option<Reloader>,
    is_leaving: Arc<AtomicBool>,
}

impl Api {
    /// The API of this node, which lives as long as the process.
    #[must_use]
    pub fn new(node: &'static Handle, founders: Founders) -> Self {
        let audit = Audit::default();
        Self {
            node,
            founders,
            holds: Holds::new(node.clock(), audit.clone()),
            latencies: Latencies::new(),
            audit,
            log: None,
            peers: Peers::default(),
            reloader: None,
            is_leaving: Arc::default(),
        }
    }

    /// Writes the audit, and can read the settings again.
    pub(crate) fn with_operations(self, audit: Audit, log: Log, reloader: Reloader) -> Self {
        Self {
            holds: Holds::new(self.node.clock(), audit.clone()),
            audit,
            log: Some(log),
            reloader: Some(reloader),
            ..self
        }
    }

    pub(crate) const fn node(&self) -> &'static Handle {
        self.node
    }

    pub(crate) const fn peers(&self) -> &Peers {
        &self.peers
    }

    /// Has the holds of all clients end, before the node leaves: clients learn first that they lapse. Returns when all
    /// have been released or are certain no longer.
    pub async fn end_holds(&self) {
        self.holds.end().await;
    }

    /// Waits until this node may ask for maps: it is among the nodes that hold them.
    async fn is_ready(&self) -> Result<(), Refusal> {
        if let Some(others) = self.founders.others(&self.node.state()) {
            let why = format!(
                "the members {others:?} have other founders or failures than this agent, so they hold other maps: \
                 give all agents the same ones"
            );
            return Err(Refusal::new(Kind::Unavailable, why));
        }
        let is_in = self.node.wait_for(growth::is_in);
        match tokio::time::timeout(JOINS, is_in).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(Refusal::new(Kind::Unavailable, error)),
            Err(_) => {
                let why = "this node is not among the nodes that hold maps: it is added when it has joined a mesh \
                           with a leader, unless it was removed (POST /v1/nodes/{id}/add)";
                Err(Refusal::new(Kind::Unavailable, why))
            }
        }
    }

    /// Returns true if a request has the node leave.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::Relaxed)
    }
}

/// Answers all requests that the guard lets in.
pub fn router(api: Api, page: Page) -> Router {
    let maps = maps().route_layer(middleware::from_fn_with_state(api.clone(), is_ready));
    Router::new()
        .merge(maps)
        .route("/v1/info", get(members::info))
        .route("/v1/members", get(members::members))
        .route("/v1/leader", get(members::leader))
        .route("/v1/members/{id}/confirm", post(members::confirm))
        .route("/v1/nodes/{id}/add", post(members::add))
        .route("/v1/nodes/{id}/remove", post(members::remove))
        .route("/v1/leave", post(members::leave))
        .route("/v1/reload", post(members::reload))
        .route("/v1/tags", put(members::tags))
        .route("/v1/messages/{name}", post(members::message))
        .route("/v1/queries/{name}", post(queries::query))
        .route("/v1/answers/{question}", post(queries::answer))
        .route("/v1/monitor", get(monitor::monitor))
        .route(
            "/v1/holds/{hold}",
            get(holds::show).put(holds::extend).delete(holds::release),
        )
        .route("/v1/holds/{hold}/hand-over", post(elections::hand_over))
        .route("/v1/openapi.json", get(openapi))
        .route("/", get(async || page))
        .route("/metrics", get(metrics::metrics))
        .fallback(nothing)
        .method_not_allowed_fallback(no_method)
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .layer(middleware::from_fn(is_of_this_site))
        .with_state(api)
}

/// The requests that need maps.
fn maps() -> Router<Api> {
    Router::new()
        .route("/v1/maps/{map}/entries", get(maps::list))
        .route(
            "/v1/maps/{map}/entries/{*key}",
            get(maps::entry).put(maps::put).delete(maps::delete),
        )
        .route("/v1/maps/{map}/transaction", post(transaction::transact))
        .route("/v1/maps/{map}/watch", get(maps::watch))
        .route("/v1/maps/{map}/sessions", post(holds::session))
        .route("/v1/locks", post(locks::lock_all))
        .route("/v1/locks/{name}", post(locks::lock).get(locks::places))
        .route("/v1/semaphores/{name}", post(holds::semaphore))
        .route(
            "/v1/elections/{name}",
            post(elections::campaign).get(elections::observe),
        )
        .route(
            "/v1/elections/{name}/candidates",
            get(elections::candidates),
        )
        .route("/v1/elections/{name}/hand-over", post(elections::depose))
        .route(
            "/v1/services/{service}",
            post(holds::register).get(recipes::resolve),
        )
        .route("/v1/barriers/{name}", post(holds::enter))
        .route(
            "/v1/queues/{name}",
            post(recipes::push).delete(recipes::pop),
        )
        .route(
            "/v1/counters/{name}",
            get(recipes::count).post(recipes::add),
        )
}

/// The same behind the guard, whose refusals are like those of the API.
pub fn guarded(router: Router, access: impl Into<Access>, page: &Page) -> Router {
    selvedge_http::guarded_with(router, access, page, refusal::of_guard)
}

/// All of the API: the router behind its guard, and the audit of its calls.
pub(crate) fn served(api: &Api, access: Access, page: &Page) -> Router {
    let router = guarded(router(api.clone(), page.clone()), access.clone(), page);
    let api = api.clone();
    let audited = audited::Audited { api, access };
    router.layer(middleware::from_fn_with_state(audited, audited::audited))
}

async fn is_ready(State(api): State<Api>, request: Request, next: Next) -> Response {
    match api.is_ready().await {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

/// Refuses what the page of another site has a browser send: also a read may begin a map.
async fn is_of_this_site(request: Request, next: Next) -> Response {
    let from = request.headers().get("sec-fetch-site");
    if from.is_some_and(|it| it == "cross-site" || it == "same-site") {
        let why =
            "this was sent by the page of another site: send it from this page, or from a program";
        return Refusal::new(Kind::Forbidden, why).into_response();
    }
    next.run(request).await
}

async fn openapi() -> impl axum::response::IntoResponse {
    ([("content-type", "application/json")], OPENAPI)
}

async fn nothing() -> Answer {
    let why = "there is nothing at this path: see /v1/openapi.json";
    Err(Refusal::new(Kind::NoPath, why))
}

async fn no_method() -> Answer {
    let why = "this path has other methods: see /v1/openapi.json";
    Err(Refusal::bad(why))
}
