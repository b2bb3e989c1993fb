//! Scripts and automations of Home Assistant, as far as routines can express them. Feature `yaml`.
//!
//! ```
//! use selvedge_routine::file::home_assistant;
//! use selvedge_routine::{Catalogue, Mode};
//!
//! let home = home_assistant::read(br#"
//! good_night:
//!   alias: Good night
//!   mode: restart
//!   sequence:
//!     - action: cover.close_cover
//!       target:
//!         entity_id: cover.bedroom
//!     - delay: "00:00:30"
//!     - action: light.turn_off
//!       target:
//!         entity_id: [light.bedroom, light.hall]
//!       continue_on_error: true
//! "#, Catalogue::new()).map_err(|missed| missed[0].to_string())?;
//! assert_eq!(home.routines[0].routine.steps.len(), 3);
//! assert_eq!(home.routines[0].mode, Mode::Restart);
//!
//! let missed = home_assistant::read(b"
//! flash:
//!   sequence:
//!     - action: light.turn_on
//!       entity_id: light.hall
//!       data: {flash: short}
//!     - wait_template: '{{ true }}'
//! ", Catalogue::new()).unwrap_err();
//! assert_eq!(missed.len(), 2);
//! assert_eq!(
//!     missed[1].to_string(),
//!     "flash.sequence[1].wait_template: the step \"wait_template\" is not understood: remove it, \
//!      or write the routine by hand, at line 7 column 7",
//! );
//! # Ok::<(), String>(())
//! ```
//!
//! # Supported constructs
//! - A file of scripts by name, as below `script:` or as a file of its own; one script with
//!   `sequence`; automations as a list, below `automation:` or one.
//! - Of a script `alias`, `sequence`, `mode` and `max`; of an automation `alias`, `id`, `triggers`,
//!   `conditions`, `actions`, `mode` and `max`, with their older names in the singular.
//!   `description`, `icon`, `max_exceeded` (logging) and the `alias` of a step do not affect the
//!   commands, and are ignored.
//! - Steps: an `action` (`service`) that brings entities into a state; `delay`; `if`, `then` and
//!   `else`; `choose` and `default`; `repeat` with `count`; `sequence`; a condition, behind which
//!   the list goes on only if it holds. `continue_on_error` is a command that may fail.
//! - Conditions: `state`, `numeric_state`, `and`, `or`, `not`; for times and the sun, `time` with
//!   nothing but `weekday`.
//! - Triggers: `state` with `to`, `numeric_state`, `time`, `sun`.
//!
//! Constructs that are not understood are reported with their places, all of them at once: nothing
//! is dropped silently.
//!
//! # Differences
//! - A device is an entity, by its id, and has one state. A state that is a number is one: Home
//!   Assistant writes `"21"`, here it is 21.
//! - A condition is evaluated when the turn of a command comes, in the order of routines.
//! - A script stops where a step fails; a routine is undone.
//! - With `mode: restart` the run before is undone, and not left where it was. Without a mode it is
//!   `single`, and `queued` runs are up to 10 (`max`), as there. Runs in `parallel` have no limit
//!   here, so a `max` for them is reported as not understood, and without one there are more than
//!   10.
//! - A file has no location: where automations name sunrise or sunset, the host adds it
//!   ([`Home::location`]).

mod actions;
mod conditions;
mod triggers;

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZeroU16;

use super::fields::{self, has};
use super::known::Known;
use super::tree::{Data, Entry, Mark, Node, Place};
use super::{Fault, FileError, Format, Home, NamedRoutine, near, read};
use crate::{Catalogue, Mode, Routine, Urgency};

