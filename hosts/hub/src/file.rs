//! The file of a home, with the part of it that is the hub's own: how each device is reached.

mod mqtt;
mod states;

use core::fmt;
use core::net::SocketAddr;
use core::time::Duration;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use selvedge_routine::Catalogue;
use selvedge_routine::file::{FileError, Format, Home, Lint, section};
use selvedge_safehome::Config;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use thiserror::Error;

pub use self::mqtt::{BrokerShape, MqttError, MqttShape, Place, TasmotaShape, ZigbeeShape};
pub use self::states::StateError;
use crate::device::mqtt::Conventions;

/// A home, and how its devices are reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeFile {
    /// Devices, routines and triggers.
    pub home: Home,
    /// How each device is reached, by its name. Each device of the home has an entry.
    pub drivers: BTreeMap<String, DriverShape>,
    /// The broker, where one is named.
    pub mqtt: Option<BrokerShape>,
}

/// How a device is reached.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum DriverShape {
    /// It is a state in memory.
    Dummy(DummyShape),
    /// It is a plug of TP-Link's Kasa family.
    Kasa(KasaShape),
    /// It is a switch or a light of an ESPHome device.
    Esphome(EsphomeShape),
    /// It speaks MQTT, as it is said here.
    Mqtt(MqttShape),
    /// It speaks MQTT, as Tasmota does.
    Tasmota(TasmotaShape),
    /// It speaks MQTT, as Zigbee2MQTT does.
    Zigbee2mqtt(ZigbeeShape),
}

impl DriverShape {
    /// What it hears and says at which topics, if it speaks MQTT.
    ///
    /// # Errors
    /// When that makes no sense.
    pub fn conventions(&self, device: &str) -> Option<Result<Conventions, MqttError>> {
        match self {
            Self::Dummy(_) | Self::Kasa(_) | Self::Esphome(_) => None,
            Self::Mqtt(it) => Some(it.conventions(device)),
            Self::Tasmota(it) => Some(it.conventions(device)),
            Self::Zigbee2mqtt(it) => Some(it.conventions(device)),
        }
    }
}

/// A device in memory.
#[derive(Clone, Debug, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DummyShape {
    /// How many milliseconds a command takes; 30 if it does not say.
    #[serde(default = "soon")]
    pub takes_ms: u32,
}

const fn soon() -> u32 {
    30
}

impl DummyShape {
    /// How long a command takes.
    #[must_use]
    pub const fn takes(&self) -> Duration {
        Duration::from_millis(self.takes_ms as u64)
    }
}

/// A plug, or one outlet of a strip.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KasaShape {
    /// Its address and port, as in `192.168.1.20:9999`.
    pub address: SocketAddr,
    /// Which outlet of a strip, from 0.
    #[serde(default)]
    pub outlet: Option<u8>,
}

/// A switch or a light of an ESPHome device.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EsphomeShape {
    /// The device's address and port, as in `192.168.1.30:6053`.
    pub address: SocketAddr,
    /// The name of its switch or light.
    pub entity: String,
    /// Its `api.encryption.key`, if it has one.
    #[serde(default, deserialize_with = "key")]
    pub key: Option<[u8; 32]>,
}

impl fmt::Debug for EsphomeShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            address, entity, ..
        } = self;
        f.debug_struct("EsphomeShape")
            .field("address", address)
            .field("entity", entity)
            .finish_non_exhaustive()
    }
}

