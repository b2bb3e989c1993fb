//! What the application may ask, what it is told, timers, errors.

use selvedge_core::roster::OwnEnd;
use thiserror::Error;

use super::{ConfigError, Name};

/// What the application may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Use a section: from now on this node can enter it.
    Open {
        /// Which one.
        name: Name,
        /// How it works here, if not as [`Config::section`](super::Config::section) says. The
        /// settings that all sections share are ignored.
        config: Option<crate::Config>,
    },
    /// Stop using the section. This node goes on taking part for others. Refused while it waits or
    /// is inside.
    Close(Name),
    /// Get this node into the section. [`Entered`](crate::Event::Entered) or
    /// [`Refused`](crate::Event::Refused) follows.
    Enter(Name),
    /// Leave the section.
    Exit(Name),
    /// Do not wait for the section any longer.
    Cancel(Name),
    /// Give back the permissions that were kept for it, see [`Camera::kept`](crate::Camera::kept).
    /// Refused while this node waits or is inside.
    GiveBack(Name),
    /// A new bound for the number of nodes, in all sections and in those to come, see
    /// [`Config::upper`](crate::Config::upper).
    Bound(u32),
}

/// What the application is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// The section that this is about.
    pub section: Name,
    /// What happened.
    pub event: crate::Event,
}

/// Tags of the timers: each section has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timer {
    /// The section that the timer belongs to.
    pub section: Name,
    /// Which timer.
    pub timer: crate::Timer,
}

/// Counted since the beginning; nothing depends on them. Each section also has its own
/// [`Counters`](crate::Counters).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Counters {
    /// Messages of sections that are not open here that were not answered, because there was no
    /// room: their senders wait. See [`Config::passive_limit`](super::Config::passive_limit).
    pub passive_refused: u64,
    /// Sections in which nothing was open that were dropped to make room.
    pub dropped: u64,
    /// Members that found no room on the list that sections opened later are told.
    pub no_room: u64,
}

/// Why an input was refused. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Reject {
    /// Only an open section can be used.
    #[error("section unknown: {0:?} is not open on this node: give Open first")]
    Unknown(Name),
    /// The section is open already.
    #[error("the section {0:?} is open already: give Close first, to open it in another way")]
    AlreadyOpen(Name),
    /// The section is in use.
    #[error("the section {0:?} is in use: give Exit or Cancel first")]
    InUse(Name),
    /// Too many sections are open.
    #[error("{limit} sections are there already: close one, or raise open_limit or passive_limit")]
    Full {
        /// How many there may be.
        limit: u32,
    },
    /// The settings cannot work.
    #[error("the settings were refused: {0}")]
    Config(#[from] ConfigError),
    /// The membership service reports the end of this node's own life.
    #[error(transparent)]
    OwnEnd(#[from] OwnEnd),
    /// The section itself refused.
    #[error("in the section {section:?}, {reason}")]
    Section {
        /// Which one.
        section: Name,
        /// Why.
        reason: crate::Reject,
    },
}

impl Reject {
    /// Whether a peer sent what a correct peer never sends; the host counts it.
    #[must_use]
    pub const fn is_misbehaviour(&self) -> bool {
        matches!(
            self,
            Self::Section {
                reason: crate::Reject::Misbehaviour(_),
                ..
            }
        )
    }
}
