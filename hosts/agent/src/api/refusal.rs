//! Refusals: a status, and `{"error": "..", "kind": ".."}`.

use core::fmt;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use selvedge_http::Refused;
use selvedge_udp::selvedge::groups::store::StoreReject;
use selvedge_udp::selvedge::{self, kgroup};
use selvedge_udp::{Error, Reject};
use serde::Serialize;

use super::answer::json_with;

/// The kind of a refusal, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "&'static str")]
pub(crate) enum Kind {
    /// The request has no meaning.
    BadRequest,
    /// There is no such thing.
    NotFound,
    /// The API has no such path.
    NoPath,
    /// The token is missing or wrong.
    Unauthorized,
    /// The client may not do this.
    Forbidden,
    /// The time to wait is over. A change may still be made.
    Timeout,
    /// A comparison failed.
    Mismatch,
    /// The session has ended.
    SessionOver,
    /// It is too long.
    TooLarge,
    /// The mesh gives no answer.
    Unavailable,
    /// A limit is reached.
    Full,
}

/// A request that was not carried out, or is not known to be.
#[derive(Debug)]
pub(crate) struct Refusal {
    kind: Kind,
    error: String,
}

#[derive(Serialize)]
struct Body<'a> {
    error: &'a str,
    kind: Kind,
}

impl Refusal {
    pub(crate) fn new(kind: Kind, error: impl fmt::Display) -> Self {
        let error = error.to_string();
        Self { kind, error }
    }

    pub(crate) fn bad(error: impl fmt::Display) -> Self {
        Self::new(Kind::BadRequest, error)
    }
}

impl From<Kind> for &'static str {
    fn from(kind: Kind) -> Self {
        kind.text()
    }
}

impl Kind {
    /// Its name in answers.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::BadRequest => "bad_request",
            Self::NotFound => "not_found",
            Self::NoPath => "no_path",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::Timeout => "timeout",
            Self::Mismatch => "mismatch",
            Self::SessionOver => "session_over",
            Self::TooLarge => "too_large",
            Self::Unavailable => "unavailable",
            Self::Full => "full",
        }
    }

    const fn status(self) -> StatusCode {
        match self {
            Self::BadRequest => StatusCode::BAD_REQUEST,
            Self::NotFound | Self::NoPath => StatusCode::NOT_FOUND,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::Timeout => StatusCode::REQUEST_TIMEOUT,
            Self::Mismatch => StatusCode::CONFLICT,
            Self::SessionOver => StatusCode::GONE,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Full => StatusCode::INSUFFICIENT_STORAGE,
        }
    }
}

/// A refusal of the guard, as one of the API.
pub(crate) fn of_guard(refused: Refused) -> Response {
    let Refused { status, why } = refused;
    let kind = match status {
        StatusCode::UNAUTHORIZED => Kind::Unauthorized,
        StatusCode::URI_TOO_LONG => Kind::TooLarge,
        _ => Kind::Forbidden,
    };
    response(status, &Body { error: &why, kind })
}

/// The response of a refusal, with its kind for the audit.
fn response(status: StatusCode, body: &Body<'_>) -> Response {
    let mut response = json_with(status, body);
    response.extensions_mut().insert(body.kind);
    response
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let Self { kind, error } = &self;
        response(kind.status(), &Body { error, kind: *kind })
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::Rejected(reject) => kind_of(reject),
            Error::Closed | Error::Unanswered => Kind::Unavailable,
        };
        Self::new(kind, error)
    }
}

#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "other causes, also later ones, are requests that the node refuses"
)]
fn kind_of(reject: &Reject) -> Kind {
    match reject {
        Reject::SessionOver(_) => Kind::SessionOver,
        Reject::MapFull | Reject::NoSession | Reject::QueriesFull { .. } => Kind::Full,
        Reject::NoQuestion => Kind::NotFound,
        Reject::NewLife | Reject::Leaving | Reject::OtherSite(_) => Kind::Unavailable,
        Reject::OtherChange { .. } | Reject::Mismatch { .. } | Reject::Answered => Kind::Mismatch,
        Reject::Tags(_) | Reject::QueryTooLong { .. } => Kind::TooLarge,
        Reject::Node(selvedge::Reject::Groups(kgroup::Reject::Map(reject))) => match reject {
            StoreReject::TooLong { .. } => Kind::TooLarge,
            StoreReject::Full { .. } | StoreReject::Maps { .. } => Kind::Full,
            _ => Kind::BadRequest,
        },
        _ => Kind::BadRequest,
    }
}
