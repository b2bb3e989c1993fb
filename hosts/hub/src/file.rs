//! The file of a home, with the hub's own section: how each device is reached.

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
    /// The driver of each device, by its name. Each device of the home has an entry.
    pub drivers: BTreeMap<String, DriverShape>,
    /// The broker, if the file names one.
    pub mqtt: Option<BrokerShape>,
}

/// The driver of a device, with its settings.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum DriverShape {
    /// A state in memory.
    Dummy(DummyShape),
    /// A plug of TP-Link's Kasa family.
    Kasa(KasaShape),
    /// A switch or a light of an ESPHome device.
    Esphome(EsphomeShape),
    /// A device that speaks MQTT, with the topics and payloads given here.
    Mqtt(MqttShape),
    /// A device that speaks MQTT as Tasmota does.
    Tasmota(TasmotaShape),
    /// A device that speaks MQTT as Zigbee2MQTT does.
    Zigbee2mqtt(ZigbeeShape),
}

impl DriverShape {
    /// The topics and payloads of a device that speaks MQTT; `None` for other devices.
    ///
    /// # Errors
    /// When they are invalid.
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
    /// The duration of a command in milliseconds; the default is 30.
    #[serde(default = "soon")]
    pub takes_ms: u32,
}

const fn soon() -> u32 {
    30
}

impl DummyShape {
    /// The duration of a command.
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
    /// The number of an outlet of a strip, from 0.
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
    let why = "the key is not 32 bytes in base 64: copy the 44 characters of the device's api.encryption.key";
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

/// An error in the file of a home.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HomeError {
    /// An error in the parts that all programs read, or in the format of the hub's section.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file of another format.
    #[error("not the file of a home: name a file that ends in .json, .yaml or .yml")]
    Format,
    /// A device without a driver.
    #[error(
        "hub.devices: device {0:?} has no entry: add how it is reached, as in \"kasa\": {{\"address\": \
         \"192.168.1.20:9999\"}}, or \"dummy\": {{}}"
    )]
    NoDriver(String),
    /// A driver for a device that is not in the file.
    #[error(
        "hub.devices: device {0:?} is not in this file: add it to devices, or correct the name"
    )]
    NoDevice(String),
    /// A routine that the hub would always reject.
    #[error(
        "routines[{number}]: {name:?} has {found} commands when expanded, the limit is {limit}: split it"
    )]
    Long {
        /// Its number, from 0.
        number: usize,
        /// Its name.
        name: String,
        /// The number of its commands.
        found: usize,
        /// The largest number of commands of a routine.
        limit: u16,
    },
    /// An error in the MQTT settings.
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
    /// When the name has another extension.
    pub fn format(path: &Path) -> Result<Format, HomeError> {
        let extension = path.extension().and_then(OsStr::to_str);
        let format = extension.and_then(Format::of_extension);
        format.ok_or(HomeError::Format)
    }

    /// The parts of a file that can be read, and are perhaps mistakes.
    ///
    /// # Errors
    /// When the file does not follow the format.
    pub fn odd(format: Format, bytes: &[u8]) -> Result<Vec<Lint>, HomeError> {
        Ok(Home::lint(format, bytes, Catalogue::new())?.1)
    }

    /// Reads the file of a home. Devices that the catalogue knows keep their ids.
    ///
    /// # Errors
    /// When the file does not follow the format; the error has the place, the text found and the remedy.
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
