//! The settings of a request: its query, its body, and the time that it waits.

use core::convert::Infallible;
use core::time::Duration;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use selvedge_udp::selvedge::groups::store::{SessionId, TTL_MAX, TTL_MIN};
use selvedge_udp::{Error, Member, Span};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use tokio::time::{Instant, timeout};

use super::BODY_MAX;
use super::refusal::{Kind, Refusal};
use crate::audit::Caller;

/// The time that a request waits for the mesh unless it gives one.
const WAIT: Duration = Duration::from_secs(10);
/// The longest time that a request waits.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(3_600);
/// The time to live of a hold unless a request gives one.
const TTL: Duration = Duration::from_secs(10);

/// The longest time for which the body of a request may be on its way.
const ARRIVES: Duration = Duration::from_secs(30);

/// The query of a request. Unknown names are refused, except the token, which the guard has read.
#[derive(Debug)]
pub(crate) struct Asked<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let query = parts.uri.query().unwrap_or_default().split('&');
        let query: Vec<&str> = query.filter(|it| !it.starts_with("token=")).collect();
        let wrong = |it| Refusal::bad(format!("the query {query:?} is wrong: {it}"));
        serde_urlencoded::from_str(&query.join("&"))
            .map(Self)
            .map_err(wrong)
    }
}

/// The parts of the path that its pattern names.
#[derive(Debug)]
pub(crate) struct Part<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Part<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let path = Path::from_request_parts(parts, state).await;
        let wrong = |it: &str| Refusal::bad(format!("the path is wrong: {it}"));
        path.map(|Path(it)| Self(it))
            .map_err(|it| wrong(&it.body_text()))
    }
}

/// The client of a request for a hold.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) caller: Caller,
    /// The hold is to live as long as its connection.
    pub(crate) wants_events: bool,
}

impl<S: Sync> FromRequestParts<S> for Client {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let wants_events = wants_events(&parts.headers);
        let caller = Caller::from_request_parts(parts, state).await?;
        Ok(Self {
            caller,
            wants_events,
        })
    }
}

/// The body of a request.
#[derive(Debug)]
pub(crate) struct Body(pub(crate) Bytes);

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        // A connection whose request does not arrive takes the place of another one.
        let body = timeout(ARRIVES, Bytes::from_request(request, state)).await;
        let body = body.map_err(|_| {
            let why = format!("the body did not arrive in {ARRIVES:?}: send it with the request");
            Refusal::new(Kind::Timeout, why)
        })?;
        body.map(Self).map_err(|it| match it.status() {
            StatusCode::PAYLOAD_TOO_LARGE => {
                let why = format!("a body has at most {BODY_MAX} bytes: send less at a time");
                Refusal::new(Kind::TooLarge, why)
            }
            _ => Refusal::bad(format!("the body did not arrive: {it}")),
        })
    }
}

/// The body of a request as JSON.
pub(crate) fn from_json<T: DeserializeOwned>(body: &Bytes) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|it| Refusal::bad(format!("the body is wrong: {it}")))
}

/// A time with its unit, as in `10s` or `500ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Time(Duration);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = |it| {
            let why =
                format!("{text:?} is no time ({it}): give one with its unit, as 10s or 500ms");
            serde::de::Error::custom(why)
        };
        humantime::parse_duration(&text).map(Self).map_err(wrong)
    }
}

/// The longest time that a request waits for the mesh: 10 s by default.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait(Duration);

impl Default for Wait {
    fn default() -> Self {
        Self(WAIT)
    }
}

impl<'de> Deserialize<'de> for Wait {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wait = Time::deserialize(deserializer)?.0;
        Ok(Self(wait.min(WAIT_MAX)))
    }
}

impl Wait {
    /// Returns true if the caller does not wait for others.
    pub(crate) const fn is_zero(self) -> bool {
        self.0.is_zero()
    }

