//! The settings of one node. Nodes may differ in them; settings that must be equal on all nodes are
//! in the [`Site`](crate::Site).

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
    /// Settings of the node's part in groups.
    pub groups: groups::Config,
    /// Settings of the clusters that it leads.
    pub devices: devices::Config,
    /// Settings of the routines that it leads.
    pub routines: RoutineConfig,
    /// Settings of maps.
    pub maps: StoreConfig,
}

/// Settings that cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A setting in `groups` cannot work.
    #[error("groups: {0}")]
    Groups(OutOfRange),
    /// A setting in `devices` cannot work.
    #[error("devices: {0}")]
    Devices(devices::ConfigError),
    /// A setting in `routines` cannot work.
    #[error("routines: {0}")]
    Routines(OutOfRange),
    /// A setting in `maps` cannot work.
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

    /// Checks that these settings can work.
    ///
    /// # Errors
    /// The first setting that cannot work.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.groups.check().map_err(ConfigError::Groups)?;
        self.devices.check().map_err(ConfigError::Devices)?;
        self.routines.check().map_err(ConfigError::Routines)?;
        self.maps.check().map_err(ConfigError::Maps)
    }
}
