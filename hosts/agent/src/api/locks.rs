//! Locks: of one name or of several, alone or shared.

use axum::extract::State;
use selvedge_udp::recipes::lock::{Lock, LockPlace};
use selvedge_udp::selvedge::groups::store::TTL_MIN;
use serde::{Deserialize, Serialize};

use super::Api;
use super::answer::{Answer, json};
use super::asked::{Asked, Body, Client, Part, Ttl, Wait, from_json};
use super::holds::taken;
use super::maps::Waits;
use super::refusal::Refusal;
use crate::held::{Held, TokenView};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AsksLock {
    /// Others that share it hold it, too.
    #[serde(default)]
    shared: bool,
    #[serde(default)]
    ttl: Ttl,
    #[serde(default)]
    wait: Wait,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Names {
    names: Vec<String>,
}

pub(super) async fn lock(
    State(api): State<Api>,
    Part(name): Part<String>,
    Asked(asked): Asked<AsksLock>,
    client: Client,
) -> Answer {
    take(&api, &[&name], asked, client).await
}

pub(super) async fn lock_all(
    State(api): State<Api>,
    Asked(asked): Asked<AsksLock>,
    client: Client,
    Body(body): Body,
) -> Answer {
    let Names { names } = from_json(&body)?;
    if names.is_empty() {
        return Err(Refusal::bad("a lock of no name: give one or more in names"));
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    client.caller.notes("names", names.iter().copied());
    take(&api, &names, asked, client).await
}

async fn take(api: &Api, names: &[&str], asked: AsksLock, client: Client) -> Answer {
    let AsksLock { shared, ttl, wait } = asked;
    let lock = Lock::all(api.recipe("locks"), names, ttl.span()?);
    let guard = async {
        match (wait.is_zero(), shared) {
            (true, true) => Wait::default()
                .of(lock.try_acquire_shared())
                .await
                .transpose(),
            (true, false) => Wait::default().of(lock.try_acquire()).await.transpose(),
            (false, true) => wait.over(lock.acquire_shared()).await,
            (false, false) => wait.over(lock.acquire()).await,
        }
    };
    let name = names.join(", ");
    let guard = api.latencies.of_wait("lock", guard).await?;
    let guard = guard.ok_or_else(|| taken("the lock", &name))?;
    let held = match shared {
        true => Held::SharedLock(guard),
        false => Held::Lock(guard),
    };
    api.hold(held, &name, ttl, client)
}

#[derive(Serialize)]
struct PlaceView {
    member: u64,
    session: String,
    token: TokenView,
    is_shared: bool,
    has_it: bool,
}

impl From<LockPlace> for PlaceView {
    fn from(place: LockPlace) -> Self {
        Self {
            member: place.session.by.id.0,
            session: place.session.to_string(),
            token: place.token.into(),
            is_shared: place.is_shared,
            has_it: place.has_it,
        }
    }
}

pub(super) async fn places(
    State(api): State<Api>,
    Part(name): Part<String>,
    Asked(Waits { wait }): Asked<Waits>,
) -> Answer {
    // A look has no session.
    let lock = Lock::new(api.recipe("locks"), &name, TTL_MIN);
    let places = wait.of(lock.places()).await?;
    json(&places.into_iter().map(PlaceView::from).collect::<Vec<_>>())
}
