//! The parts of a home's file that say how it speaks MQTT.

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
    /// A broker that is there, as in `192.168.1.2:1883`.
    #[serde(default)]
    broker: Option<String>,
    /// Where a broker inside of the hub listens, instead.
    #[serde(default)]
    listen: Option<SocketAddr>,
    /// The hub's name there. Its password is in the environment, as `SELVEDGE_HUB_MQTT_PASSWORD`.
    #[serde(default)]
    pub user: Option<String>,
    /// Who else may come to the broker inside: a file with `NAME:PASSWORD` in each line.
    #[serde(default)]
    pub users: Option<PathBuf>,
    /// The hub goes by TLS, and believes brokers with a certificate that one in this file vouches for (PEM).
    #[serde(default)]
    pub ca: Option<PathBuf>,
    /// The hub's certificate (PEM): what the broker inside shows, and what one that asks for it is shown.
    #[serde(default)]
    pub certificate: Option<PathBuf>,
    /// The key of that certificate (PEM).
    #[serde(default)]
    pub key: Option<PathBuf>,
    /// What the hub's own topics begin with.
    #[serde(default = "own")]
    pub topic: String,
    /// What the topics of Home Assistant's discovery begin with; nothing is announced where it is empty.
    #[serde(default = "discovery")]
    pub discovery: String,
}

fn own() -> String {
    "selvedge".into()
}

fn discovery() -> String {
    "homeassistant".into()
}

/// Where the home's broker is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// It is there.
    At(Address),
    /// It is inside of the hub, and listens here.
    Inside(SocketAddr),
}

/// What is wrong with how a home speaks MQTT.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MqttError {
    /// Neither a broker nor where to listen, or both.
    #[error(
        "hub.mqtt: say \"broker\": \"HOST:PORT\" for one that is there, or \"listen\": \"127.0.0.1:1883\" for one \
         inside of the hub, and not both"
    )]
    Place,
    /// The broker is nowhere.
    #[error("hub.mqtt.broker: {0}")]
    Address(#[from] AddressError),
    /// Users of a broker that is elsewhere.
    #[error("hub.mqtt.users: they are for a broker inside: say \"listen\", or leave them out")]
    Users,
    /// A certificate without its key, or the other way round.
    #[error("hub.mqtt: \"certificate\" and \"key\" belong together: say both, or neither")]
    Pair,
    /// The broker inside has a certificate and the hub believes nobody, or the other way round.
    #[error(
        "hub.mqtt: a broker inside goes by TLS when it has \"certificate\" and \"key\", and the hub comes to it in \
         the clear: leave \"ca\" out"
    )]
    Inside,
    /// All could come.
    #[error(
        "hub.mqtt.listen: {0} could be reached by all, and whoever is there may run routines: choose a loopback \
         address, as in 127.0.0.1:1883, or say \"user\""
    )]
    Open(SocketAddr),
    /// Others have names, and the hub has none.
    #[error("hub.mqtt.users: the hub has no name among them: say \"user\", too")]
    NoOwnName,
    /// A user without a name.
    #[error("hub.mqtt.user: it is empty: say a name, or leave it out")]
    NoName,
    /// What is no topic.
    #[error(
        "{at}: {topic:?} is no topic: it has 1 to {TOPIC_MAX} bytes, no + and no #, and does not begin with $ or /"
    )]
    Topic {
        /// Where.
        at: String,
        /// What was found.
        topic: String,
    },
    /// The hub's own topics, and Home Assistant's.
    #[error(
        "hub.mqtt: \"topic\" and \"discovery\" are both {0:?}, and the hub would take its own status for Home \
         Assistant's: choose another topic"
    )]
    Same(String),
    /// A device is heard where the hub says something.
    #[error(
        "hub.devices.{device}: the hub says something at {topic:?} ({whose}), and would hear that as if {device:?} \
         had said it: have devices say their states, and whether they are there, where the hub says nothing"
    )]
    Echo {
        /// Which device.
        device: String,
        /// Where.
        topic: String,
        /// What the hub says there, in words.
        whose: String,
    },
    /// Devices that speak MQTT, and no broker.
    #[error(
        "hub.devices.{0}: it speaks MQTT, and there is no broker: add \"mqtt\": {{\"broker\": \"HOST:PORT\"}} to \
         hub, or \"mqtt\": {{\"listen\": \"127.0.0.1:1883\"}}"
    )]
    NoBroker(String),
    /// What a device is told does not have its state in it.
    #[error(
        "hub.devices.{0}.mqtt: the payload has no {{}}, where the state goes: write \"{{}}\" for the state alone, or \
         say \"property\""
    )]
    NoState(String),
    /// A payload and a property.
    #[error("hub.devices.{0}.mqtt: \"payload\" and \"property\" say the same: leave one out")]
    Both(String),
    /// Two states for which a device has one word.
    #[error(
        "hub.devices.{device}.mqtt.words: two states are {word:?}: a device's word is one state"
    )]
    Words {
        /// Which device.
        device: String,
        /// The word.
        word: String,
    },
}