/// 32 bytes, in base 64.
fn key<'de, D: Deserializer<'de>>(from: D) -> Result<Option<[u8; 32]>, D::Error> {
    let text = String::deserialize(from)?;
    let bytes = BASE64.decode(text.trim()).ok();
    let key = bytes.and_then(|it| <[u8; 32]>::try_from(it).ok());
    let why = "it is no key: write the 44 letters and digits of the device's api.encryption.key";
    key.map(Some).ok_or_else(|| D::Error::custom(why))
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct HubShape {
    #[serde(default)]
    mqtt: Option<BrokerShape>,
    #[serde(default)]
    devices: BTreeMap<String, DriverShape>,
}

/// Why a home's file is not taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HomeError {
    /// What all programs read of it, or the part of the hub.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file of another kind.
    #[error("it is no home: name a file that ends in .json, .yaml or .yml")]
    Format,
    /// A device that is nowhere.
    #[error(
        "hub.devices: device {0:?} has no entry: say how it is reached, as in \"kasa\": {{\"address\": \
         \"192.168.1.20:9999\"}}, or \"dummy\": {{}}"
    )]
    NoDriver(String),
    /// A driver for nothing.
    #[error(
        "hub.devices: there is no device {0:?} in this file: add it to devices, or correct the name"
    )]
    NoDevice(String),
    /// A routine that the hub would refuse each time.
    #[error(
        "routines[{number}]: {name:?} has {found} commands as it is written out, and a hub takes {limit}: split it"
    )]
    Long {
        /// Which one, from 0.
        number: usize,
        /// Its name.
        name: String,
        /// How many commands it has.
        found: usize,
        /// How many it may have.
        limit: u16,
    },
    /// How it speaks MQTT.
    #[error(transparent)]
    Mqtt(#[from] MqttError),
    /// A state that a device is never in.
    #[error(transparent)]
    State(#[from] StateError),
}

impl HomeFile {
    /// The format of a file by its name.
    ///
    /// # Errors
    /// When it has another name than the formats.
    pub fn format(path: &Path) -> Result<Format, HomeError> {
        let extension = path.extension().and_then(OsStr::to_str);
        let format = extension.and_then(Format::of_extension);
        format.ok_or(HomeError::Format)
    }

    /// What in a file is odd: what can be read, and is perhaps not meant.
    ///
    /// # Errors
    /// When it is not as the format says.
    pub fn odd(format: Format, bytes: &[u8]) -> Result<Vec<Lint>, HomeError> {
        Ok(Home::lint(format, bytes, Catalogue::new())?.1)
    }

    /// Reads the file of a home. Devices that the catalogue knows keep their ids.
    ///
    /// # Errors
    /// When it is not as the format says, with the place, what was found and the mend.
    pub fn read(format: Format, bytes: &[u8], known: Catalogue) -> Result<Self, HomeError> {
        let (home, mentions) = Home::mentions(format, bytes, known)?;
        let own = Home::read_as(format, bytes, Catalogue::new())?.catalogue;
        let hub: Option<HubShape> = section(format, bytes, "hub")?;
        let HubShape {
            mqtt,
            devices: drivers,
        } = hub.unwrap_or_default();
        let mut names = own.iter().map(|(_, name)| name);
        if let Some(name) = names.find(|it| !drivers.contains_key(*it)) {
            return Err(HomeError::NoDriver(name.into()));
        }
        if let Some(name) = drivers.keys().find(|it| own.id(it).is_none()) {
            return Err(HomeError::NoDevice(name.clone()));
        }
        let file = Self {
            home,
            drivers,
            mqtt,
        };
        file.check_lengths()?;
        file.check_mqtt()?;
        for it in mentions {
            states::check(&file, it)?;
        }
        Ok(file)
    }

    fn check_lengths(&self) -> Result<(), HomeError> {
        let limit = Config::default().step_limit;
        for (number, it) in self.home.routines.iter().enumerate() {
            let found = it.routine.steps.len();
            if found > limit.into() {
                let name = it.name.clone();
                return Err(HomeError::Long {
                    number,
                    name,
                    found,
                    limit,
                });
            }
        }
        Ok(())
    }

    fn check_mqtt(&self) -> Result<(), MqttError> {
        if let Some(broker) = &self.mqtt {
            broker.check()?;
        }
        let mut devices = Vec::new();
        for (name, driver) in &self.drivers {
            let Some(conventions) = driver.conventions(name).transpose()? else {
                continue;
            };
            if self.mqtt.is_none() {
                return Err(MqttError::NoBroker(name.clone()));
            }
            devices.push((name.as_str(), conventions));
        }
        match &self.mqtt {
            Some(broker) => broker.check_echoes(&devices),
            None => Ok(()),
        }
    }
}
