//! The MQTT settings in the file of a home.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use selvedge_mqtt::access::{Address, AddressError};
use serde::Deserialize;
use thiserror::Error;

use crate::device::mqtt::{Availability, Conventions, Payload, Question};

/// The longest topic, in bytes.
const TOPIC_MAX: usize = 512;

/// The home's broker.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BrokerShape {
    /// The address of a separate broker, as in `192.168.1.2:1883`.
    #[serde(default)]
    broker: Option<String>,
    /// The address at which a broker inside of the hub listens, instead.
    #[serde(default)]
    listen: Option<SocketAddr>,
    /// The hub's user name at the broker. Its password is in the environment, as
    /// `SELVEDGE_HUB_MQTT_PASSWORD`.
    #[serde(default)]
    pub user: Option<String>,
    /// The other users of the broker inside: a file with `NAME:PASSWORD` in each line.
    #[serde(default)]
    pub users: Option<PathBuf>,
    /// The certificate authorities that the hub trusts (PEM). If set, the hub connects to the broker by TLS.
    #[serde(default)]
    pub ca: Option<PathBuf>,
    /// The hub's certificate (PEM): of the broker inside, or for a separate broker that asks for one.
    #[serde(default)]
    pub certificate: Option<PathBuf>,
    /// The key of that certificate (PEM).
    #[serde(default)]
    pub key: Option<PathBuf>,
    /// The prefix of the hub's own topics.
    #[serde(default = "own")]
    pub topic: String,
    /// The prefix of the topics of Home Assistant's discovery; if it is empty, nothing is announced.
    #[serde(default = "discovery")]
    pub discovery: String,
}

fn own() -> String {
    "selvedge".into()
}

fn discovery() -> String {
    "homeassistant".into()
}

/// The place of the home's broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A separate broker at this address.
    At(Address),
    /// A broker inside of the hub, which listens at this address.
    Inside(SocketAddr),
}

/// An error in the MQTT settings of a home.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MqttError {
    /// Neither a separate broker nor a broker inside, or both.
    #[error(
        "hub.mqtt: set \"broker\": \"HOST:PORT\" for a separate broker, or \"listen\": \"127.0.0.1:1883\" for a \
         broker inside of the hub, and not both"
    )]
    Place,
    /// An address of the broker that cannot be read.
    #[error("hub.mqtt.broker: {0}")]
    Address(#[from] AddressError),
    /// Users of a separate broker.
    #[error("hub.mqtt.users: only a broker inside has users: set \"listen\", or remove \"users\"")]
    Users,
    /// A certificate without its key, or the other way round.
    #[error("hub.mqtt: \"certificate\" and \"key\" belong together: set both, or neither")]
    Pair,
    /// Certificate authorities for the broker inside, which the hub reaches without TLS.
    #[error(
        "hub.mqtt: a broker inside uses TLS if \"certificate\" and \"key\" are set, and the hub connects to it \
         without TLS: remove \"ca\""
    )]
    Inside,
    /// A broker inside that anyone on the network could use.
    #[error(
        "hub.mqtt.listen: anyone on the network can reach {0} and run routines: choose a loopback address, as in \
         127.0.0.1:1883, or set \"user\""
    )]
    Open(SocketAddr),
    /// Other users have names, and the hub has none.
    #[error("hub.mqtt.users: the hub has no name among them: set \"user\", too")]
    NoOwnName,
    /// A user without a name.
    #[error("hub.mqtt.user: it is empty: set a name, or remove it")]
    NoName,
    /// A text that cannot be a topic.
    #[error(
        "{at}: {topic:?} is no topic: a topic has 1 to {TOPIC_MAX} bytes, no + and no #, and does not begin with $ or /"
    )]
    Topic {
        /// The setting.
        at: String,
        /// The text found.
        topic: String,
    },
    /// The hub's own topics and Home Assistant's have the same prefix.
    #[error(
        "hub.mqtt: \"topic\" and \"discovery\" are both {0:?}, so the hub would take its own status for Home \
         Assistant's: choose another topic"
    )]
    Same(String),
    /// A device that reports at a topic to which the hub publishes.
    #[error(
        "hub.devices.{device}: the hub publishes at {topic:?} ({whose}), and would take that for a report of \
         {device:?}: let devices report their states and availability at topics where the hub publishes nothing"
    )]
    Echo {
        /// The device.
        device: String,
        /// The topic.
        topic: String,
        /// The hub's messages at the topic, in words.
        whose: String,
    },
    /// A device that speaks MQTT, without a broker.
    #[error(
        "hub.devices.{0}: it speaks MQTT, and no broker is set: add \"mqtt\": {{\"broker\": \"HOST:PORT\"}} to \
         hub, or \"mqtt\": {{\"listen\": \"127.0.0.1:1883\"}}"
    )]
    NoBroker(String),
    /// A payload without a place for the state.
    #[error(
        "hub.devices.{0}.mqtt: the payload has no {{}} for the state: write \"{{}}\" for the state alone, or set \
         \"property\""
    )]
    NoState(String),
    /// A payload and a property.
    #[error("hub.devices.{0}.mqtt: \"payload\" and \"property\" exclude each other: remove one")]
    Both(String),
    /// Two states with the same word.
    #[error(
        "hub.devices.{device}.mqtt.words: two states have the word {word:?}: give each a word of its own"
    )]
    Words {
        /// The device.
        device: String,
        /// The word.
        word: String,
    },
}

