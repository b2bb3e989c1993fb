//! Files with routines, devices and triggers, in JSON. Feature `json`.
//!
//! A file is one routine as the paper writes it (figure 10a), or a document with `devices`,
//! `routines` and `triggers`. The book's chapter on routine files shows every key. What is read is
//! a [`Home`]: routines with devices by id, and a [`Catalogue`] that knows their names.
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
//!     [{"DevID":"Toaster", "Action":"ON", "hold_ms":-5}]}"#);
//! assert_eq!(
//!     wrong.unwrap_err().to_string(),
//!     "CommandList[0].hold_ms: -5 is below zero: give whole milliseconds from 0, at line 2 column 52",
//! );
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! # What is refused
//! Everything that is unknown, contradicts itself or does nothing, with its place and the mend:
//! [`FileError`]. Reading takes memory in proportion to the file and O(n log n) time; nothing in a
//! file makes it panic.

mod check;
mod error;
mod read;
mod shape;
mod write;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use selvedge_core::{NodeId, Span};

use crate::trigger::Trigger;
use crate::{Catalogue, Mode, Routine, State, Terms, Urgency};

pub use error::{Fault, FileError};
pub use write::write_routine;

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
