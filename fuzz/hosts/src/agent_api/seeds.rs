//! The inputs that begin a search: each operation, as a stream and without, and some in a row.

use super::description::{Description, Operation};
use super::input::{BODIES, WORDS};

/// The bits of the headers of a request for a stream.
const EVENTS: u8 = 1;
/// The word of the last hold.
const HOLD: u8 = 0;

/// The names and the bytes of the inputs.
#[must_use]
pub fn seeds() -> Vec<(String, Vec<u8>)> {
    let description = Description::read();
    let mut seeds = Vec::new();
    for operation in &description.operations {
        let path = operation.path.replace(['{', '}'], "");
        let path = path
            .trim_start_matches("/v1")
            .trim_matches('/')
            .replace('/', "-");
        let name = format!("{}-{path}", operation.method.to_lowercase());
        seeds.push((
            format!("{name}-events"),
            description.request(operation, "door", EVENTS),
        ));
        seeds.push((name, description.request(operation, "door", 0)));
    }
    for (name, steps) in [
        (
            "row-lock",
            [
                ("POST", "/v1/locks/{name}"),
                ("PUT", "/v1/holds/{hold}"),
                ("DELETE", "/v1/holds/{hold}"),
            ],
        ),
        (
            "row-hand-over",
            [
                ("POST", "/v1/elections/{name}"),
                ("POST", "/v1/holds/{hold}/hand-over"),
                ("DELETE", "/v1/holds/{hold}"),
            ],
        ),
        (
            "row-entry",
            [("PUT", ENTRY), ("GET", ENTRY), ("DELETE", ENTRY)],
        ),
        (
            "row-queue",
            [
                ("POST", "/v1/queues/{name}"),
                ("DELETE", "/v1/queues/{name}"),
                ("DELETE", "/v1/queues/{name}"),
            ],
        ),
    ] {
        let steps = steps.map(|(method, path)| {
            let mut all = description.operations.iter();
            let found = all.find(|it| it.method == method && it.path == path);
            found.map_or_else(Vec::new, |it| description.request(it, "door", 0))
        });
        seeds.push((name.to_owned(), steps.concat()));
    }
    seeds
}

const ENTRY: &str = "/v1/maps/{map}/entries/{key}";

impl Description {
    /// The bytes of a request with this word in its path.
    fn request(&self, operation: &Operation, word: &str, flags: u8) -> Vec<u8> {
        let number = self
            .operations
            .iter()
            .position(|it| core::ptr::eq(it, operation));
        let mut bytes = vec![number.unwrap_or_default() as u8];
        for part in operation.path.split('/').filter(|it| it.starts_with('{')) {
            bytes.push(match part {
                "{id}" => number_of(&WORDS, "1") + 4,
                "{hold}" => HOLD,
                "{question}" => number_of(&WORDS, "1.0.1") + 4,
                _ => number_of(&WORDS, word) + 4,
            });
        }
        let query = operation.query.iter().enumerate();
        let words = query.filter_map(|(nth, name)| {
            let word = match name.as_str() {
                "ttl" | "wait" => "1s",
                "permits" | "number" | "add" | "priority" => "1",
                _ => return None,
            };
            Some([nth as u8, number_of(&WORDS, word) + 4])
        });
        let words: Vec<_> = words.collect();
        bytes.push(words.len() as u8);
        bytes.extend(words.concat());
        bytes.push(flags);
        let body = match &*operation.path {
            _ if !operation.has_body => None,
            "/v1/locks" => BODIES.first().copied(),
            "/v1/tags" => Some(r#"{"floor":"1"}"#),
            path if path.ends_with("transaction") => BODIES.get(1).copied(),
            _ => Some("192.0.2.7:80"),
        };
        match body {
            Some(body) => bytes.extend([2, number_of(&BODIES, body)]),
            None => bytes.push(0),
        }
        bytes
    }
}

fn number_of(all: &[&str], word: &str) -> u8 {
    let number = all.iter().position(|it| *it == word);
    number.unwrap_or_else(|| panic!("{word:?} is no word")) as u8
}
