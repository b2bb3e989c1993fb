//! The topics and payloads by which a device takes commands and reports its state.

use std::collections::BTreeMap;

use selvedge_routine::{Number, State};
use serde_json::Value;

/// The topics and payloads by which a device takes commands and reports its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conventions {
    /// The topic at which it takes commands.
    pub command: String,
    /// The topic at which it reports its state.
    pub state: String,
    /// The encoding of states at both topics.
    pub payload: Payload,
    /// The request for its state.
    pub question: Option<Question>,
    /// The topic and payloads by which it reports whether it is available.
    pub availability: Option<Availability>,
    /// States, and the device's words for them; other states are sent as they are.
    pub words: BTreeMap<String, String>,
}

/// The encoding of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// A command is this text, with the state in place of `{}`; a report is the state alone.
    Text(String),
    /// Both are JSON objects with the state as the value of this property. `true`, `false` and numbers are
    /// JSON's own, not strings.
    Property(String),
}

/// A request for a device's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Its topic.
    pub topic: String,
    /// Its payload.
    pub payload: Vec<u8>,
}

/// The topic and payloads that report whether a device is available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Availability {
    /// The topic.
    pub topic: String,
    /// The payload when it is available: the whole text, or the value of `state` in a JSON object.
    pub there: String,
    /// The payload when it is not available, in the same form.
    pub ended: String,
}

impl Conventions {
    /// The topics at which the hub publishes to the device.
    pub fn reports(&self) -> impl Iterator<Item = &str> {
        let question = self.question.as_ref().map(|it| it.topic.as_str());
        core::iter::once(self.command.as_str()).chain(question)
    }

    /// The topics at which the device publishes.
    pub fn receives(&self) -> impl Iterator<Item = &str> {
        let availability = self.availability.as_ref().map(|it| it.topic.as_str());
        core::iter::once(self.state.as_str()).chain(availability)
    }

    /// The payload of a command to be in a state.
    #[must_use]
    pub fn command_for(&self, state: &State) -> Vec<u8> {
        let word = self.word_for(state);
        match (&self.payload, state) {
            (Payload::Text(text), _) => text.replace("{}", &word).into_bytes(),
            (Payload::Property(property), State::Word(_)) => {
                // As they are read: a device may take a string for neither value, or for the wrong one.
                let value = match word.as_str() {
                    "true" => Value::Bool(true),
                    "false" => Value::Bool(false),
                    _ => Value::String(word),
                };
                serde_json::json!({ property: value })
                    .to_string()
                    .into_bytes()
            }
            (Payload::Property(property), State::Number(_)) => {
                // The digits of the number: they are exact, and a float is not.
                format!("{{{}:{word}}}", Value::from(property.as_str())).into_bytes()
            }
        }
    }

    fn word_for(&self, state: &State) -> String {
        match state {
            State::Word(word) => self.words.get(word).unwrap_or(word).clone(),
            State::Number(number) => number.to_string(),
        }
    }

    /// The state that is read from a device's report of this state, in its own words. If it is another state
    /// or `None`, a command to be in this state is never proven.
    #[must_use]
    pub fn read_back(&self, state: &State) -> Option<State> {
        match self.payload {
            Payload::Text(_) => self.state_in(self.word_for(state).as_bytes()),
            Payload::Property(_) => self.state_in(&self.command_for(state)),
        }
    }

    /// The state in a device's report; `None` if the report has none.
    #[must_use]
    pub fn state_in(&self, payload: &[u8]) -> Option<State> {
        let word = match &self.payload {
            Payload::Text(_) => core::str::from_utf8(payload).ok()?.trim().to_owned(),
            Payload::Property(property) => {
                let value: Value = serde_json::from_slice(payload).ok()?;
                match value.get(property)? {
                    Value::String(text) => text.clone(),
                    it @ (Value::Number(_) | Value::Bool(_)) => it.to_string(),
                    Value::Null | Value::Array(_) | Value::Object(_) => return None,
                }
            }
        };
        self.state_of(&word)
    }

    fn state_of(&self, word: &str) -> Option<State> {
        if word.is_empty() || word.len() > STATE_MAX {
            return None;
        }
        let mut words = self.words.iter();
        if let Some((state, _)) = words.find(|it| it.1 == word) {
            return Some(State::from(state.as_str()));
        }
        Some(number(word).map_or_else(|| State::from(word), State::Number))
    }

    /// The device's availability, if the payload reports it.
    pub(super) fn is_there(&self, payload: &[u8]) -> Option<bool> {
        let availability = self.availability.as_ref()?;
        let text = core::str::from_utf8(payload).ok()?.trim();
        let json: Option<Value> = serde_json::from_str(text).ok();
        let inside = json.as_ref().and_then(|it| it.get("state")?.as_str());
        let text = inside.unwrap_or(text);
        match text {
            it if it == availability.there => Some(true),
            it if it == availability.ended => Some(false),
            _ => None,
        }
    }
}

/// The longest state that a device may report, in bytes.
const STATE_MAX: usize = 256;

