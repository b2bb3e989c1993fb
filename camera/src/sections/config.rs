//! The settings.

use selvedge_core::settings::{self, OutOfRange, Setting};
use thiserror::Error;

use super::Name;
use crate::message::{RIVAL_MAX_LEN, UP_MAX_LEN};

/// The settings of one node for all its sections. Checked once, by
/// [`Sections::new`](super::Sections::new).
///
/// A node has at most `open_limit` + `passive_limit` sections, and each remembers at most
/// [`peer_limit`](crate::Config::peer_limit) nodes, with some 80 bytes for each node that has a
/// request open. That bounds the memory for any input from peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Config {
    /// The settings of a section for which [`Command::Open`](super::Command::Open) gives none, and
    /// of the sections that only others have opened.
    ///
    /// Its `max_lives`, `refresh`, `frame_budget` and `peer_limit` hold for all sections: they
    /// describe the mesh. `frame_budget` is for the whole frame, the section's name included. If the
    /// name leaves fewer than 127 bytes, as in frames of 802.15.4, this node uses no slow path, and
    /// takes part in none: the longest numbers would leave no room for a list in its messages.
    pub section: crate::Config,
    /// The number of sections that may be open at a time: from 1. Default 64.
    pub open_limit: u32,
    /// The number of sections that are not open here in which this node takes part for others: at
    /// least one. If a request comes for one more, and none of them can be dropped, this node does not
    /// answer, and the node that asks waits: give at least the number of sections in the mesh.
    /// Default 256.
    pub passive_limit: u32,
}

impl Config {
    /// The defaults, for at most `max_lives` lives from the beginning of a request to its end.
    #[must_use]
    pub const fn new(max_lives: u32) -> Self {
        Self::with(crate::Config::new(max_lives))
    }

    /// Settings for frames of IEEE 802.15.4, and little memory: 4 open sections, and 12 that are open
    /// on other nodes only.
    #[must_use]
    pub const fn radio(max_lives: u32) -> Self {
        Self {
            open_limit: 4,
            passive_limit: 12,
            ..Self::with(crate::Config::radio(max_lives))
        }
    }

    /// The defaults, with these settings for each section.
    #[must_use]
    pub const fn with(section: crate::Config) -> Self {
        Self {
            section,
            open_limit: 64,
            passive_limit: 256,
        }
    }

    selvedge_core::with_settings! {
        with_section section: crate::Config,
        with_open_limit open_limit: u32,
        with_passive_limit passive_limit: u32,
    }

    /// Checks that these settings can work.
    ///
    /// # Errors
    /// The first field that is out of its range.
    pub const fn check(&self) -> Result<(), ConfigError> {
        if let Err(error) = self.section.check() {
            return Err(ConfigError::Section(error));
        }
        let settings = [
            Setting::number("open_limit", self.open_limit as u64, 1, u64::MAX),
            Setting::number("passive_limit", self.passive_limit as u64, 1, u64::MAX),
        ];
        if let Err(outside) = settings::check(&settings) {
            return Err(ConfigError::Range(outside));
        }
        Ok(())
    }

    /// Checks that a section of this name could be opened with `own` settings, or with none.
    ///
    /// # Errors
    /// The first field that is out of its range.
    pub const fn check_section(
        &self,
        name: Name,
        own: Option<crate::Config>,
    ) -> Result<(), ConfigError> {
        if let Some(own) = own
            && let Err(error) = own.check()
        {
            return Err(ConfigError::Section(error));
        }
        match self.of(name, own).check() {
            Ok(()) => Ok(()),
            Err(error) => Err(ConfigError::Section(error)),
        }
    }

    /// The settings of a section that was opened with `own` settings, or with none. The
    /// settings that describe the mesh are shared, and the name takes its part of each frame.
    pub(super) const fn of(&self, name: Name, own: Option<crate::Config>) -> crate::Config {
        let shared = self.section;
        let own = match own {
            Some(own) => own,
            None => shared,
        };
        // At most 17 bytes.
        let frame_budget = shared
            .frame_budget
            .saturating_sub(name.encoded_len() as u16);
        let mut config = crate::Config {
            max_lives: shared.max_lives,
            refresh: shared.refresh,
            frame_budget,
            peer_limit: shared.peer_limit,
            ..own
        };
        // A list that makes no progress would be asked for without end.
        config.slow_path = own.slow_path && config.list_room(UP_MAX_LEN).fits(RIVAL_MAX_LEN);
        config
    }
}

/// The setting that cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A setting of a section.
    #[error("section: {0}")]
    Section(#[from] crate::ConfigError),
    /// A number is outside its range.
    #[error(transparent)]
    Range(#[from] OutOfRange),
}