/// Checks that a text can be a topic to publish to.
fn check_topic(at: &str, topic: &str) -> Result<(), MqttError> {
    let is_fine = (1..=TOPIC_MAX).contains(&topic.len())
        && !topic.contains(['+', '#', '\0'])
        && !topic.starts_with(['$', '/']);
    match is_fine {
        true => Ok(()),
        false => Err(MqttError::Topic {
            at: at.into(),
            topic: topic.into(),
        }),
    }
}

impl BrokerShape {
    /// The place of the broker.
    ///
    /// # Errors
    /// When the settings name no broker or two, or an address that cannot be read.
    pub fn place(&self) -> Result<Place, MqttError> {
        match (&self.broker, self.listen) {
            (Some(broker), None) => Ok(Place::At(broker.parse()?)),
            (None, Some(listen)) => Ok(Place::Inside(listen)),
            _ => Err(MqttError::Place),
        }
    }

    pub(super) fn check(&self) -> Result<(), MqttError> {
        let is_inside = matches!(self.place()?, Place::Inside(_));
        if self.users.is_some() && !is_inside {
            return Err(MqttError::Users);
        }
        if self.certificate.is_some() != self.key.is_some() {
            return Err(MqttError::Pair);
        }
        if is_inside && self.ca.is_some() {
            return Err(MqttError::Inside);
        }
        if self.users.is_some() && self.user.is_none() {
            return Err(MqttError::NoOwnName);
        }
        let open = self.listen.filter(|it| !it.ip().is_loopback());
        if let Some(listen) = open.filter(|_| self.user.is_none()) {
            return Err(MqttError::Open(listen));
        }
        if self.user.as_deref() == Some("") {
            return Err(MqttError::NoName);
        }
        check_topic("hub.mqtt.topic", &self.topic)?;
        if self.topic == self.discovery {
            return Err(MqttError::Same(self.topic.clone()));
        }
        match self.discovery.as_str() {
            "" => Ok(()),
            topic => check_topic("hub.mqtt.discovery", topic),
        }
    }

    /// Returns true if the hub itself publishes at this topic.
    fn reports(&self, topic: &str) -> bool {
        let rest = topic.strip_prefix(&self.topic);
        let Some(rest) = rest.and_then(|it| it.strip_prefix('/')) else {
            return false;
        };
        let mut levels = ["device/", "routine/", "run/"].iter();
        matches!(rest, "status" | "runs") || levels.any(|it| rest.starts_with(it))
    }

    /// Checks that no device reports at a topic to which the hub publishes. A broker delivers the hub's
    /// messages back to it where it listens: they would be taken for reports, and prove commands that no
    /// device has carried out.
    pub(super) fn check_echoes(&self, devices: &[(&str, Conventions)]) -> Result<(), MqttError> {
        let notified = devices
            .iter()
            .flat_map(|(name, it)| it.reports().map(move |topic| (topic, *name)));
        let notified: BTreeMap<&str, &str> = notified.collect();
        for (name, it) in devices {
            for topic in it.receives() {
                let whose = match notified.get(topic) {
                    Some(to) => format!("to {to:?}"),
                    None if self.reports(topic) => "its own".into(),
                    None => continue,
                };
                return Err(MqttError::Echo {
                    device: (*name).into(),
                    topic: topic.into(),
                    whose,
                });
            }
        }
        Ok(())
    }
}

/// A device that takes commands and reports its state at topics.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MqttShape {
    /// The topic of commands.
    command_topic: String,
    /// The payload of a command, with `{}` for the state.
    #[serde(default)]
    payload: Option<String>,
    /// The topic of reports.
    state_topic: String,
    /// The property with the state, if commands and reports are JSON objects.
    #[serde(default)]
    property: Option<String>,
    /// The topic of questions for the state, if the device takes any.
    #[serde(default)]
    ask_topic: Option<String>,
    /// The payload of a question.
    #[serde(default)]
    ask_payload: String,
    /// The topic at which the device, or its broker for it, reports whether it is available.
    #[serde(default)]
    availability_topic: Option<String>,
    /// The payload when it is available.
    #[serde(default = "online")]
    payload_available: String,
    /// The payload when it is not.
    #[serde(default = "offline")]
    payload_not_available: String,
    /// Its words for states, where they differ.
    #[serde(default)]
    words: BTreeMap<String, String>,
}

