//! Entries of maps.

use axum::extract::State;
use axum::http::HeaderName;
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use selvedge_udp::selvedge::groups::store::{
    Entry, EntryChange, Expected, Page, Stored, Transaction,
};
use selvedge_udp::{Error, Map, PrefixNews, PrefixWatch};
use serde::{Deserialize, Serialize};

use super::Api;
use super::answer::{Answer, Value, bytes, event, json};
use super::asked::{Asked, Body, Part, Ttl, Wait, session_id};
use super::refusal::{Kind, Refusal};

/// The header with the version of an entry.
const VERSION: HeaderName = HeaderName::from_static("selvedge-version");

#[derive(Serialize)]
struct EntryView {
    key: String,
    #[serde(flatten)]
    value: Value,
    version: u64,
    created: u64,
    session: Option<String>,
}

#[derive(Serialize)]
struct PageView {
    entries: Vec<EntryView>,
    version: u64,
    is_last: bool,
}

#[derive(Serialize)]
struct ChangeView {
    key: String,
    version: u64,
    entry: Option<EntryView>,
}

#[derive(Serialize)]
struct Changed {
    version: u64,
    changes: Vec<ChangeView>,
}

/// The version of the map with a change.
#[derive(Serialize)]
pub(super) struct Version {
    version: u64,
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    otherwise: bool,
}

impl EntryView {
    fn of(key: String, entry: &Entry) -> Self {
        Self {
            key,
            value: Value::of(&entry.value),
            version: entry.version,
            created: entry.created,
            session: entry.session.map(|it| it.to_string()),
        }
    }
}

impl From<Page> for PageView {
    fn from(page: Page) -> Self {
        let entries = page.entries.into_iter();
        Self {
            entries: entries.map(|(key, it)| EntryView::of(key, &it)).collect(),
            version: page.version,
            is_last: page.is_last,
        }
    }
}

impl From<EntryChange> for ChangeView {
    fn from(change: EntryChange) -> Self {
        let entry = change
            .entry
            .map(|it| EntryView::of(change.key.clone(), &it));
        Self {
            key: change.key,
            version: change.version,
            entry,
        }
    }
}

/// The answer to a change.
pub(super) fn stored(stored: Stored) -> Answer {
    match stored {
        Stored::Done { version } => json(&Version {
            version,
            otherwise: false,
        }),
        Stored::Otherwise { version } => json(&Version {
            version,
            otherwise: true,
        }),
        Stored::Mismatch { found } => {
            let found = found.map_or("there is none".to_owned(), |it| format!("it has {it}"));
            let why = format!("the entry has another version than the expected one: {found}");
            Err(Refusal::new(Kind::Mismatch, why))
        }
        Stored::Full => {
            let why = "the map has no room: remove entries, shorten them, or use another map";
            Err(Refusal::new(Kind::Full, why))
        }
        Stored::NoSession => {
            let why = "the session has ended: begin another one";
            Err(Refusal::new(Kind::SessionOver, why))
        }
        Stored::Over | Stored::Begun { .. } => {
            let why = "the outcome of the change is not known any more: read the entry";
            Err(Refusal::new(Kind::Unavailable, why))
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    #[serde(default)]
    prefix: String,
    after: Option<String>,
    #[serde(default)]
    all: bool,
    #[serde(default)]
    wait: Wait,
}

pub(super) async fn list(
    State(api): State<Api>,
    Part(map): Part<String>,
    Asked(asked): Asked<List>,
) -> Answer {
    let map = api.node.map(&map);
    let page = match asked.all {
        true => asked.wait.of(map.list_all(asked.prefix)).await,
        false => {
            let page = map.list(asked.prefix, asked.after.as_deref());
            asked.wait.of(page).await
        }
    };
    json(&PageView::from(page?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Waits {
    #[serde(default)]
    pub(super) wait: Wait,
}

pub(super) async fn entry(
    State(api): State<Api>,
    Part((map, key)): Part<(String, String)>,
    Asked(Waits { wait }): Asked<Waits>,
) -> Answer {
    let Some(entry) = wait.of(api.node.map(&map).get(&*key)).await? else {
        let why = format!("the map {map:?} has no entry {key:?}");
        return Err(Refusal::new(Kind::NotFound, why));
    };
    let version = [(VERSION, entry.version.to_string())];
    Ok((version, bytes(entry.value.to_vec())).into_response())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Put {
    version: Option<u64>,
    session: Option<String>,
    ttl: Option<Ttl>,
    #[serde(default)]
    wait: Wait,
}

/// The condition that a request names: no entry for 0.
pub(super) const fn expected(version: Option<u64>) -> Expected {
    match version {
        None => Expected::Any,
        Some(0) => Expected::Absent,
        Some(version) => Expected::Version(version),
    }
}

pub(super) async fn put(
    State(api): State<Api>,
    Part((map, key)): Part<(String, String)>,
    Asked(asked): Asked<Put>,
    Body(value): Body,
) -> Answer {
    let map = api.node.map(&map);
    let condition = expected(asked.version);
    match (&asked.session, asked.ttl) {
        (Some(_), Some(_)) => {
            let why = "give session or ttl, and not both: an entry lives as long as its session";
            Err(Refusal::bad(why))
        }
        (None, Some(_)) if asked.version.is_some() => {
            let why = "give version or ttl, and not both: put with a session of POST /v1/maps/{map}/sessions";
            Err(Refusal::bad(why))
        }
        (None, Some(ttl)) => {
            let put = map.put_for(key, &value, ttl.span()?);
            let version = api.latencies.of_change(asked.wait.of(put)).await?;
            stored(Stored::Done { version })
        }
        (session, None) => {
            let put = match session {
                Some(session) => Transaction::new().put_owned(&*key, &value, session_id(session)?),
                None => Transaction::new().put(&*key, &value),
            };
            let put = put.when(key, condition);
            let put = asked.wait.of(map.transact(put));
            stored(api.latencies.of_change(put).await?)
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Delete {
    version: Option<u64>,
    #[serde(default)]
    wait: Wait,
}

pub(super) async fn delete(
    State(api): State<Api>,
    Part((map, key)): Part<(String, String)>,
    Asked(asked): Asked<Delete>,
) -> Answer {
    let map = api.node.map(&map);
    let removed = map.compare_and_set(key, expected(asked.version), None);
    stored(api.latencies.of_change(asked.wait.of(removed)).await?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Watch {
    #[serde(default)]
    prefix: String,
    #[serde(default)]
    since: u64,
    #[serde(default)]
    wait: Wait,
}

pub(super) async fn watch(
    State(api): State<Api>,
    Part(map): Part<String>,
    Asked(asked): Asked<Watch>,
) -> Result<Response, Refusal> {
    let map: Map<'static> = api.node.map(&map);
    let watch = asked.wait.of(map.watch_prefix(asked.prefix, asked.since));
    let events = stream::try_unfold(watch.await?, |mut watch: PrefixWatch| async {
        let event = match watch.next().await? {
            PrefixNews::Changed { version, changes } => {
                let changes = changes.into_iter().map(ChangeView::from).collect();
                event("changed", &Changed { version, changes })
            }
            PrefixNews::Compacted => event("compacted", &serde_json::Map::new()),
        };
        Ok::<_, Error>(Some((event, watch)))
    });
    Ok(Sse::new(events)
        .keep_alive(KeepAlive::new().interval(super::holds::COMMENTS))
        .into_response())
}
