//! The settings of one node. Nodes may differ in them; what they have to agree in stands in the
//! [`Site`](crate::Site).

use selvedge_core::settings::OutOfRange;
use selvedge_groups as groups;
use selvedge_groups::store::StoreConfig;
use thiserror::Error;

use crate::devices;
use crate::routines::RoutineConfig;

/// The settings of one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Config {
    /// Of its part in groups.
    pub groups: groups::Config,
    /// Of the clusters that it leads.
    pub devices: devices::Config,
    /// Of the routines that it leads.
    pub routines: RoutineConfig,
    /// Of maps.
    pub maps: StoreConfig,
}

/// Settings that cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Of groups.
    #[error("groups: {0}")]
    Groups(OutOfRange),
    /// Of clusters.
    #[error("devices: {0}")]
    Devices(devices::ConfigError),
    /// Of routines.
    #[error("routines: {0}")]
    Routines(OutOfRange),
    /// Of maps.
    #[error("maps: {0}")]
    Maps(OutOfRange),
}

impl Config {
    /// The defaults.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            groups: groups::Config::new(),
            devices: devices::Config::new(),
            routines: RoutineConfig::new(),
            maps: StoreConfig::new(),
        }
    }

    selvedge_core::with_settings! {
        with_groups groups: groups::Config,
        with_devices devices: devices::Config,
        with_routines routines: RoutineConfig,
        with_maps maps: StoreConfig,
    }

    /// Whether these settings can work.
    ///
    /// # Errors
    /// The first that cannot.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.groups.check().map_err(ConfigError::Groups)?;
        self.devices.check().map_err(ConfigError::Devices)?;
        self.routines.check().map_err(ConfigError::Routines)?;
        self.maps.check().map_err(ConfigError::Maps)
    }
}
