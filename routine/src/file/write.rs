//! From a home to text.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use selvedge_core::{NodeId, Span};

use super::fields::{entry, plain, shown, words};
use super::known::Known;
use super::tree::{Data, Entry, Mark, Node, Place};
use super::{
    Fault, FileError, Format, Home, NamedRoutine, NamedTrigger, clauses, document, json, read,
};
use crate::trigger::{Days, SunEvent, Trigger};
use crate::{Catalogue, Mode, Priority, Routine, State, Step, Urgency};

impl Home {
    /// Writes a document in JSON. A home that was read is written so that it is read as an equal
    /// home, with the devices that have no routine and no declared properties. Blocks, groups,
    /// scenes and repetitions in routines are written as their commands.
    ///
    /// # Errors
    /// When the home was changed so that it could not be read again: a device without a name, a
    /// time of a part of a millisecond, and all that [`Home::read`] refuses.
    pub fn write(&self) -> Result<String, FileError> {
        self.write_as(Format::Json)
    }

    /// Writes a document in a format, as [`write`](Self::write) does.
    ///
    /// # Errors
    /// When the home was changed so that it could not be read again: a device without a name, a
    /// time of a part of a millisecond, and all that [`Home::read`] refuses.
    pub fn write_as(&self, format: Format) -> Result<String, FileError> {
        for &id in self.initial.keys().chain(self.lateness.keys()) {
            self.catalogue.written(id)?;
        }
        let name = |id| self.catalogue.written(id);
        let mut document: Vec<Entry> = [entry("devices", self.devices()?)].into();
        if let Some(it) = &self.location {
            let degrees: Vec<Entry> = [
                entry("latitude", plain(it.latitude)),
                entry("longitude", plain(it.longitude)),
            ]
            .into();
            document.push(entry("location", degrees));
        }
        if !self.groups.is_empty() {
            let groups = self.groups.iter().map(|(key, devices)| {
                let nodes = devices.iter().map(|&it| Ok(Data::Word(name(it)?).into()));
                Ok(entry(key, nodes.collect::<Result<Vec<Node>, FileError>>()?))
            });
            let groups = groups.collect::<Result<Vec<Entry>, FileError>>()?;
            document.push(entry("groups", groups));
        }
        if !self.scenes.is_empty() {
            let scenes = self.scenes.iter().map(|(key, states)| {
                let states = states
                    .iter()
                    .map(|(at, it)| Ok(entry(&name(*at)?, shown(it))));
                Ok(entry(
                    key,
                    states.collect::<Result<Vec<Entry>, FileError>>()?,
                ))
            });
            let scenes = scenes.collect::<Result<Vec<Entry>, FileError>>()?;
            document.push(entry("scenes", scenes));
        }
        let routines = self.routines.iter();
        let routines = routines.map(|it| named(it, &self.catalogue).map(Node::from));
        document.push(entry("routines", routines.collect::<Result<Vec<_>, _>>()?));
        if !self.triggers.is_empty() {
            let triggers = self.triggers.iter();
            let triggers = triggers.map(|it| trigger(it, &self.catalogue));
            document.push(entry("triggers", triggers.collect::<Result<Vec<_>, _>>()?));
        }
        text(&document.into(), format)
    }

    fn devices(&self) -> Result<Vec<Node>, FileError> {
        let devices = self.catalogue.iter().map(|(id, name)| {
            let mut device: Vec<Entry> = [entry("DevID", name)].into();
            if let Some(state) = self.initial.get(&id) {
                device.push(entry("initial", shown(state)));
            }
            if let Some(lateness) = self.lateness.get(&id) {
                device.push(entry("lateness_ms", millis(*lateness)?));
            }
            Ok(device.into())
        });
        devices.collect()
    }
}

/// Writes one routine as the paper does.
///
/// # Errors
/// When it could not be read again: no command, a device without a name, a time of a part of a
/// millisecond, and all that [`Home::read`] refuses.
pub fn write_routine(
    name: &str,
    it: &Routine<State>,
    catalogue: &Catalogue,
) -> Result<String, FileError> {
    text(&routine(name, it, catalogue)?.into(), Format::Json)
}

/// Writes the text, unless it could not be read again.
fn text(node: &Node, format: Format) -> Result<String, FileError> {
    document::home(node, &mut Known::new(Catalogue::new(), false))?;
    let mut text = String::new();
    match format {
        Format::Json => json::print(node, 0, &mut text),
        #[cfg(feature = "yaml")]
        Format::Yaml => {
            super::yaml::print(node, 0, &mut text);
            text.push('\n');
        }
    }
    read::check_size(text.as_bytes(), Mark::default())?;
    Ok(text)
}

