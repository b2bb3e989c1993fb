//! Files with routines, devices and triggers, in JSON and in YAML. Feature `json`; YAML with
//! feature `yaml`.
//!
//! A file is one routine in the form of the paper (figure 10a), or a document with `devices`,
//! `groups`, `scenes`, `routines` and `triggers`. The book's chapter on routine files shows every
//! key. Reading gives a [`Home`]: routines with devices by id, and a [`Catalogue`] of their names.
//! Both formats have the same keys.
//!
//! ```
//! use selvedge_routine::file::Home;
//!
//! let home = Home::read(br#"
//!     {"RoutineName":"Prep. Breakfast", "CommandList":
//!     [{"DevID":"CoffeeMkr", "Action":"ON", "Priority":"MUST"},
//!     {"DevID":"Toaster", "Action":"ON", "Priority":"MUST"}
//!     ]}"#)?;
//! let toaster = home.catalogue.id("Toaster").ok_or("no toaster")?;
//! assert_eq!(home.routines[0].routine.steps[1].device, toaster);
//!
//! let wrong = Home::read(br#"{"RoutineName":"r", "CommandList":
//!     [{"DevID":"Toaster", "Action":"ON", "hold":5}]}"#);
//! assert_eq!(
//!     wrong.unwrap_err().to_string(),
//!     "CommandList[0].hold: there is no key \"hold\" here: did you mean \"hold_ms\"? else give one \
//!      of DevID, group, Action, Priority, hold_ms, preemptible, timeout_ms, undo, if, at line 2 column 41",
//! );
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! # Expansion
//! A routine of a [`Home`] is a list of commands. Groups, scenes, blocks (`if`, `choose`),
//! repetitions and delays are written out as the commands that a hub does, when a file is read; so
//! they are when the home is written again. A block becomes a condition of each of its commands. A
//! delay becomes the hold of the command before it.
//!
//! # Refusals
//! Everything that is unknown, contradicts itself or does nothing, with its place and the remedy:
//! [`FileError`]. Reading takes memory in proportion to the file, and to its expanded form, which
//! has a limit: 65,535 commands in a routine, and 262,144 commands and parts of conditions in a
//! file. A file has 8 MiB at most, and a name or a word 255 bytes. Reading takes O(n log n) time;
//! no file makes it panic. Lists and objects are nested 64 deep at most. YAML's anchors, aliases
//! and tags are refused, so no text grows by being read.
//!
//! # Lints
//! [`Home::lint`] reports entries that can be read and are perhaps mistakes: [`Lint`].
//! [`Home::mentions`] lists the states that a file names, with their places. A host needs this
//! where a device knows only some states.

mod clauses;
mod commands;
mod document;
mod error;
mod fields;
#[cfg(feature = "yaml")]
pub mod home_assistant;
mod json;
mod known;
mod lint;
mod near;
mod read;
#[cfg(feature = "serde")]
mod section;
mod tree;
mod write;
#[cfg(feature = "yaml")]
mod yaml;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use selvedge_core::{NodeId, Span};

use crate::trigger::Trigger;
use crate::{Catalogue, Location, Mode, Routine, State, Terms, Urgency};

pub use error::{Fault, FileError};
pub use lint::{Lint, Oddity};
use near::near;
#[cfg(feature = "serde")]
pub use section::section;
pub use write::write_routine;

/// A state of a device, where a file names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    /// The device.
    pub device: NodeId,
    /// The state.
    pub state: State,
    /// The place, as in `routines[2].CommandList[1]`.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, in characters from 1.
    pub column: usize,
}

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Format {
    /// JSON (RFC 8259).
    #[default]
    Json,
    /// YAML 1.2, without anchors, aliases and tags. Scalars are those of the core schema, decimal
    /// numbers alone: `on`, `yes` and `06:30` are words.
    #[cfg(feature = "yaml")]
    Yaml,
}

impl Format {
    /// The format of a file with this extension, without the point: `json`, and `yaml` or `yml`
    /// with feature `yaml`.
    #[must_use]
    pub fn of_extension(extension: &str) -> Option<Self> {
        match extension {
            "json" => Some(Self::Json),
            #[cfg(feature = "yaml")]
            "yaml" | "yml" => Some(Self::Yaml),
            _ => None,
        }
    }
}

/// The content of a file.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Home {
    /// The devices: the declared devices in the order of the file; if it declares none, the devices
    /// that it uses.
    pub catalogue: Catalogue,
    /// The initial states of devices, where the file gives them.
    pub initial: BTreeMap<NodeId, State>,
    /// The time for which commands to devices may still act after their outcomes came back unknown,
    /// where the file gives it: up to [`LONGEST_LATENESS`](crate::LONGEST_LATENESS). The host
    /// passes it to the protocol.
    pub lateness: BTreeMap<NodeId, Span>,
    /// The place of the home, for sunrise and sunset.
    pub location: Option<Location>,
    /// Groups of devices, by name: one device or more, each once.
    pub groups: BTreeMap<String, Vec<NodeId>>,
    /// States of several devices, by name: one device or more, each once.
    pub scenes: BTreeMap<String, Vec<(NodeId, State)>>,
    /// The routines, in the order of the file.
    pub routines: Vec<NamedRoutine>,
    /// The triggers, in the order of the file.
    pub triggers: Vec<NamedTrigger>,
}

/// A routine and its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NamedRoutine {
    /// The name.
    pub name: String,
    /// Its commands.
    pub routine: Routine<State>,
    /// The effect of a new run on unfinished ones.
    pub mode: Mode,
    /// Its urgency.
    pub urgency: Urgency,
}

impl NamedRoutine {
    /// The terms on which its runs are submitted. Runs in parallel have no key.
    #[must_use]
    pub fn terms(&self) -> Terms {
        let alone = Terms::urgent(self.urgency);
        if self.mode == Mode::Parallel {
            return alone;
        }
        Terms::of(self.name.as_str(), self.mode).with_urgency(self.urgency)
    }
}

/// A trigger and the name of its routine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NamedTrigger {
    /// The name of the routine.
    pub name: String,
    /// The event that runs it.
    pub trigger: Trigger<State>,
    /// The time for which it does not run the routine again; zero without a cool-down.
    pub cool_down: Span,
}