/// Whether it can be a topic that is published to.
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
    /// Where the broker is.
    ///
    /// # Errors
    /// When it does not say so.
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

    /// Whether a topic is one of those at which the hub itself says something.
    fn says(&self, topic: &str) -> bool {
        let rest = topic.strip_prefix(&self.topic);
        let Some(rest) = rest.and_then(|it| it.strip_prefix('/')) else {
            return false;
        };
        let mut levels = ["device/", "routine/", "run/"].iter();
        matches!(rest, "status" | "runs") || levels.any(|it| rest.starts_with(it))
    }

    /// A broker hands what the hub says back to it, where it hears. It would be taken for what a device says, and
    /// prove commands that nobody has carried out.
    pub(super) fn check_echoes(&self, devices: &[(&str, Conventions)]) -> Result<(), MqttError> {
        let told = devices
            .iter()
            .flat_map(|(name, it)| it.says().map(move |topic| (topic, *name)));
        let told: BTreeMap<&str, &str> = told.collect();
        for (name, it) in devices {
            for topic in it.hears() {
                let whose = match told.get(topic) {
                    Some(to) => format!("to {to:?}"),
                    None if self.says(topic) => "its own".into(),
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

/// A device that hears and says its state at topics.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MqttShape {
    /// Where it is told which state to be in.
    command_topic: String,
    /// What it is told, with `{}` for the state.
    #[serde(default)]
    payload: Option<String>,
    /// Where it says which state it is in.
    state_topic: String,
    /// Both are JSON objects, in which this property is the state.
    #[serde(default)]
    property: Option<String>,
    /// Where it is asked for its state, if it can be.
    #[serde(default)]
    ask_topic: Option<String>,
    /// What is said there.
    #[serde(default)]
    ask_payload: String,
    /// Where it says, or its broker for it, whether it is there.
    #[serde(default)]
    availability_topic: Option<String>,
    /// What is said there when it is.
    #[serde(default = "online")]
    payload_available: String,
    /// What is said there when it is gone.
    #[serde(default = "offline")]
    payload_not_available: String,
    /// Its words for states, where they are others.
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
    /// Its topic, as it is set there.
    topic: String,
    /// Which relay, from 1, of one that has several.
    #[serde(default)]
    relay: Option<u8>,
}

/// A device behind Zigbee2MQTT.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZigbeeShape {
    /// Its friendly name there.
    name: String,
    /// What the topics there begin with.
    #[serde(default = "zigbee")]
    base: String,
    /// Which of its properties is its state.
    #[serde(default = "state")]
    property: String,
}

fn zigbee() -> String {
    "zigbee2mqtt".into()
}

fn state() -> String {
    "state".into()
}

/// Those of relays, in Tasmota's and Zigbee2MQTT's words.
fn relay_words() -> BTreeMap<String, String> {
    [("on", "ON"), ("off", "OFF")]
        .map(|(state, word)| (state.into(), word.into()))
        .into()
}

impl MqttShape {
    /// What the device hears and says at which topics.
    ///
    /// # Errors
    /// When that makes no sense.
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
            gone: self.payload_not_available.clone(),
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
    /// What the device hears and says at which topics.
    ///
    /// # Errors
    /// When that makes no sense.
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
                // Without a state, a command is a question.
                question: Some(Question {
                    topic: command,
                    payload: Vec::new(),
                }),
                availability: Some(Availability {
                    topic: format!("tele/{topic}/LWT"),
                    there: "Online".into(),
                    gone: "Offline".into(),
                }),
                words: relay_words(),
            },
        )
    }
}

impl ZigbeeShape {
    /// What the device hears and says at which topics.
    ///
    /// # Errors
    /// When that makes no sense.
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
                    gone: "offline".into(),
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
