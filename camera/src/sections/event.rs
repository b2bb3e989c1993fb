//! Commands of the application, events for it, timers, errors.

use selvedge_core::roster::OwnEnd;
use thiserror::Error;

use super::{ConfigError, Name};

/// A command of the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Use a section: from now on this node can enter it.
    Open {
        /// The section.
        name: Name,
        /// Settings of this section in place of [`Config::section`](super::Config::section). The
        /// settings that all sections share are ignored.
        config: Option<crate::Config>,
    },
    /// Stop using the section. This node goes on taking part for others. Refused while it waits or
    /// is inside.
    Close(Name),
    /// Enter the section. [`Entered`](crate::Event::Entered) or
    /// [`Refused`](crate::Event::Refused) follows.
    Enter(Name),
    /// Leave the section.
    Exit(Name),
    /// Stop waiting for the section.
    Cancel(Name),
    /// Give back the permissions that were kept for it, see [`Camera::kept`](crate::Camera::kept).
    /// Refused while this node waits or is inside.
    GiveBack(Name),
    /// Set a new bound for the number of lives, in all sections and in later ones, see
    /// [`Config::max_lives`](crate::Config::max_lives).
    SetMaxLives(u32),
}

/// A notification to the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// The section.
    pub section: Name,
    /// The event in it.
    pub event: crate::Event,
}

/// Tags of the timers: each section has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timer {
    /// The section that the timer belongs to.
    pub section: Name,
    /// The timer in that section.
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
    /// Sections that were dropped to make room, because nothing was open in them.
    pub dropped: u64,
    /// Members that found no room on the list with which later sections begin.
    pub no_room: u64,
}

/// The reason for refusing an input. Nothing changed.
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
    #[error(
        "this node has {limit} sections, the limit: close one or raise open_limit or passive_limit"
    )]
    Full {
        /// The number of sections that there may be.
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
        /// The section.
        section: Name,
        /// The reason.
        reason: crate::Reject,
    },
}

impl Reject {
    /// Returns true if a peer sent a message that a correct peer never sends; the host counts it.
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
