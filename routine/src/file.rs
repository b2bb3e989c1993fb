//! Files with routines, devices and triggers, in JSON and in YAML. Feature `json`; YAML with
//! feature `yaml`.
//!
//! A file is one routine as the paper writes it (figure 10a), or a document with `devices`,
//! `groups`, `scenes`, `routines` and `triggers`. The book's chapter on routine files shows every
//! key. What is read is a [`Home`]: routines with devices by id, and a [`Catalogue`] that knows
//! their names. Both formats have the same keys.
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
//! # What is written out
//! A routine of a [`Home`] is a list of commands. Groups, scenes, blocks (`if`, `choose`),
//! repetitions and delays are written out as the commands that a hub does, when a file is read; so
//! they are when the home is written again. A block becomes a condition of each of its commands. A
//! delay becomes the hold of the command before it.
//!
//! # What is refused
//! Everything that is unknown, contradicts itself or does nothing, with its place and the mend:
//! [`FileError`]. Reading takes memory in proportion to the file, and to what is written out, which
//! has a limit: 65,535 commands in a routine, and 262,144 commands and parts of conditions in a
//! file. A file has 8 MiB at most, and a name or a word 255 bytes. It takes O(n log n) time; nothing in a file makes it panic. Lists and objects are nested 64
//! deep at most. YAML's anchors, aliases and tags are refused, so no text grows by being read.
//!
//! # What is odd
//! [`Home::lint`] names what can be read and is perhaps not meant: [`Lint`]. [`Home::mentions`] says
//! which states a file names, and where. A host needs this where a device knows only some states.

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
    /// Where, as in `routines[2].CommandList[1]`.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, in characters from 1.
    pub column: usize,
}

/// How a file is written.
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
    /// The format of a file with a name that ends so, without the point: `json`, and `yaml` or `yml`
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

/// What a file says.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Home {
    /// The devices: those that the file declares, in that order; if it declares none, those that
    /// it uses.
    pub catalogue: Catalogue,
    /// In which states devices are at first, where the file says so.
    pub initial: BTreeMap<NodeId, State>,
    /// For how long commands to devices may still act after their outcomes came back unknown, where
    /// the file says so: up to [`LONGEST_LATENESS`](crate::LONGEST_LATENESS). The host passes it to
    /// the protocol.
    pub lateness: BTreeMap<NodeId, Span>,
    /// Where the home is, for sunrise and sunset.
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
    /// What it does.
    pub routine: Routine<State>,
    /// What a new run does about unfinished ones.
    pub mode: Mode,
    /// How urgent it is.
    pub urgency: Urgency,
}

impl NamedRoutine {
    /// On which terms its runs are submitted. Those that run beside each other have no key.
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
    /// Which routine.
    pub name: String,
    /// When it is run.
    pub trigger: Trigger<State>,
    /// For how long it does not run it again; zero if it does not cool down.
    pub cool_down: Span,
}
