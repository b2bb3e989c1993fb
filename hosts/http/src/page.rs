//! One text for a browser, which runs only code with the text's nonce.

use core::fmt::Write as _;

use axum::body::Bytes;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use thiserror::Error;

/// The style of all pages.
const STYLE: &str = include_str!("page/base.css");
/// The code that all pages share: elements with plain text, and lists of them.
const PROGRAM: &str = include_str!("page/base.js");

/// The system gives no random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the system gives no random numbers: see whether /dev/urandom is there")]
pub struct NoChance;

/// A page, and the policy by which browsers take it.
#[derive(Clone, Debug)]
pub struct Page {
    text: Bytes,
    policy: HeaderValue,
}

impl Page {
    /// A page with this text. In it, `NONCE` stands for the nonce of its style and its program, `BASE_STYLE`
    /// for the style of all pages and `BASE_PROGRAM` for the code that they share.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub fn new(text: &str) -> Result<Self, NoChance> {
        let mut nonce = String::new();
        for _ in 0..2 {
            let part = getrandom::u64().map_err(|_| NoChance)?;
            // A string takes all that is written.
            let _written = write!(nonce, "{part:016x}");
        }
        let policy = format!(
            "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; \
             connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        );
        let policy = HeaderValue::try_from(policy);
        Ok(Self {
            text: text
                .replace("NONCE", &nonce)
                .replace("BASE_STYLE", STYLE.trim_end())
                .replace("BASE_PROGRAM", PROGRAM.trim_end())
                .into(),
            // It has hexadecimal digits and the text above.
            policy: policy.unwrap_or(HeaderValue::from_static("default-src 'none'")),
        })
    }

    /// Adds the headers that restrict the use of an answer.
    pub(crate) fn mark(&self, headers: &mut HeaderMap) {
        headers.insert(CONTENT_SECURITY_POLICY, self.policy.clone());
        for (name, value) in [
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            // The address may hold the token.
            (REFERRER_POLICY, "no-referrer"),
            (CACHE_CONTROL, "no-store"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
}

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        ([(CONTENT_TYPE, "text/html; charset=utf-8")], self.text).into_response()
    }
}
