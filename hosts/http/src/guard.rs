//! The check whether a client may read the page.

use core::fmt;
use core::net::IpAddr;
use core::str::FromStr;

use axum::http::header::{AUTHORIZATION, HOST, ORIGIN, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

/// The fewest characters of a token.
const TOKEN_MIN: usize = 16;
/// The most characters of a token.
const TOKEN_MAX: usize = 128;
/// The text before the token in a header.
const SCHEME: &[u8] = b"Bearer ";
/// The most bytes in the path and the query of a request.
const URI_MAX: usize = 4_096;

/// The secret of a page's readers: 16 to 128 letters, digits and `-._~`, which an address may hold as they
/// are.
#[derive(Clone, PartialEq, Eq)]
pub struct Token([u8; 32]);

/// The tokens of clients.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// The token of clients that may do all; `None`: clients at loopback addresses, or of a unix socket, need none.
    pub token: Option<Token>,
    /// The token of clients that may read alone, which do nothing but `GET` and `HEAD`.
    pub readers: Option<Token>,
}

/// The right of a client, by the token that it gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// No token is asked for.
    Open,
    /// It may do all.
    Full,
    /// It may read alone.
    Reader,
    /// Its token is missing or wrong.
    Stranger,
}

impl Access {
    /// The role of the client of this request.
    #[must_use]
    pub fn role(&self, uri: &Uri, headers: &HeaderMap) -> Role {
        let gives = |it: &Token| has_token(it, uri, headers);
        match (&self.token, &self.readers) {
            (None, _) => Role::Open,
            (Some(token), _) if gives(token) => Role::Full,
            (Some(_), Some(readers)) if gives(readers) => Role::Reader,
            (Some(_), _) => Role::Stranger,
        }
    }
}

impl From<Option<Token>> for Access {
    fn from(token: Option<Token>) -> Self {
        let readers = None;
        Self { token, readers }
    }
}

/// The reason why a text is no [`Token`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TokenError {
    /// It is too short or too long; its length in bytes.
    #[error("a token has {TOKEN_MIN} to {TOKEN_MAX} characters, this one has {0}")]
    Length(usize),
    /// It has other characters.
    #[error("a token has letters of English, digits and -._~ alone")]
    Character,
}

impl Token {
    /// Compares digests, so the time that it takes reveals nothing of the token.
    fn is(&self, text: &[u8]) -> bool {
        self.0 == <[u8; 32]>::from(Sha256::digest(text))
    }
}

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        if !(TOKEN_MIN..=TOKEN_MAX).contains(&text.len()) {
            return Err(TokenError::Length(text.len()));
        }
        let fits = |it: u8| it.is_ascii_alphanumeric() || b"-._~".contains(&it);
        match text.bytes().all(fits) {
            true => Ok(Self(Sha256::digest(text).into())),
            false => Err(TokenError::Character),
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// A request that the guard refuses. As a response it is a line of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The status: 401 without a token, 403 where the client may not do it, 414 for a long address.
    pub status: StatusCode,
    /// The reason, with the remedy.
    pub why: String,
}

impl Refused {
    fn new(status: StatusCode, why: impl Into<String>) -> Self {
        let why = why.into();
        Self { status, why }
    }

    /// Its response, as `write` makes it, with the header that its status needs.
    pub(crate) fn response(self, write: fn(Self) -> Response) -> Response {
        let status = self.status;
        let mut response = write(self);
        if status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (self.status, format!("{}\n", self.why)).into_response()
    }
}

/// `None` if the request may be answered, and else the refusal.
pub(crate) fn refusal(
    access: &Access,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
) -> Option<Refused> {
    let forbidden = |why: &str| Some(Refused::new(StatusCode::FORBIDDEN, why));
    let len = uri.path_and_query().map_or(0, |it| it.as_str().len());
    if len > URI_MAX {
        let why = format!("the address has {len} bytes, {URI_MAX} are read: shorten it");
        return Some(Refused::new(StatusCode::URI_TOO_LONG, why));
    }
    match access.role(uri, headers) {
        Role::Reader if !method.is_safe() => {
            forbidden("this token reads alone: give the token of clients that may change something")
        }
        Role::Stranger => {
            let why = "give the token of this page: /?token=TOKEN, or \
                       the header `Authorization: Bearer TOKEN`";
            Some(Refused::new(StatusCode::UNAUTHORIZED, why))
        }
        // A page of another site may have its own name lead here: the name in the request reveals it.
        Role::Open if !is_local(headers) => forbidden(
            "without a token this page is at a loopback address alone: \
             open http://127.0.0.1 or http://localhost with its port",
        ),
        // A form on such a page posts here without a question; its origin reveals it.
        Role::Open | Role::Full if !method.is_safe() && !is_own(headers) => forbidden(
            "this was sent by the page of another site: send it from this page, or from a program",
        ),
        Role::Open | Role::Full | Role::Reader => None,
    }
}

/// Returns true unless a browser names another site as the origin. A program sends no origin.
fn is_own(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(ORIGIN) else {
        return true;
    };
    let host = headers.get(HOST).map(|it| it.as_bytes());
    let origin = origin.as_bytes();
    let origin = origin
        .strip_prefix(b"http://")
        .or_else(|| origin.strip_prefix(b"https://"));
    origin.is_some() && origin == host
}

fn has_token(token: &Token, uri: &Uri, headers: &HeaderMap) -> bool {
    let header = headers.get(AUTHORIZATION).map(|it| it.as_bytes());
    let header = header.and_then(|it| it.split_at_checked(SCHEME.len()));
    // The name of a scheme is the same in capitals (RFC 9110, section 11.1).
    let header = header.filter(|it| it.0.eq_ignore_ascii_case(SCHEME));
    let header = header.map(|it| it.1.trim_ascii_start());
    let mut query = uri.query().unwrap_or_default().split('&');
    let query = query.find_map(|it| it.strip_prefix("token="));
    header
        .or_else(|| query.map(str::as_bytes))
        .is_some_and(|it| token.is(it))
}

/// Returns true if the client names a loopback address or `localhost` as the host, or names no host. All
/// browsers name the host.
fn is_local(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(HOST) else {
        return true;
    };
    let Ok(host) = host.to_str() else {
        return false;
    };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|it| it.is_ascii_digit()) => name,
        Some(_) | None => host,
    };
    let bare = name.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let address = bare.unwrap_or(name).parse::<IpAddr>();
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|it| it.is_loopback())
}