/// Reads scripts or automations, for a home with known devices: they keep their ids.
///
/// # Errors
/// All constructs that are not understood, in the order of the file; or the reason why it is no
/// YAML.
pub fn read(bytes: &[u8], catalogue: Catalogue) -> Result<Home, Vec<FileError>> {
    let node = read::tree(Format::Yaml, bytes).map_err(|it| Vec::from([it]))?;
    let mut reader = Reader {
        known: Known::new(catalogue, false),
        missed: Vec::new(),
        home: Home::default(),
        names: BTreeSet::new(),
    };
    let done = reader.top(&node, &Place::Top);
    reader.missed.extend(done.err());
    let home = &mut reader.home;
    home.catalogue = core::mem::take(&mut reader.known.catalogue);
    if reader.missed.is_empty() && home.routines.is_empty() {
        let fault = Fault::EmptyList;
        reader.missed.push(Place::Top.fault(node.mark, fault));
    }
    if reader.missed.is_empty() {
        Ok(reader.home)
    } else {
        Err(reader.missed)
    }
}

/// The largest number of errors that are reported: a file of another kind has a fault in each line.
const MOST_MISSED: usize = 100;

struct Reader {
    known: Known,
    missed: Vec<FileError>,
    home: Home,
    names: BTreeSet<String>,
}

const LATER: &str = "remove it, or write the routine by hand";

/// The error of a construct that is not understood.
fn missing(what: String, mark: Mark, place: &Place<'_>) -> FileError {
    let mend = LATER;
    place.fault(mark, Fault::NotUnderstood { what, mend })
}

fn key(entry: &Entry, place: &Place<'_>) -> FileError {
    let what = alloc::format!("the key {:?}", super::tree::short(&entry.key));
    missing(what, entry.mark, &place.key(&entry.key))
}

fn entries<'a>(node: &'a Node, place: &Place<'_>) -> Result<&'a [Entry], FileError> {
    fields::named(node, place, "an object")
}

/// The value of the first of these keys that is there.
fn one<'a>(entries: &'a [Entry], keys: &[&str]) -> Option<&'a Entry> {
    entries.iter().find(|it| keys.contains(&it.key.as_str()))
}

/// One value, or a list of values.
fn many(node: &Node) -> &[Node] {
    match &node.data {
        Data::List(nodes) => nodes,
        Data::Null | Data::Bool(_) | Data::Number(_) | Data::Word(_) | Data::Map(_) => {
            core::slice::from_ref(node)
        }
    }
}

impl Reader {
    /// Reports the error, so that the rest is read.
    fn warned<T>(&mut self, read: Result<T, FileError>) -> Option<T> {
        match read {
            Ok(read) => Some(read),
            Err(missed) => {
                if self.missed.len() < MOST_MISSED {
                    self.missed.push(missed);
                }
                None
            }
        }
    }

    fn top(&mut self, node: &Node, place: &Place<'_>) -> Result<(), FileError> {
        if let Data::List(nodes) = &node.data {
            for (nth, node) in nodes.iter().enumerate() {
                let read = self.automation(node, &place.nth(nth));
                self.warned(read);
            }
            return Ok(());
        }
        if has(node, "sequence") {
            return self.script(None, node, place);
        }
        if ["actions", "triggers", "action", "trigger"]
            .iter()
            .any(|it| has(node, it))
        {
            return self.automation(node, place);
        }
        for entry in entries(node, place)? {
            let place = place.key(&entry.key);
            let read = match entry.key.as_str() {
                "script" => self.scripts(&entry.value, &place),
                "automation" => self.top(&entry.value, &place),
                name => self.script(Some(name), &entry.value, &place),
            };
            self.warned(read);
        }
        Ok(())
    }

    fn scripts(&mut self, node: &Node, place: &Place<'_>) -> Result<(), FileError> {
        for entry in entries(node, place)? {
            let read = self.script(Some(&entry.key), &entry.value, &place.key(&entry.key));
            self.warned(read);
        }
        Ok(())
    }