fn online() -> String {
    "online".into()
}

fn offline() -> String {
    "offline".into()
}

/// A relay with Tasmota's firmware.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TasmotaShape {
    /// Its topic, as configured in Tasmota.
    topic: String,
    /// The number of the relay, from 1, if the device has several.
    #[serde(default)]
    relay: Option<u8>,
}

/// A device behind Zigbee2MQTT.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZigbeeShape {
    /// Its friendly name in Zigbee2MQTT.
    name: String,
    /// The prefix of Zigbee2MQTT's topics.
    #[serde(default = "zigbee")]
    base: String,
    /// The property with its state.
    #[serde(default = "state")]
    property: String,
}

fn zigbee() -> String {
    "zigbee2mqtt".into()
}

fn state() -> String {
    "state".into()
}

/// The words for the states of a relay in Tasmota and Zigbee2MQTT.
fn relay_words() -> BTreeMap<String, String> {
    [("on", "ON"), ("off", "OFF")]
        .map(|(state, word)| (state.into(), word.into()))
        .into()
}

impl MqttShape {
    /// The topics and payloads of the device.
    ///
    /// # Errors
    /// When they are invalid.
    pub fn conventions(&self, device: &str) -> Result<Conventions, MqttError> {
        let payload = match (&self.payload, &self.property) {
            (Some(_), Some(_)) => return Err(MqttError::Both(device.into())),
            (None, Some(property)) => Payload::Property(property.clone()),
            (Some(text), None) if !text.contains("{}") => {
                return Err(MqttError::NoState(device.into()));
            }
            (Some(text), None) => Payload::Text(text.clone()),
            (None, None) => Payload::Text("{}".into()),
        };
        let question = self.ask_topic.as_ref().map(|topic| Question {
            topic: topic.clone(),
            payload: self.ask_payload.clone().into_bytes(),
        });
        let availability = self.availability_topic.as_ref().map(|it| Availability {
            topic: it.clone(),
            there: self.payload_available.clone(),
            ended: self.payload_not_available.clone(),
        });
        checked(
            device,
            Conventions {
                command: self.command_topic.clone(),
                state: self.state_topic.clone(),
                payload,
                question,
                availability,
                words: self.words.clone(),
            },
        )
    }
}

impl TasmotaShape {
    /// The topics and payloads of the device.
    ///
    /// # Errors
    /// When they are invalid.
    pub fn conventions(&self, device: &str) -> Result<Conventions, MqttError> {
        let topic = &self.topic;
        let relay = self.relay.map(|it| it.to_string()).unwrap_or_default();
        let command = format!("cmnd/{topic}/POWER{relay}");
        checked(
            device,
            Conventions {
                command: command.clone(),
                state: format!("stat/{topic}/POWER{relay}"),
                payload: Payload::Text("{}".into()),
                // A command without a state is a question.
                question: Some(Question {
                    topic: command,
                    payload: Vec::new(),
                }),
                availability: Some(Availability {
                    topic: format!("tele/{topic}/LWT"),
                    there: "Online".into(),
                    ended: "Offline".into(),
                }),
                words: relay_words(),
            },
        )
    }
}

impl ZigbeeShape {
    /// The topics and payloads of the device.
    ///
    /// # Errors
    /// When they are invalid.
    pub fn conventions(&self, device: &str) -> Result<Conventions, MqttError> {
        let (own, property) = (format!("{}/{}", self.base, self.name), &self.property);
        let question = serde_json::json!({ property: "" });
        checked(
            device,
            Conventions {
                command: format!("{own}/set"),
                state: own.clone(),
                payload: Payload::Property(property.clone()),
                question: Some(Question {
                    topic: format!("{own}/get"),
                    payload: question.to_string().into_bytes(),
                }),
                availability: Some(Availability {
                    topic: format!("{own}/availability"),
                    there: "online".into(),
                    ended: "offline".into(),
                }),
                words: relay_words(),
            },
        )
    }
}

fn checked(device: &str, it: Conventions) -> Result<Conventions, MqttError> {
    let question = it.question.as_ref().map(|it| &it.topic);
    let availability = it.availability.as_ref().map(|it| &it.topic);
    let optional = question.into_iter().chain(availability);
    for topic in [&it.command, &it.state].into_iter().chain(optional) {
        check_topic(&format!("hub.devices.{device}"), topic)?;
    }
    let mut seen = Vec::new();
    for word in it.words.values() {
        if seen.contains(&word) {
            return Err(MqttError::Words {
                device: device.into(),
                word: word.clone(),
            });
        }
        seen.push(word);
    }
    Ok(it)
}
