//! The description of the API, and the check of an answer against it.

use core::time::Duration;
use std::collections::BTreeMap;

use serde_json::Value;

use super::input::Request;
use super::world::Answer;

const TEXT: &str = include_str!("../../../../hosts/agent/src/api/openapi.json");
/// The longest answer that the client takes.
const LONGEST: usize = selvedge_client::Agent::LONGEST;
/// The time that an agent adds to the wait of a request.
const MORE: Duration = Duration::from_secs(20);

/// A method of a path.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) method: String,
    /// With names of parts in braces.
    pub(super) path: String,
    /// The names of its query.
    pub(super) query: Vec<String>,
    pub(super) has_body: bool,
    responses: BTreeMap<String, Value>,
}

#[derive(Debug)]
pub(super) struct Description {
    root: Value,
    pub(super) operations: Vec<Operation>,
}

impl Description {
    pub(super) fn read() -> Self {
        let root: Value = serde_json::from_str(TEXT).unwrap_or_default();
        let mut operations = Vec::new();
        for (path, methods) in members(&root["paths"]) {
            for (method, it) in members(methods) {
                let parameters = it["parameters"].as_array().into_iter().flatten();
                let query = parameters.filter(|it| it["in"] == "query");
                operations.push(Operation {
                    method: method.to_uppercase(),
                    path: path.clone(),
                    query: query
                        .filter_map(|it| it["name"].as_str().map(str::to_owned))
                        .collect(),
                    has_body: !it["requestBody"].is_null(),
                    responses: members(&it["responses"])
                        .map(|(name, it)| (name.clone(), it.clone()))
                        .collect(),
                });
            }
        }
        assert!(!operations.is_empty(), "the description has no operation");
        Self { root, operations }
    }

    /// Panics when the answer is not one that is described.
    pub(super) fn check(&self, request: &Request, answer: &Answer) {
        let what = format!("{request:?}: {answer:?}");
        assert!(
            answer.took <= request.wait() + MORE,
            "it took too long: {what}"
        );
        assert!(answer.body.len() <= LONGEST, "it is too long: {what}");
        let status = answer.status.to_string();
        let operation = request.operation.and_then(|it| self.operations.get(it));
        if answer.status != 200 {
            let is_described = operation.is_none_or(|it| {
                // An empty part of a path leads elsewhere.
                let leads_elsewhere = !request.is_plain && matches!(answer.status, 400 | 404);
                it.responses.contains_key(&status) || leads_elsewhere
            });
            assert!(is_described, "the status is not described: {what}");
            // An answer to HEAD has no body.
            if request.method != "HEAD" {
                self.check_refusal(answer, &what);
            }
            return;
        }
        let Some(operation) = operation.filter(|_| request.is_plain) else {
            return;
        };
        let content = &operation.responses.get("200").unwrap_or(&Value::Null)["content"];
        let found = members(content).find(|it| answer.content_type.starts_with(it.0.as_str()));
        let Some((content_type, media)) = found else {
            panic!("the type is not described: {what}");
        };
        match content_type.as_str() {
            "application/json" => {
                let value = serde_json::from_slice(&answer.body);
                let value = value.unwrap_or_else(|it| panic!("it is no JSON ({it}): {what}"));
                self.check_value(&media["schema"], &value, &what);
            }
            "text/event-stream" => check_events(answer, &what),
            _ => {}
        }
    }

    fn check_refusal(&self, answer: &Answer, what: &str) {
        assert_eq!(answer.content_type, "application/json", "{what}");
        let value: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let schema = &self.root["components"]["schemas"]["Refusal"];
        self.check_value(schema, &value, what);
        let kind = value["kind"].as_str().unwrap_or_default();
        let statuses = schema["x-statuses"][kind].as_array().into_iter().flatten();
        let mut statuses = statuses.filter_map(Value::as_u64);
        assert!(
            statuses.any(|it| it == u64::from(answer.status)),
            "the kind has another status: {what}"
        );
    }

    /// The part of JSON Schema that the description uses.
    fn check_value(&self, schema: &Value, value: &Value, what: &str) {
        assert!(
            self.fits(schema, value),
            "it does not fit to {schema}: {what}"
        );
    }

    fn fits(&self, schema: &Value, value: &Value) -> bool {
        if let Some(reference) = schema["$ref"].as_str() {
            let pointer = reference.trim_start_matches('#');
            return self
                .root
                .pointer(pointer)
                .is_some_and(|it| self.fits(it, value));
        }
        if let Some(all) = schema["oneOf"].as_array() {
            return all.iter().any(|it| self.fits(it, value));
        }
        let is_of = |name: &Value| match name.as_str() {
            Some("object") => value.is_object(),
            Some("array") => value.is_array(),
            Some("string") => value.is_string(),
            Some("integer") => value.is_i64() || value.is_u64(),
            Some("boolean") => value.is_boolean(),
            Some("null") => value.is_null(),
            Some(_) | None => false,
        };
        let is_of = match schema["type"].as_array() {
            Some(names) => names.iter().any(is_of),
            None => is_of(&schema["type"]),
        };
        let required = schema["required"].as_array().into_iter().flatten();
        let has_required = required
            .filter_map(Value::as_str)
            .all(|it| value.get(it).is_some());
        let is_named = schema["enum"]
            .as_array()
            .is_none_or(|it| it.contains(value));
        let mut parts = members(value);
        let mut items = value.as_array().into_iter().flatten();
        is_of
            && has_required
            && is_named
            && parts.all(|(name, it)| match schema["properties"].get(name) {
                Some(schema) => self.fits(schema, it),
                // Only where the names are not those of the description.
                None => {
                    let others = &schema["additionalProperties"];
                    match others.is_null() {
                        true => schema["properties"].is_null(),
                        false => self.fits(others, it),
                    }
                }
            })
            && items.all(|it| schema["items"].is_null() || self.fits(&schema["items"], it))
    }
}

/// Events are lines of a name and a value, or comments.
fn check_events(answer: &Answer, what: &str) {
    let text = core::str::from_utf8(&answer.body).unwrap_or_else(|it| panic!("{it}: {what}"));
    for line in text.lines() {
        let is_event = match line.split_once(':') {
            Some(("event", name)) => !name.trim().is_empty(),
            Some(("data", value)) => serde_json::from_str::<Value>(value).is_ok(),
            Some(("", _)) => true,
            Some(_) => false,
            None => line.is_empty(),
        };
        assert!(is_event, "it is no line of an event ({line:?}): {what}");
    }
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}
