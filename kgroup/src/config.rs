//! The settings of one node. Nodes may differ in them; settings that must be equal on all nodes are
//! in the [`Site`](crate::Site).

use selvedge_core::NodeId;
use selvedge_core::settings::OutOfRange;
use selvedge_groups as groups;
use selvedge_groups::store::StoreConfig;
use thiserror::Error;

use crate::routines::RoutineConfig;
use crate::{devices, routines};

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

/// The setting, or the part of a site, that cannot work.
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
    /// The site names a device twice.
    #[error("device {0:?} is named twice: give each device an id of its own")]
    Twice(NodeId),
    /// The site's nodes cannot work.
    #[error(transparent)]
    Plan(#[from] groups::ConfigError),
    /// A routine needs a device that the site does not have.
    #[error(
        "routine {routine} needs device {device:?}, which is not of this site: add the device, with its place"
    )]
    NoDevice {
        /// The number of the routine, from 0.
        routine: usize,
        /// The device.
        device: NodeId,
    },
    /// A routine of the site cannot work.
    #[error("routine {routine}: {error}")]
    Routine {
        /// The number of the routine, from 0.
        routine: usize,
        /// The reason.
        error: routines::ConfigError,
    },
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