/// A routine, with the settings of its runs.
fn named(it: &NamedRoutine, catalogue: &Catalogue) -> Result<Vec<Entry>, FileError> {
    let mut entries = routine(&it.name, &it.routine, catalogue)?;
    match it.mode {
        Mode::Parallel => {}
        Mode::Single => entries.push(entry("mode", "single")),
        Mode::Restart => entries.push(entry("mode", "restart")),
        Mode::Queued { limit } => {
            entries.push(entry("mode", "queued"));
            entries.push(entry("limit", plain(limit)));
        }
    }
    if it.urgency > Urgency::default() {
        entries.push(entry("urgency", plain(it.urgency)));
    }
    Ok(entries)
}

fn routine(
    name: &str,
    it: &Routine<State>,
    catalogue: &Catalogue,
) -> Result<Vec<Entry>, FileError> {
    let commands = it.steps.iter().map(|it| command(it, catalogue));
    Ok([
        entry("RoutineName", name),
        entry("CommandList", commands.collect::<Result<Vec<_>, _>>()?),
    ]
    .into())
}

fn command(step: &Step<State>, catalogue: &Catalogue) -> Result<Node, FileError> {
    let priority = match step.priority {
        Priority::Must => "MUST",
        Priority::BestEffort => "BEST_EFFORT",
    };
    let mut entries: Vec<Entry> = [
        entry("DevID", Data::Word(catalogue.written(step.device)?)),
        entry("Action", shown(&step.value)),
        entry("Priority", priority),
    ]
    .into();
    if step.hold > Span::ZERO {
        entries.push(entry("hold_ms", millis(step.hold)?));
    }
    if step.preemptible {
        entries.push(entry("preemptible", Data::Bool(true)));
    }
    if let Some(timeout) = step.timeout {
        entries.push(entry("timeout_ms", millis(timeout)?));
    }
    if let Some(undo) = &step.undo {
        entries.push(entry("undo", shown(undo)));
    }
    if let Some(condition) = &step.condition {
        let condition = clauses::written(condition, &|it| catalogue.written(it))?;
        entries.push(entry("if", condition));
    }
    Ok(entries.into())
}

fn trigger(it: &NamedTrigger, catalogue: &Catalogue) -> Result<Node, FileError> {
    let mut entries: Vec<Entry> = [entry("RoutineName", it.name.as_str())].into();
    let days = |days: Days| words(days.iter().map(crate::trigger::Weekday::short));
    match &it.trigger {
        Trigger::At(at) => entries.push(entry("at", Data::Word(at.to_string()))),
        Trigger::On { days: on, at } => {
            entries.push(entry("at", Data::Word(at.to_string())));
            entries.push(entry("days", days(*on)));
        }
        Trigger::Sun {
            days: on,
            event,
            offset_ms,
        } => {
            let event = match event {
                SunEvent::Rise => "sunrise",
                SunEvent::Set => "sunset",
            };
            entries.push(entry("at", event));
            if *offset_ms != 0 {
                entries.push(entry("offset_ms", plain(offset_ms)));
            }
            if *on != Days::ALL {
                entries.push(entry("days", days(*on)));
            }
        }
        Trigger::Every(every) => entries.push(entry("every_ms", millis(*every)?)),
        Trigger::When(it) => {
            let clause = clauses::written(it, &|it| catalogue.written(it))?;
            entries.push(entry("when", clause));
        }
        Trigger::Manual => entries.push(entry("manual", Data::Bool(true))),
    }
    if it.cool_down > Span::ZERO {
        entries.push(entry("cooldown_ms", millis(it.cool_down)?));
    }
    Ok(entries.into())
}

impl Catalogue {
    fn written(&self, id: NodeId) -> Result<String, FileError> {
        let fault = || Place::Top.fault(Mark::default(), Fault::NoDeviceName(id));
        self.name(id).map(Into::into).ok_or_else(fault)
    }
}

fn millis(span: Span) -> Result<Node, FileError> {
    if span.0.is_multiple_of(1_000) {
        Ok(plain(span.0 / 1_000))
    } else {
        Err(Place::Top.fault(Mark::default(), Fault::NotWhole(span.0)))
    }
}