    fn script(
        &mut self,
        name: Option<&str>,
        node: &Node,
        place: &Place<'_>,
    ) -> Result<(), FileError> {
        let given = entries(node, place)?;
        let known = [
            "alias",
            "description",
            "icon",
            "sequence",
            "mode",
            "max",
            "max_exceeded",
        ];
        self.only(given, &known, place);
        let sequence = one(given, &["sequence"]);
        let fault = || place.fault(node.mark, Fault::NoKey("sequence"));
        let sequence = sequence.ok_or_else(fault)?;
        let steps = self.actions(&sequence.value, &place.key("sequence"))?;
        self.add(name, given, steps, node, place).map(drop)
    }

    /// The value of the first of these equivalent keys that is present. The others are reported.
    fn either<'a>(
        &mut self,
        given: &'a [Entry],
        keys: &[&str],
        place: &Place<'_>,
    ) -> Option<&'a Entry> {
        let mut found = given.iter().filter(|it| keys.contains(&it.key.as_str()));
        let first = found.next();
        for entry in found {
            self.warned::<()>(Err(key(entry, place)));
        }
        first
    }

    /// Reports all keys except these.
    fn only(&mut self, given: &[Entry], known: &[&str], place: &Place<'_>) {
        for entry in given.iter().filter(|it| !known.contains(&it.key.as_str())) {
            self.warned::<()>(Err(key(entry, place)));
        }
    }

    /// A routine by its alias, or else its id or the name of the script.
    fn add(
        &mut self,
        name: Option<&str>,
        given: &[Entry],
        steps: Vec<crate::Step<crate::State>>,
        node: &Node,
        place: &Place<'_>,
    ) -> Result<String, FileError> {
        let named =
            one(given, &["alias"]).or_else(|| one(given, &["id"]).filter(|_| name.is_none()));
        let name = match (named, name) {
            (Some(it), _) => fields::name(&it.value, &place.key(&it.key))?,
            (None, Some(name)) => name,
            (None, None) => return Err(place.fault(node.mark, Fault::NoKey("alias"))),
        };
        if !self.names.insert(name.into()) {
            return Err(place.fault(node.mark, Fault::SameRoutine(name.into())));
        }
        let mode = mode(given, place)?;
        if steps.is_empty() {
            return Err(place.fault(node.mark, Fault::EmptyList));
        }
        self.home.routines.push(NamedRoutine {
            name: name.into(),
            routine: Routine { steps },
            mode,
            urgency: Urgency::default(),
        });
        Ok(name.into())
    }
}

/// The number of runs that may be unfinished where a script gives none.
const QUEUED: NonZeroU16 = NonZeroU16::MIN.saturating_add(9);

fn mode(given: &[Entry], place: &Place<'_>) -> Result<Mode, FileError> {
    const WANTED: &str = "single, restart, queued or parallel";
    let max = one(given, &["max"]);
    let word = match one(given, &["mode"]) {
        Some(it) => fields::word(&it.value, &place.key("mode"), WANTED)?,
        None => "single",
    };
    let mode = match word {
        "single" => Mode::Single,
        "restart" => Mode::Restart,
        "parallel" => Mode::Parallel,
        "queued" => {
            let limit = max.map(|it| {
                let place = place.key("max");
                let found = fields::whole(&it.value, &place, "a whole number from 1 to 65535")?;
                let limit = u16::try_from(found).ok().and_then(NonZeroU16::new);
                limit.ok_or_else(|| place.fault(it.mark, Fault::Limit(it.value.shown())))
            });
            let limit = limit.transpose()?.unwrap_or(QUEUED);
            return Ok(Mode::Queued { limit });
        }
        other => {
            let near = near(other, ["single", "restart", "queued", "parallel"]);
            let found = super::tree::short(other);
            let mark = one(given, &["mode"]).map_or_else(Mark::default, |it| it.value.mark);
            return Err(place.key("mode").fault(mark, Fault::NoMode { found, near }));
        }
    };
    match max {
        Some(stray) => Err(key(stray, place)),
        None => Ok(mode),
    }
}
