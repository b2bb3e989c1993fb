//! Requests as bytes: an operation of the description, or any method and path; then its parts, its query, its
//! headers and its body, each a word of a list or any text.

use core::fmt;
use core::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, Method, Request as Http};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::description::Description;

/// The token of clients that may do all.
pub(super) const TOKEN: &str = "all-0123456789abcdef";
/// The token of clients that may read alone.
pub(super) const READERS: &str = "readers-0123456789abcdef";

/// An operation from this number on is any method and any path.
const ANY: u8 = 0xe0;
/// A name in a query from this number on is any text.
const ANY_NAME: u8 = 0xf0;
/// A word from this number on is any text, of as many bytes as the number is above it.
const ANY_WORD: u8 = 0x80;
/// The time that a request without a wait waits.
const WAIT: Duration = Duration::from_secs(10);
/// The longest time that a request waits.
const WAIT_MAX: Duration = Duration::from_secs(3_600);

const METHODS: [&str; 8] = [
    "GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH", "X",
];

/// Words that have a meaning somewhere. [`Known`] has those of the first numbers.
pub(super) const WORDS: [&str; 24] = [
    "a",
    "b",
    "door",
    "a/b",
    "0",
    "1",
    "2",
    "7",
    "0s",
    "1s",
    "500ms",
    "1h",
    "1day",
    "true",
    "",
    "-1",
    "18446744073709551615",
    "1.0.1",
    "0123456789abcdef",
    "\u{e9}",
    "..",
    "%",
    "locks",
    "lock/door/",
];

/// Bodies that have a meaning somewhere.
pub(super) const BODIES: [&str; 9] = [
    r#"{"names":["a","door"]}"#,
    r#"{"then":[{"put":{"key":"a","value":"1"}},{"append":{"prefix":"q/","value_base64":"/w=="}}]}"#,
    r#"{"when":[{"key":"a","version":0}],"then":[{"remove":{"key":"a"}}],"otherwise":[{"put":{"key":"b"}}]}"#,
    r#"{"then":[{"put":{"key":"a","value":"1","session":"1.0.1"}}]}"#,
    r#"{"floor":"1"}"#,
    r#"{"then":[]}"#,
    "192.0.2.7:80",
    "[[[[[[[[",
    "null",
];

/// Names that answers have shown.
#[derive(Debug, Default)]
pub(super) struct Known {
    hold: String,
    session: String,
    version: String,
}

/// A request.
#[derive(Debug)]
pub(super) struct Request {
    /// The number of its operation in the description.
    pub(super) operation: Option<usize>,
    pub(super) method: String,
    target: String,
    /// The path is one of the operation's: none of its parts is empty.
    pub(super) is_plain: bool,
    pub(super) needs_token: bool,
    pub(super) stays_open: bool,
    headers: Vec<(&'static str, &'static str)>,
    body: Content,
}

/// The body of a request.
struct Content(Vec<u8>);

impl Known {
    /// Remembers the names in an answer: JSON, or the first event of a stream.
    pub(super) fn learn(&mut self, body: &[u8]) {
        let text = String::from_utf8_lossy(body);
        let data = text.lines().find_map(|it| it.strip_prefix("data:"));
        let Ok(Value::Object(found)) = serde_json::from_str(data.unwrap_or(&text)) else {
            return;
        };
        for (name, place) in [("hold", &mut self.hold), ("session", &mut self.session)] {
            if let Some(text) = found.get(name).and_then(Value::as_str) {
                text.clone_into(place);
            }
        }
        if let Some(version) = found.get("version").and_then(Value::as_u64) {
            self.version = version.to_string();
        }
    }
}

