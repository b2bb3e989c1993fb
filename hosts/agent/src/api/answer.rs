//! Answers: JSON, and values as texts or in base64.

use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::sse;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::refusal::Refusal;

/// The answer of a handler.
pub(crate) type Answer = Result<Response, Refusal>;

/// An answer in JSON.
pub(crate) fn json(it: &impl Serialize) -> Answer {
    Ok(json_with(StatusCode::OK, it))
}

pub(crate) fn json_with(status: StatusCode, it: &impl Serialize) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], text(it)).into_response()
}

/// A value in JSON. Only a map with keys that are not strings can fail, and no such map is written.
pub(crate) fn text(it: &impl Serialize) -> String {
    serde_json::to_string(it).unwrap_or_default()
}

/// A server-sent event with a value in JSON.
pub(crate) fn event(name: &str, it: &impl Serialize) -> sse::Event {
    sse::Event::default().event(name).data(text(it))
}

/// An answer of bytes.
pub(crate) fn bytes(value: Vec<u8>) -> Response {
    let header = [(CONTENT_TYPE, "application/octet-stream")];
    (header, Body::from(value)).into_response()
}

/// Bytes in JSON: `value` if they are UTF-8, else `value_base64`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Value {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) value_base64: Option<String>,
}

impl Value {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        match core::str::from_utf8(bytes) {
            Ok(text) => Self {
                value: Some(text.to_owned()),
                value_base64: None,
            },
            Err(_) => Self {
                value: None,
                value_base64: Some(STANDARD.encode(bytes)),
            },
        }
    }

    /// Its bytes; none where neither field is given.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, Refusal> {
        match (&self.value, &self.value_base64) {
            (Some(text), None) => Ok(text.as_bytes().to_vec()),
            (None, Some(text)) => {
                let no_base64 = |it| Refusal::bad(format!("value_base64 is no base64: {it}"));
                STANDARD.decode(text).map_err(no_base64)
            }
            (None, None) => Ok(Vec::new()),
            (Some(_), Some(_)) => Err(Refusal::bad("give value or value_base64, and not both")),
        }
    }
}