/// A number, to the thousandth.
fn number(text: &str) -> Option<Number> {
    let found: f64 = text.parse().ok()?;
    // "nan" and "inf" are words.
    let is_number = text.bytes().any(|it| it.is_ascii_digit()) && found.is_finite();
    Number::from_thousandths((found * 1_000.0).round() as i64).filter(|_| is_number)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn relay(payload: Payload) -> Conventions {
        Conventions {
            command: "set".into(),
            state: "state".into(),
            payload,
            question: None,
            availability: Some(Availability {
                topic: "there".into(),
                there: "online".into(),
                ended: "offline".into(),
            }),
            words: [("on", "ON"), ("off", "OFF")]
                .map(|(state, word)| (state.into(), word.into()))
                .into(),
        }
    }

    #[test]
    fn a_state_is_said_in_the_words_of_its_device() {
        let text = relay(Payload::Text("power {}".into()));
        assert_eq!(text.command_for(&"on".into()), b"power ON");
        assert_eq!(text.command_for(&"dim".into()), b"power dim");
        assert_eq!(text.command_for(&(-7).into()), b"power -7");
        let json = relay(Payload::Property("le\"vel".into()));
        assert_eq!(json.command_for(&"off".into()), br#"{"le\"vel":"OFF"}"#);
        let part = Number::from_thousandths(20_500).unwrap();
        let number = json.command_for(&State::Number(part));
        assert_eq!(number, br#"{"le\"vel":20.5}"#);
        assert_eq!(json.command_for(&"true".into()), br#"{"le\"vel":true}"#);
        assert_eq!(json.command_for(&"True".into()), br#"{"le\"vel":"True"}"#);
        assert_eq!(text.command_for(&"true".into()), b"power true");
        let lock = Conventions {
            words: [
                ("shut".into(), "true".into()),
                ("open".into(), "false".into()),
            ]
            .into(),
            ..json
        };
        assert_eq!(lock.command_for(&"shut".into()), br#"{"le\"vel":true}"#);
        assert_eq!(lock.command_for(&"open".into()), br#"{"le\"vel":false}"#);
        assert_eq!(lock.state_in(br#"{"le\"vel":false}"#), Some("open".into()));
    }

    #[test]
    fn what_a_device_says_is_a_state_or_nothing() {
        let text = relay(Payload::Text("{}".into()));
        let part = |it| Number::from_thousandths(it).map(State::Number);
        for (reported, state) in [
            ("ON", Some("on".into())),
            (" OFF\n", Some("off".into())),
            ("on", Some("on".into())),
            ("20", Some(20.into())),
            ("-0.0004", part(0)),
            ("21.4375", part(21_438)),
            ("1e3", Some(1_000.into())),
            ("1e99", Some("1e99".into())),
            ("nan", Some("nan".into())),
            ("inf", Some("inf".into())),
            ("", None),
        ] {
            assert_eq!(text.state_in(reported.as_bytes()), state, "{reported}");
        }
        assert_eq!(text.state_in(&[0xff]), None);
        let longest = "x".repeat(STATE_MAX);
        assert!(text.state_in(longest.as_bytes()).is_some());
        assert_eq!(text.state_in(format!("{longest}x").as_bytes()), None);
        let json = relay(Payload::Property("state".into()));
        for (reported, state) in [
            (r#"{"state":"ON","linkquality":3}"#, Some("on".into())),
            (r#"{"state":21.5}"#, part(21_500)),
            (r#"{"state":true}"#, Some("true".into())),
            (r#"{"state":null}"#, None),
            (r#"{"state":{"a":1}}"#, None),
            (r#"{"other":1}"#, None),
            ("ON", None),
        ] {
            assert_eq!(json.state_in(reported.as_bytes()), state, "{reported}");
        }
    }

    #[test]
    fn it_is_there_or_gone_as_it_is_said() {
        let it = relay(Payload::Text("{}".into()));
        for (reported, is_there) in [
            ("online", Some(true)),
            ("offline", Some(false)),
            (r#"{"state":"online"}"#, Some(true)),
            (r#"{"state":"offline"}"#, Some(false)),
            (r#"{"state":1}"#, None),
            ("ONLINE", None),
            ("", None),
        ] {
            assert_eq!(it.is_there(reported.as_bytes()), is_there, "{reported}");
        }
    }

    #[test]
    fn a_state_is_read_back_unless_it_is_said_as_another_one_or_none() {
        for payload in [
            Payload::Text("power {}".into()),
            Payload::Property("state".into()),
        ] {
            let it = relay(payload);
            for state in ["on", "off", "dim", "1e99", "true", "false"] {
                assert_eq!(it.read_back(&state.into()), Some(state.into()));
            }
            assert_eq!(it.read_back(&(-7).into()), Some((-7).into()));
            assert_eq!(it.read_back(&"ON".into()), Some("on".into()));
            assert_eq!(it.read_back(&"3".into()), Some(3.into()));
            assert_eq!(it.read_back(&"".into()), None);
        }
        let padded = relay(Payload::Text("{}".into())).read_back(&" dim".into());
        assert_eq!(padded, Some("dim".into()));
    }
}
