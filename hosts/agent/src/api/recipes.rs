//! Requests to recipes that hold nothing.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::IntoResponse as _;
use axum::response::sse::{KeepAlive, Sse};
use futures_util::stream;
use selvedge_udp::Error;
use selvedge_udp::recipes::counter::Counter;
use selvedge_udp::recipes::priority_queue::PriorityQueue;
use selvedge_udp::recipes::registry::{Instances, Registry, ServiceWatch};
use serde::{Deserialize, Serialize};
use tokio::time::timeout_at;

use super::Api;
use super::answer::{Answer, bytes, event, json};
use super::asked::{Asked, Body, Part, Wait, wants_events};
use super::elections::priority;
use super::holds::COMMENTS;
use super::maps::Waits;
use super::refusal::{Kind, Refusal};

#[derive(Serialize)]
struct Instance {
    instance: u64,
    address: String,
}

fn views(instances: Instances) -> Vec<Instance> {
    let instances = instances.into_iter();
    instances
        .map(|(instance, address)| Instance { instance, address })
        .collect()
}

pub(super) async fn resolve(
    State(api): State<Api>,
    Part(service): Part<String>,
    Asked(Waits { wait }): Asked<Waits>,
    headers: HeaderMap,
) -> Answer {
    let registry = Registry::new(api.recipe("services"));
    if !wants_events(&headers) {
        return json(&views(wait.of(registry.resolve(&service)).await?));
    }
    let watch = registry.watch(&service);
    let events = stream::try_unfold(watch, |mut watch: ServiceWatch<'static>| async {
        let instances = views(watch.next().await?);
        Ok::<_, Error>(Some((event("instances", &instances), watch)))
    });
    Ok(Sse::new(events)
        .keep_alive(KeepAlive::new().interval(COMMENTS))
        .into_response())
}

#[derive(Serialize)]
struct Pushed {
    version: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pushes {
    #[serde(default = "priority")]
    priority: u32,
    #[serde(default)]
    wait: Wait,
}

pub(super) async fn push(
    State(api): State<Api>,
    Part(name): Part<String>,
    Asked(Pushes { priority, wait }): Asked<Pushes>,
    Body(value): Body,
) -> Answer {
    let queue = PriorityQueue::new(api.recipe("queues"), &name);
    let pushed = wait.of(queue.push(priority, &value));
    let version = api.latencies.of_change(pushed).await?;
    json(&Pushed { version })
}

pub(super) async fn pop(
    State(api): State<Api>,
    Part(name): Part<String>,
    Asked(Waits { wait }): Asked<Waits>,
) -> Answer {
    let end = wait.end();
    loop {
        let queue = PriorityQueue::new(api.recipe("queues"), &name);
        // A take that has begun goes on to its end, so no item is lost for want of time.
        let take = async move { Wait::default().of(queue.try_pop()).await };
        let taken = tokio::spawn(take).await;
        let taken = taken.map_err(|it| Refusal::new(Kind::Unavailable, it))?;
        if let Some(item) = taken? {
            return Ok(bytes(item));
        }
        let queue = PriorityQueue::new(api.recipe("queues"), &name);
        match timeout_at(end, queue.ready()).await {
            Ok(ready) => ready?,
            Err(_) => {
                let why =
                    format!("the queue {name:?} has no item: ask again, or with a longer wait");
                return Err(Refusal::new(Kind::Timeout, why));
            }
        }
    }
}

#[derive(Serialize)]
struct Sum {
    value: i64,
}

pub(super) async fn count(
    State(api): State<Api>,
    Part(name): Part<String>,
    Asked(Waits { wait }): Asked<Waits>,
) -> Answer {
    let counter = Counter::new(api.recipe("counters"), &name);
    let value = wait.of(counter.get()).await?;
    json(&Sum { value })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Adds {
    add: i64,
    #[serde(default)]
    wait: Wait,
}

pub(super) async fn add(
    State(api): State<Api>,
    Part(name): Part<String>,
    Asked(Adds { add, wait }): Asked<Adds>,
) -> Answer {
    let counter = Counter::new(api.recipe("counters"), &name);
    let value = api.latencies.of_change(wait.of(counter.add(add))).await?;
    json(&Sum { value })
}
