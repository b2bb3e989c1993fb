//! Calls to a map.

use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use serde::{Deserialize, Serialize};

use crate::agent::{Call, parse};
use crate::calls::Version;
use crate::{Agent, Change, Entry, Error, Events, Hold, Kind, Value};

/// A map of the mesh. Its changes have versions: numbers that grow.
#[derive(Clone, Copy, Debug)]
pub struct Map<'a> {
    agent: &'a Agent,
    name: &'a str,
}

/// Entries of a map, in the order of their keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// The entries.
    pub entries: Vec<Entry>,
    /// The version of the map from which they are; of a list in several parts, that of the first part.
    pub version: u64,
    /// False if others come after the last one.
    pub is_last: bool,
}

/// A report of [`Map::watch`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", content = "data", rename_all = "snake_case")]
#[non_exhaustive]
pub enum MapEvent {
    /// Changes of one version or of several: of each entry the last change.
    Changed {
        /// The last version.
        version: u64,
        /// The changes, each with its own version.
        changes: Vec<Change>,
    },
    /// Changes are missing here: forget all entries. All present ones follow.
    Compacted,
}

/// Changes that are done at once, if its comparisons hold.
///
/// ```
/// use selvedge_client::{Step, Transaction};
///
/// // Moves an entry that has version 12.
/// let moved = Transaction::new()
///     .when("old", 12)
///     .then(Step::put("new", "value"))
///     .then(Step::remove("old"));
/// # drop(moved);
/// ```
#[derive(Clone, Debug, Default, Serialize)]
pub struct Transaction {
    when: Vec<Comparison>,
    then: Vec<Step>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    otherwise: Vec<Step>,
}

#[derive(Clone, Debug, Serialize)]
struct Comparison {
    key: String,
    version: u64,
}

/// A change in a [`Transaction`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Sets an entry.
    Put {
        /// The key.
        key: String,
        /// The value.
        #[serde(flatten)]
        value: Value,
        /// The session with which it ends.
        session: Option<String>,
    },
    /// Removes an entry.
    Remove {
        /// The key.
        key: String,
    },
    /// Makes an entry with a key of a prefix and the next version of the map.
    Append {
        /// The prefix.
        prefix: String,
        /// The value.
        #[serde(flatten)]
        value: Value,
        /// The session with which it ends.
        session: Option<String>,
    },
}

/// The result of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Outcome {
    /// The version of the map after it.
    pub version: u64,
    /// True if a comparison failed, and the other steps were done.
    #[serde(default, rename = "otherwise")]
    pub is_otherwise: bool,
}

/// Each call has the errors of [`Error`]; a documented one is particular to it.
#[allow(
    clippy::missing_errors_doc,
    reason = "the errors of all calls are those of `Error`"
)]
impl<'a> Map<'a> {
    pub(crate) const fn new(agent: &'a Agent, name: &'a str) -> Self {
        Self { agent, name }
    }

