//! An agent, and requests to it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::connection::{Answer, Place};
use crate::events::Stream;
use crate::standing::now;
use crate::{Error, Hold, Map};

/// The characters that stand for themselves in a part of a path or in a query.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');
/// The same in a key, which is the rest of a path.
const KEY: &AsciiSet = &PLAIN.remove(b'/');

/// The type of a stream of events.
pub(crate) const EVENTS: &str = "text/event-stream";

/// The agent of a host. Clones are cheap. It holds no connection.
#[derive(Clone, Debug)]
pub struct Agent {
    place: Arc<Place>,
    /// The value of the header, marked as sensitive.
    authorization: Option<HeaderValue>,
    wait: Duration,
}

/// A request in the making.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    agent: &'a Agent,
    method: Method,
    target: String,
    /// True once the target has a query.
    has_query: bool,
    accept: &'static str,
    content: &'static str,
    body: Bytes,
}

/// The time that an answer may take.
#[derive(Clone, Copy, Debug)]
struct Limit(Duration);

impl Agent {
    /// The longest answer and the longest event, in bytes. A longer one is [`Error::TooLong`].
    pub const LONGEST: usize = 4 << 20;
    /// The time that an answer may take beyond the [wait](Self::with_wait) of its request: an agent that has just
    /// started waits up to 10 s for its place in the mesh, and takes a wait of 0 for 10 s where it needs answers.
    pub const GRACE: Duration = Duration::from_secs(30);
    /// The priority of a candidate and of an item that is given none.
    pub const PRIORITY: u32 = 100;

    /// The agent at `http://HOST:PORT` or `unix:/PATH`. Nothing is sent before the first call.
    ///
    /// # Errors
    /// [`Error::Address`].
    pub fn new(address: &str) -> Result<Self, Error> {
        Ok(Self {
            place: Arc::new(Place::parse(address)?),
            authorization: None,
            wait: Duration::from_secs(10),
        })
    }

    /// Presents this token with each request.
    ///
    /// # Errors
    /// [`Error::Token`].
    pub fn with_token(self, token: &str) -> Result<Self, Error> {
        let value = HeaderValue::try_from(format!("Bearer {token}"));
        let mut value = value.map_err(|_| Error::Token)?;
        value.set_sensitive(true);
        Ok(Self {
            authorization: Some(value),
            ..self
        })
    }

    /// Sets the time that the agent waits for the mesh, for a lock or for an item: up to an hour; 10 s at first. 0 is
    /// one attempt at a lock or an item, and is refused for permits, elections and barriers. When the time is over, the
    /// call returns [`Kind::Timeout`](crate::Kind::Timeout).
    #[must_use]
    pub fn with_wait(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    pub(crate) const fn wait(&self) -> Duration {
        self.wait
    }

    /// A map of the mesh.
    #[must_use]
    pub const fn map<'a>(&'a self, name: &'a str) -> Map<'a> {
        Map::new(self, name)
    }

    /// Begins a request: `/v1` and these parts.
    pub(crate) fn call(&self, method: Method, parts: &[&str]) -> Call<'_> {
        let mut target = String::from("/v1");
        for part in parts {
            target.push('/');
            target.extend(utf8_percent_encode(part, PLAIN));
        }
        Call {
            agent: self,
            method,
            target,
            has_query: false,
            accept: "application/json",
            content: "application/octet-stream",
            body: Bytes::new(),
        }
    }
}

impl Call<'_> {
    /// Appends a key.
    pub(crate) fn key(mut self, key: &str) -> Self {
        self.target.push('/');
        self.target.extend(utf8_percent_encode(key, KEY));
        self
    }

    pub(crate) fn query(mut self, name: &str, value: impl ToString) -> Self {
        self.target.push(if self.has_query { '&' } else { '?' });
        self.has_query = true;
        self.target.push_str(name);
        self.target.push('=');
        self.target
            .extend(utf8_percent_encode(&value.to_string(), PLAIN));
        self
    }

    pub(crate) fn maybe(self, name: &str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    /// A time to live.
    pub(crate) fn ttl(self, ttl: Duration) -> Self {
        self.query("ttl", text_of(ttl))
    }

    pub(crate) fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    pub(crate) fn json(mut self, body: &impl serde::Serialize) -> Result<Self, Error> {
        let body = serde_json::to_vec(body);
        let body =
            body.map_err(|it| Error::Request(format!("the body ({it}): send another value")))?;
        self.content = "application/json";
        Ok(self.body(body))
    }

    /// The value of a JSON answer.
    pub(crate) async fn value<T: DeserializeOwned>(self) -> Result<T, Error> {
        parse(&self.bytes().await?.0)
    }

    /// Awaits an answer without a value.
    pub(crate) async fn done(self) -> Result<(), Error> {
        self.bytes().await.map(drop)
    }

    /// The bytes of an answer, and the version in its head.
    pub(crate) async fn bytes(self) -> Result<(Vec<u8>, Option<u64>), Error> {
        let limit = self.limit();
        limit
            .within(async {
                let answer = self.send().await?;
                let version = answer.headers.get("selvedge-version");
                let version = version.and_then(|it| it.to_str().ok()?.parse().ok());
                Ok((answer.collect().await?, version))
            })
            .await
    }

    /// The events of an answer.
    pub(crate) async fn stream(mut self) -> Result<Stream, Error> {
        self.accept = EVENTS;
        let limit = self.limit();
        limit
            .within(async { Stream::new(self.send().await?) })
            .await
    }

    /// A hold that lives as long as its connection.
    pub(crate) async fn hold(mut self, ttl: Duration) -> Result<Hold, Error> {
        self.accept = EVENTS;
        let (limit, agent) = (self.limit(), self.agent.clone());
        let call = self.ttl(ttl);
        limit
            .within(async {
                let sent = now();
                let stream = Stream::new(call.send().await?)?;
                Hold::begin(agent, stream, sent).await
            })
            .await
    }

    const fn limit(&self) -> Limit {
        Limit(self.agent.wait.saturating_add(Agent::GRACE))
    }

    /// Sends it. A refusal is an error.
    async fn send(self) -> Result<Answer, Error> {
        let place = Arc::clone(&self.agent.place);
        let wait = text_of(self.agent.wait);
        let answer = place.send(self.query("wait", wait).request()?).await?;
        if answer.status.is_success() {
            return Ok(answer);
        }
        let status = answer.status.as_u16();
        Err(Error::refused(status, &answer.collect().await?))
    }

    fn request(self) -> Result<Request<Full<Bytes>>, Error> {
        let mut request = Request::builder()
            .method(self.method)
            .uri(self.target)
            .header(HOST, self.agent.place.host())
            .header(ACCEPT, self.accept)
            .header(CONTENT_TYPE, self.content);
        if let Some(token) = &self.agent.authorization {
            request = request.header(AUTHORIZATION, token);
        }
        let request = request.body(Full::new(self.body));
        request
            .map_err(|it| Error::Request(format!("the target ({it}): use shorter names and keys")))
    }
}

impl Limit {
    /// The outcome of a conversation, or an error when its time is over.
    async fn within<T>(
        self,
        conversation: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let outcome = timeout(self.0, conversation).await;
        outcome.unwrap_or(Err(Error::Silent(self.0)))
    }
}

/// A time as the API writes it. Parts of a millisecond are rounded up.
fn text_of(time: Duration) -> String {
    format!("{}ms", time.as_nanos().div_ceil(1_000_000))
}

pub(crate) fn parse<T: DeserializeOwned>(json: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(json)
        .map_err(|it| Error::Misbehaviour(format!("the answer is invalid in this API ({it})")))
}