    /// The same, or a refusal if it is zero: an attempt takes several messages.
    pub(crate) fn above_zero(self) -> Result<Self, Refusal> {
        match self.is_zero() {
            true => Err(Refusal::bad(
                "wait=0s is for locks and queues: give a longer wait, as 1s",
            )),
            false => Ok(self),
        }
    }

    pub(crate) fn span(self) -> Span {
        Span::from(self.0)
    }

    /// The end of the wait.
    #[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
    pub(crate) fn end(self) -> Instant {
        Instant::now() + self.0
    }

    /// The rest of a wait with this end: a second at least.
    #[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
    pub(crate) fn until(self, end: Instant) -> Self {
        let left = end.saturating_duration_since(Instant::now());
        Self(left.clamp(Duration::from_secs(1), self.0.max(Duration::from_secs(1))))
    }

    /// Waits for this long at most.
    pub(crate) async fn of<T>(
        self,
        it: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Refusal> {
        // An answer takes some messages.
        let wait = if self.is_zero() {
            Self::default()
        } else {
            self
        };
        wait.over(it).await.unwrap_or_else(|| {
            let why = format!(
                "no answer in {}: ask again, or with a longer wait; a change may have been made, or may be made later",
                humantime::format_duration(wait.0)
            );
            Err(Refusal::new(Kind::Timeout, why))
        })
    }

    /// The same; `None` when the time is over.
    pub(crate) async fn over<T>(
        self,
        it: impl Future<Output = Result<T, Error>>,
    ) -> Option<Result<T, Refusal>> {
        let outcome = timeout(self.0, it).await.ok()?;
        Some(outcome.map_err(Refusal::from))
    }
}

/// A time to live: 10 s by default.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ttl(Duration);

impl Default for Ttl {
    fn default() -> Self {
        Self(TTL)
    }
}

impl<'de> Deserialize<'de> for Ttl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Time::deserialize(deserializer).map(|it| Self(it.0))
    }
}

impl Ttl {
    pub(crate) const fn duration(self) -> Duration {
        self.0
    }

    /// The time for a session, if it is one from a second to a day.
    pub(crate) fn span(self) -> Result<Span, Refusal> {
        let span = Span::from(self.0);
        match (TTL_MIN..=TTL_MAX).contains(&span) {
            true => Ok(span),
            false => Err(Refusal::bad(format!(
                "a time to live is from 1s to 1day, this one is {}",
                humantime::format_duration(self.0)
            ))),
        }
    }
}

/// The name of a session, as entries show it.
pub(crate) fn session_id(text: &str) -> Result<SessionId, Refusal> {
    let parts: Vec<&str> = text.split('.').collect();
    let session = match parts[..] {
        [id, life, number] => id
            .parse()
            .ok()
            .zip(life.parse().ok())
            .zip(number.parse().ok()),
        _ => None,
    };
    let Some(((id, life), number)) = session else {
        let why = format!("{text:?} is no session: give the name that its hold has, as 7.0.12");
        return Err(Refusal::bad(why));
    };
    let by = Member::new(id, life);
    Ok(SessionId { by, number })
}

/// Returns true if the client asks for server-sent events.
pub(crate) fn wants_events(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).map(|it| it.as_bytes());
    accept.is_some_and(|it| it.starts_with(b"text/event-stream"))
}

#[cfg(test)]
mod tests {
    use core::convert::Infallible;

    use axum::body::Body as Content;
    use axum::extract::{FromRequest as _, Request};
    use axum::response::IntoResponse as _;
    use futures_util::stream;
    use tokio::time::timeout;

    use super::{ARRIVES, Body};

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_arrive_is_refused() {
        let never = stream::pending::<Result<Vec<u8>, Infallible>>();
        let request = Request::new(Content::from_stream(never));
        let body = timeout(2 * ARRIVES, Body::from_request(request, &())).await;
        let refusal = body.expect("an end").unwrap_err();
        assert_eq!(refusal.into_response().status(), 408);
    }
}