    /// Returns an entry's value and version.
    pub async fn get(self, key: &str) -> Result<Option<(Vec<u8>, u64)>, Error> {
        match self.entry(Method::GET, key).bytes().await {
            Ok((value, Some(version))) => Ok(Some((value, version))),
            Ok((_, None)) => Err(Error::Misbehaviour("an entry without a version".to_owned())),
            Err(error) if error.kind() == Some(Kind::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sets an entry, and returns its version.
    pub async fn put(self, key: &str, value: impl Into<Bytes>) -> Result<u64, Error> {
        let call = self.entry(Method::PUT, key).body(value);
        Ok(call.value::<Version>().await?.version)
    }

    /// Sets an entry that ends with a session.
    pub async fn put_in_session(
        self,
        key: &str,
        value: impl Into<Bytes>,
        session: &str,
    ) -> Result<u64, Error> {
        let call = self.entry(Method::PUT, key).query("session", session);
        Ok(call.body(value).value::<Version>().await?.version)
    }

    /// Sets an entry that ends after this time.
    pub async fn put_for(
        self,
        key: &str,
        value: impl Into<Bytes>,
        ttl: Duration,
    ) -> Result<u64, Error> {
        let call = self.entry(Method::PUT, key).ttl(ttl);
        Ok(call.body(value).value::<Version>().await?.version)
    }

    /// Sets an entry if it has this version, or if it is absent and the version is 0.
    /// [`Kind::Mismatch`] if not.
    pub async fn compare_and_set(
        self,
        key: &str,
        version: u64,
        value: impl Into<Bytes>,
    ) -> Result<u64, Error> {
        let call = self.entry(Method::PUT, key).query("version", version);
        Ok(call.body(value).value::<Version>().await?.version)
    }

    /// Removes an entry, if it has this version where one is given. [`Kind::Mismatch`] if not.
    pub async fn delete(self, key: &str, version: Option<u64>) -> Result<u64, Error> {
        let call = self.entry(Method::DELETE, key).maybe("version", version);
        Ok(call.value::<Version>().await?.version)
    }

    /// Lists entries with keys of this prefix, greater than `after`.
    pub async fn list(self, prefix: &str, after: Option<&str>) -> Result<Listing, Error> {
        let call = self.call(Method::GET, "entries");
        let call = call.query("prefix", prefix).maybe("after", after);
        call.value().await
    }

    /// Lists all entries with keys of this prefix, as one request. The agent reads them in parts, which may be of
    /// different moments. The version is that of the first part: a [watch](Self::watch) since then reports all changes
    /// that the list may lack. [`Error::TooLong`] above [`Agent::LONGEST`] bytes: [`list`](Self::list) them in parts.
    pub async fn list_all(self, prefix: &str) -> Result<Listing, Error> {
        let call = self.call(Method::GET, "entries");
        call.query("prefix", prefix)
            .query("all", true)
            .value()
            .await
    }

    /// Reports changes of entries with keys of this prefix: after the version `since`, as of a [`Listing`]. `None`
    /// begins at version 0: all present entries come first, if there are some. After [`MapEvent::Compacted`] all
    /// present entries follow, and others must be forgotten.
    pub async fn watch(self, prefix: &str, since: Option<u64>) -> Result<Events<MapEvent>, Error> {
        let call = self.call(Method::GET, "watch").query("prefix", prefix);
        let stream = call.maybe("since", since).stream().await?;
        Ok(Events::new(stream, map_event))
    }

    /// Does the steps of a transaction. [`Kind::Mismatch`] if a comparison failed and there are no other steps.
    pub async fn transact(self, transaction: &Transaction) -> Result<Outcome, Error> {
        let call = self.call(Method::POST, "transaction");
        call.json(transaction)?.value().await
    }

    /// Begins a session with this time to live, from a second to a day. Entries end with it.
    pub async fn session(self, ttl: Duration) -> Result<Hold, Error> {
        self.call(Method::POST, "sessions").hold(ttl).await
    }

    fn call(self, method: Method, part: &str) -> Call<'a> {
        self.agent.call(method, &["maps", self.name, part])
    }

    fn entry(self, method: Method, key: &str) -> Call<'a> {
        self.call(method, "entries").key(key)
    }
}

impl Transaction {
    /// A transaction without steps.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            when: Vec::new(),
            then: Vec::new(),
            otherwise: Vec::new(),
        }
    }

    /// Compares an entry's version; 0 if it is absent.
    #[must_use]
    pub fn when(mut self, key: &str, version: u64) -> Self {
        let key = key.to_owned();
        self.when.push(Comparison { key, version });
        self
    }

    /// Appends a step that is done if all comparisons hold.
    #[must_use]
    pub fn then(mut self, step: Step) -> Self {
        self.then.push(step);
        self
    }

    /// Appends a step that is done if a comparison fails.
    #[must_use]
    pub fn otherwise(mut self, step: Step) -> Self {
        self.otherwise.push(step);
        self
    }
}

impl Step {
    /// Sets an entry.
    #[must_use]
    pub fn put(key: &str, value: impl Into<Value>) -> Self {
        Self::Put {
            key: key.to_owned(),
            value: value.into(),
            session: None,
        }
    }

    /// Removes an entry.
    #[must_use]
    pub fn remove(key: &str) -> Self {
        let key = key.to_owned();
        Self::Remove { key }
    }

    /// Makes an entry with a key of this prefix and the next version of the map.
    #[must_use]
    pub fn append(prefix: &str, value: impl Into<Value>) -> Self {
        Self::Append {
            prefix: prefix.to_owned(),
            value: value.into(),
            session: None,
        }
    }

    /// The entry ends with this session. Changes nothing for a removal.
    #[must_use]
    pub fn in_session(mut self, id: &str) -> Self {
        if let Self::Put { session, .. } | Self::Append { session, .. } = &mut self {
            *session = Some(id.to_owned());
        }
        self
    }
}

fn map_event(name: &str, data: &[u8]) -> Result<Option<MapEvent>, Error> {
    #[derive(Deserialize)]
    struct Changed {
        version: u64,
        changes: Vec<Change>,
    }
    Ok(match name {
        "changed" => {
            let Changed { version, changes } = parse(data)?;
            Some(MapEvent::Changed { version, changes })
        }
        "compacted" => Some(MapEvent::Compacted),
        _ => None,
    })
}
