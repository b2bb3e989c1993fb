//! The settings of one node. Nodes may differ in them; settings that must be equal on all nodes are
//! in the [`Site`](crate::Site).

use selvedge_core::NodeId;
use selvedge_core::settings::OutOfRange;
use selvedge_groups as groups;
use selvedge_groups::Selection;
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
        routine: u32,
        /// The device.
        device: NodeId,
    },
    /// A routine of the site cannot work.
    #[error("routine {routine}: {error}")]
    Routine {
        /// The number of the routine, from 0.
        routine: u32,
        /// The reason.
        error: routines::ConfigError,
    },
    /// A device is removed that a routine needs.
    #[error("routine {routine} needs device {device:?}: change or remove the routine first")]
    Needed {
        /// The device.
        device: NodeId,
        /// The number of the first routine that needs it.
        routine: u32,
    },
    /// A change or a removal names a part that the site does not have.
    #[error("the site has no {kind} {id}: name one that it has")]
    Absent {
        /// The kind of the part: a node, a device or a routine.
        kind: &'static str,
        /// The id of the node or device, or the number of the routine.
        id: u64,
    },
    /// Two sites of one generation differ, and this part is the first that does.
    #[error(
        "{kind} {id} differs between two sites of one generation: give the changed site a higher generation"
    )]
    Differs {
        /// The kind of the part: a node, a device or a routine.
        kind: &'static str,
        /// The id of the node or device, or the number of the routine.
        id: u64,
    },
    /// The present site does not have this node.
    #[error("the present site does not have node {0}: add it by a change of the site, or stop it")]
    NoNode(NodeId),
    /// A site that is to follow numbers a routine as one that was removed before. Numbers are not used again.
    #[error("routine {routine} was removed, and numbers are not used again: number it {next}")]
    Removed {
        /// The number of the routine.
        routine: u32,
        /// The lowest number that no routine has had.
        next: u32,
    },
    /// A routine that is sent to its group has no room in a frame.
    #[error(
        "routine {routine} is {length} bytes long, and frames have room for {limit}: make it shorter, or found the site with a larger frame budget"
    )]
    TooLong {
        /// The number of the routine.
        routine: u32,
        /// The length of its encoding, in bytes.
        length: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// A setting differs that stays as it is while groups run.
    #[error(
        "{setting} is {found}, and {running} in the running site: set it to {running}, or found another site"
    )]
    Fixed {
        /// The name of the setting.
        setting: &'static str,
        /// Its value in the site that is to follow.
        found: u64,
        /// Its value in the running site.
        running: u64,
    },
    /// The rule that chooses members differs, which stays as it is while groups run.
    #[error(
        "the selection is {found:?}, and {running:?} in the running site: set it to that, or found another site"
    )]
    Selection {
        /// The rule of the site that is to follow.
        found: Selection,
        /// The rule of the running site.
        running: Selection,
    },
    /// No number is left.
    #[error("all {kind} up to {max} were used: found another site", max = u32::MAX)]
    Exhausted {
        /// The numbers: those of clusters, of routines or of generations.
        kind: &'static str,
    },
    /// The bytes are not a site.
    #[error("these {length} bytes are not the encoding of a site: take those of Site::encode")]
    Encoding {
        /// The number of bytes.
        length: usize,
    },
    /// The wake interval of a device is out of its range.
    #[error("device {device:?}: {error}")]
    WakeInterval {
        /// The device.
        device: NodeId,
        /// The range.
        error: OutOfRange,
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