impl Request {
    /// Reads a request from the first bytes; bytes that are missing are zeros.
    pub(super) fn read(bytes: &mut &[u8], description: &Description, known: &Known) -> Self {
        let first = byte(bytes);
        let number = usize::from(first) % description.operations.len();
        let operation = description.operations.get(number).filter(|_| first < ANY);
        let mut is_plain = true;
        let (method, mut target) = match operation {
            Some(operation) => {
                let mut target = String::new();
                for (nth, part) in operation.path.split('/').enumerate() {
                    if nth > 0 {
                        target.push('/');
                    }
                    if !part.starts_with('{') {
                        target.push_str(part);
                        continue;
                    }
                    let word = word(bytes, known);
                    is_plain &= !word.is_empty();
                    target.extend(utf8_percent_encode(&word, NON_ALPHANUMERIC));
                }
                (operation.method.clone(), target)
            }
            None => {
                let method = METHODS.get(usize::from(byte(bytes)) % METHODS.len());
                let path = format!("/{}", word(bytes, known));
                (method.unwrap_or(&"GET").to_string(), path)
            }
        };
        let names: &[String] = operation.map_or(&[], |it| &it.query);
        let mut sign = '?';
        for _ in 0..byte(bytes) % 5 {
            let number = byte(bytes);
            let name = match names.get(usize::from(number) % names.len().max(1)) {
                Some(name) if number < ANY_NAME => name.clone(),
                Some(_) | None => word(bytes, known),
            };
            let value = utf8_percent_encode(&word(bytes, known), NON_ALPHANUMERIC).to_string();
            target = format!("{target}{sign}{name}={value}");
            sign = '&';
        }
        let flags = byte(bytes);
        let mut headers = Vec::new();
        for (bit, name, value) in [
            (1, "accept", "text/event-stream"),
            (4, "authorization", "Bearer all-0123456789abcdef"),
            (8, "authorization", "Bearer readers-0123456789abcdef"),
            (16, "origin", "http://192.0.2.1"),
            (32, "sec-fetch-site", "cross-site"),
            (64, "host", "elsewhere.example"),
        ] {
            if flags & bit != 0 {
                headers.push((name, value));
            }
        }
        Self {
            operation: operation.map(|_| number),
            method,
            target,
            is_plain,
            needs_token: flags & 2 != 0,
            stays_open: flags & 128 == 0,
            headers,
            body: Content(body(bytes)),
        }
    }

    /// The longest time for which the agent may wait by its query.
    pub(super) fn wait(&self) -> Duration {
        match self.target.contains("wait=") {
            true => WAIT_MAX,
            false => WAIT,
        }
    }

    /// The same for a server; `None` if HTTP has no form for it.
    pub(super) fn http(&self) -> Option<Http<Body>> {
        let method = Method::from_bytes(self.method.as_bytes()).ok()?;
        let mut request = Http::builder().method(method).uri(&self.target);
        for (name, value) in &self.headers {
            request = request.header(*name, HeaderValue::from_static(value));
        }
        request.body(Body::from(self.body.0.clone())).ok()
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: String = String::from_utf8_lossy(&self.0).chars().take(300).collect();
        write!(f, "{} bytes {text:?}", self.0.len())
    }
}

fn byte(bytes: &mut &[u8]) -> u8 {
    let Some((first, rest)) = bytes.split_first() else {
        return 0;
    };
    *bytes = rest;
    *first
}

fn text(bytes: &mut &[u8], len: usize) -> Vec<u8> {
    let (text, rest) = bytes.split_at(len.min(bytes.len()));
    *bytes = rest;
    text.to_vec()
}

fn word(bytes: &mut &[u8], known: &Known) -> String {
    let number = byte(bytes);
    if number >= ANY_WORD {
        let text = text(bytes, usize::from(number - ANY_WORD));
        return String::from_utf8_lossy(&text).into_owned();
    }
    match number {
        0 => known.hold.clone(),
        1 => known.session.clone(),
        2 => known.version.clone(),
        // Longer than a name may be.
        3 => "n".repeat(300),
        _ => {
            let word = WORDS.get(usize::from(number - 4) % WORDS.len());
            word.copied().unwrap_or_default().to_owned()
        }
    }
}

fn body(bytes: &mut &[u8]) -> Vec<u8> {
    match byte(bytes) % 4 {
        0 => Vec::new(),
        1 => {
            let len = usize::from(byte(bytes));
            text(bytes, len)
        }
        2 => {
            let body = BODIES.get(usize::from(byte(bytes)) % BODIES.len());
            body.copied().unwrap_or_default().as_bytes().to_vec()
        }
        // Up to the longest body and beyond.
        _ => {
            let filler = byte(bytes);
            vec![filler; usize::from(byte(bytes)) * 300]
        }
    }
}
