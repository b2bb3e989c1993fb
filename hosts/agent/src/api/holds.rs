//! Requests that make, extend and release holds.

use core::convert::Infallible;
use core::time::Duration;

use axum::extract::State;
use axum::response::IntoResponse as _;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream;
use selvedge_udp::Map;
use selvedge_udp::recipes::barrier::Barrier;
use selvedge_udp::recipes::registry::Registry;
use selvedge_udp::recipes::semaphore::Semaphore;
use serde::Deserialize;
use tokio::sync::{oneshot, watch};

use super::Api;
use super::answer::{Answer, event, json};
use super::asked::{Asked, Body, Client, Part, Ttl, Wait};
use super::maps::Waits;
use super::refusal::{Kind, Refusal};
use crate::held::Held;
use crate::hold::{Life, NoHold, Standing, View};

/// The interval of comments in a stream without events, by which a client sees that the agent is there.
pub(super) const COMMENTS: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asks {
    #[serde(default)]
    ttl: Ttl,
    #[serde(default)]
    wait: Wait,
}

impl Api {
    /// The map of a kind of recipe.
    pub(super) fn recipe(&self, kind: &str) -> Map<'static> {
        self.node.map(kind)
    }

    /// The answer with a hold, for a client that extends it or keeps its connection.
    pub(super) fn hold(&self, held: Held, name: &str, ttl: Ttl, client: Client) -> Answer {
        let Client {
            caller,
            wants_events,
        } = client;
        let kept = |life| {
            let kept = self.holds.keep(held, name, ttl.duration(), (caller, life));
            kept.map_err(|it| match it {
                NoHold::Full => Refusal::new(Kind::Full, it),
                NoHold::Leaving | NoHold::NoChance => Refusal::new(Kind::Unavailable, it),
            })
        };
        if !wants_events {
            return json(&kept(Life::Requests)?.0);
        }
        let (connection, closed) = oneshot::channel();
        let (view, standing) = kept(Life::Connection(closed))?;
        let stage = Stage {
            _connection: connection,
            view: Some(view),
            standing,
        };
        let comments = KeepAlive::new().interval(COMMENTS);
        let events = stream::unfold(Some(stage), next);
        Ok(Sse::new(events).keep_alive(comments).into_response())
    }
}

/// A connection with a hold.
struct Stage {
    /// The hold ends when this is dropped.
    _connection: oneshot::Sender<()>,
    /// The first event.
    view: Option<View>,
    standing: watch::Receiver<Standing>,
}

async fn next(stage: Option<Stage>) -> Option<(Result<Event, Infallible>, Option<Stage>)> {
    let mut stage = stage?;
    if let Some(view) = stage.view.take() {
        return Some((Ok(event("held", &view)), Some(stage)));
    }
    let changed = stage.standing.changed().await;
    let standing = match changed {
        Ok(()) => *stage.standing.borrow_and_update(),
        Err(_) => Standing::Ended,
    };
    let name = match standing {
        Standing::Held => "alive",
        Standing::Lapsed => "lapsed",
        Standing::Ended => "ended",
    };
    let rest = (standing != Standing::Ended).then_some(stage);
    Some((Ok(event(name, &serde_json::Map::new())), rest))
}

pub(super) async fn session(
    State(api): State<Api>,
    Part(map): Part<String>,
    Asked(Asks { ttl, wait }): Asked<Asks>,
    client: Client,
) -> Answer {
    let session = wait.of(api.node.map(&map).session(ttl.span()?)).await?;
    api.hold(Held::Session(session), &map, ttl, client)
}

/// The refusal of a client that has waited for its turn.
pub(super) fn taken(what: &str, name: &str) -> Refusal {
    let why = format!("{what} {name:?} is taken: ask again, or with a longer wait");
    Refusal::new(Kind::Timeout, why)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AsksPermit {
    permits: usize,
    #[serde(default)]
    ttl: Ttl,
    #[serde(default)]
    wait: Wait,
}

pub(super) async fn semaphore(
    State(api): State<Api>,
    Part(name): Part<String>,
    Asked(AsksPermit { permits, ttl, wait }): Asked<AsksPermit>,
    client: Client,
) -> Answer {
    let semaphore = Semaphore::new(api.recipe("semaphores"), &name, permits, ttl.span()?);
    let permit = wait.above_zero()?.over(semaphore.acquire());
    let permit = api.latencies.of_wait("semaphore", permit).await?;
    let permit = permit.ok_or_else(|| taken("the semaphore", &name))?;
    api.hold(Held::Semaphore(permit), &name, ttl, client)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AsksListing {
    instance: Option<u64>,
    #[serde(default)]
    ttl: Ttl,
    #[serde(default)]
    wait: Wait,
}

pub(super) async fn register(
    State(api): State<Api>,
    Part(service): Part<String>,
    Asked(asked): Asked<AsksListing>,
    client: Client,
    Body(address): Body,
) -> Answer {
    let Ok(address) = core::str::from_utf8(&address) else {
        return Err(Refusal::bad(
            "the body is no text: give the address of the service",
        ));
    };
    let instance = match asked.instance {
        Some(instance) => instance,
        // Programs of one host are several instances. JavaScript counts to 2^53.
        None => {
            getrandom::u64().map_err(|_| Refusal::new(Kind::Unavailable, NoHold::NoChance))? >> 11
        }
    };
    let registry = Registry::new(api.recipe("services"));
    let listed = registry.register(&service, instance, address, asked.ttl.span()?);
    let listed = asked.wait.of(listed).await?;
    api.hold(Held::Service(listed), &service, asked.ttl, client)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AsksEntry {
    number: usize,
    #[serde(default)]
    ttl: Ttl,
    #[serde(default)]
    wait: Wait,
}

pub(super) async fn enter(
    State(api): State<Api>,
    Part(name): Part<String>,
    Asked(AsksEntry { number, ttl, wait }): Asked<AsksEntry>,
    client: Client,
) -> Answer {
    let barrier = Barrier::new(api.recipe("barriers"), &name, number, ttl.span()?);
    let inside = wait.above_zero()?.over(barrier.enter());
    let Some(inside) = api.latencies.of_wait("barrier", inside).await? else {
        let why = format!(
            "fewer than {number} are at the barrier {name:?}: ask again, or with a longer wait"
        );
        return Err(Refusal::new(Kind::Timeout, why));
    };
    api.hold(Held::Barrier(inside), &name, ttl, client)
}

pub(super) fn no_hold(name: &str) -> Refusal {
    let why = format!("there is no hold {name:?}: it was released, or its time to live is over");
    Refusal::new(Kind::NotFound, why)
}

pub(super) async fn show(State(api): State<Api>, Part(hold): Part<String>) -> Answer {
    let view = api.holds.show(&hold).await;
    json(&view.ok_or_else(|| no_hold(&hold))?)
}

pub(super) async fn extend(State(api): State<Api>, Part(hold): Part<String>) -> Answer {
    let view = api.holds.extend(&hold).await;
    json(&view.ok_or_else(|| no_hold(&hold))?)
}

pub(super) async fn release(
    State(api): State<Api>,
    Part(hold): Part<String>,
    Asked(Waits { wait }): Asked<Waits>,
) -> Answer {
    let released = async { Ok(api.holds.release(&hold).await) };
    match wait.of(released).await? {
        None => Err(no_hold(&hold)),
        Some(released) => {
            released?;
            json(&serde_json::Map::new())
        }
    }
}
