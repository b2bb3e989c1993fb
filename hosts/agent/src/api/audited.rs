//! Notes calls for the audit.

use core::convert::Infallible;

use axum::extract::{FromRequestParts, MatchedPath, RawPathParams, Request, State};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use selvedge_http::Access;

use super::Api;
use super::refusal::Kind;
use crate::audit::{self, By, Caller, Event, Names};

/// The path of a hold. An extension changes nothing but its time, and comes every few seconds.
const HOLD: &str = "/v1/holds/{hold}";

/// The methods of HTTP.
const METHODS: [Method; 9] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::OPTIONS,
    Method::CONNECT,
    Method::TRACE,
];

/// The API, and the tokens of its clients.
#[derive(Clone, Debug)]
pub(super) struct Audited {
    pub(super) api: Api,
    pub(super) access: Access,
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().cloned().unwrap_or_default())
    }
}

/// A call, until it has an answer.
struct Call {
    api: Api,
    caller: Caller,
    /// The method and the pattern of the path.
    call: String,
    on: Names,
    /// It may change something.
    changes: bool,
    has_answer: bool,
}

/// Has handlers know the client of a request, and notes the call.
pub(super) async fn audited(
    State(Audited { api, access }): State<Audited>,
    request: Request,
    next: Next,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let caller = Caller {
        by: parts.extensions.get::<By>().copied(),
        role: Some(access.role(&parts.uri, &parts.headers)),
        ..Caller::default()
    };
    parts.extensions.insert(caller.clone());
    if !api.audit.is_on() {
        return next.run(Request::from_parts(parts, body)).await;
    }
    let mut call = Call::new(api, caller, &mut parts).await;
    let answer = next.run(Request::from_parts(parts, body)).await;
    call.end(&answer);
    answer
}

impl Call {
    async fn new(api: Api, caller: Caller, parts: &mut Parts) -> Self {
        let params = RawPathParams::from_request_parts(parts, &()).await;
        let mut on = Names::new();
        for (part, name) in params.iter().flatten() {
            match part {
                "hold" => on.extend(api.holds.names(name).into_iter().flatten()),
                _ => drop(on.insert(part.to_owned(), audit::name(name))),
            }
        }
        let path = parts.extensions.get::<MatchedPath>();
        let path = path.map(MatchedPath::as_str);
        let extends = parts.method == Method::PUT && path == Some(HOLD);
        let changes = !parts.method.is_safe() && !extends && path.is_some();
        Self {
            api,
            caller,
            // A path that is not there, and a method of no standard, may have any text.
            call: format!(
                "{} {}",
                method(&parts.method),
                path.unwrap_or("(no such path)")
            ),
            on,
            changes,
            has_answer: false,
        }
    }

    fn end(&mut self, answer: &Response) {
        self.has_answer = true;
        let status = answer.status();
        let is_refused = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status);
        if is_refused || self.changes {
            let kind = answer.extensions().get::<Kind>();
            self.note(Some(status), kind.map_or("done", |it| it.text()));
        }
    }

    fn note(&self, status: Option<StatusCode>, outcome: &str) {
        let mut on = self.on.clone();
        on.extend(self.caller.names.get().cloned().into_iter().flatten());
        let event = Event {
            call: &self.call,
            on: &on,
            status: status.map(|it| it.as_u16()),
            outcome,
        };
        self.api.audit.note(&self.caller, event);
    }
}

fn method(method: &Method) -> &str {
    match METHODS.contains(method) {
        true => method.as_str(),
        false => "(other)",
    }
}

impl Drop for Call {
    /// The client went before the answer: a change may have been made.
    fn drop(&mut self) {
        if self.changes && !self.has_answer {
            self.note(None, "unanswered");
        }
    }
}
