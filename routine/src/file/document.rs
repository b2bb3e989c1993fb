//! Conversion of a document to a home, or to an error.

use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::num::NonZeroU16;

use super::commands::MOST;
use super::fields::{self, Fields, has};
use super::known::Known;
use super::tree::{Data, Entry, Node, Place};
use super::{Fault, FileError, Home, Location, NamedRoutine, NamedTrigger, near};
use crate::trigger::{Days, SUN_OFFSET, SunEvent, TimeOfDay, Trigger, Weekday};
use crate::{LONGEST_LATENESS, Mode, Routine, State, Urgency};

const TOP: &str = "an object: a routine, or a document with devices, routines and triggers";
const KEYS: [&str; 7] = [
    "devices", "groups", "scenes", "location", "routines", "triggers",
    // How a hub reaches the devices: for the hub to read.
    "hub",
];
const TRIGGERS: &str = "at, every_ms, when and manual";
const LIMIT: &str = "a whole number from 1 to 65535";
const TIMES: &str = "a time of day as 06:30, in quotes, or sunrise or sunset";

/// The home in a tree. Devices that the catalogue has keep their ids.
pub(super) fn home(node: &Node, known: &mut Known) -> Result<Home, FileError> {
    let top = Place::Top;
    if has(node, "RoutineName") || has(node, "CommandList") {
        let routine = routine(node, &top, known)?;
        return Ok(Home {
            catalogue: core::mem::take(&mut known.catalogue),
            routines: [routine].into(),
            ..Home::default()
        });
    }
    let given = Fields::of(node, &top, TOP, &KEYS)?;
    let mut home = Home::default();
    if let Some(node) = given.get("devices") {
        declare(node, &top.key("devices"), known, &mut home)?;
    }
    if let Some(node) = given.get("location") {
        home.location = Some(location(node, &top.key("location"))?);
    }
    if let Some(node) = given.get("groups") {
        groups(node, &top.key("groups"), known)?;
    }
    if let Some(node) = given.get("scenes") {
        scenes(node, &top.key("scenes"), known)?;
    }
    let mut names = BTreeSet::new();
    if let Some(node) = given.get("routines") {
        let list = top.key("routines");
        let nodes = fields::list(node, &list, "a list of routines")?;
        for (nth, node) in nodes.iter().enumerate() {
            let place = list.nth(nth);
            let routine = routine(node, &place, known)?;
            if !names.insert(routine.name.clone()) {
                let fault = Fault::SameRoutine(routine.name);
                return Err(place.key("RoutineName").fault(node.mark, fault));
            }
            home.routines.push(routine);
        }
    }
    if let Some(node) = given.get("triggers") {
        let list = top.key("triggers");
        let nodes = fields::list(node, &list, "a list of triggers")?;
        for (nth, node) in nodes.iter().enumerate() {
            let place = list.nth(nth);
            let trigger = trigger(node, &place, known, &names, home.location)?;
            home.triggers.push(trigger);
        }
    }
    home.catalogue = core::mem::take(&mut known.catalogue);
    home.groups = core::mem::take(&mut known.groups);
    home.scenes = core::mem::take(&mut known.scenes);
    Ok(home)
}

/// Reads the declarations of devices; their names go to the catalogue.
fn declare(
    node: &Node,
    list: &Place<'_>,
    known: &mut Known,
    home: &mut Home,
) -> Result<(), FileError> {
    let nodes = fields::list(node, list, "a list of devices")?;
    let mut names = BTreeSet::new();
    for (nth, node) in nodes.iter().enumerate() {
        let place = list.nth(nth);
        let keys = ["DevID", "initial", "lateness_ms"];
        let given = Fields::of(node, &place, "an object with DevID", &keys)?;
        let (at, device) = (place.key("DevID"), given.need("DevID", &place)?);
        let name = fields::name(device, &at)?;
        if !names.insert(name) {
            return Err(at.fault(device.mark, Fault::SameDevice(name.into())));
        }
        let id = known.catalogue.id_or_new(name);
        if let Some(node) = given.get("initial") {
            let at = place.key("initial");
            let state = fields::state(node, &at)?;
            known.note(id, Some(&state), node.mark, &at);
            home.initial.insert(id, state);
        }
        if let Some(lateness) = given.millis("lateness_ms", &place)? {
            if lateness > LONGEST_LATENESS {
                let (found, limit) = (lateness.0 / 1_000, LONGEST_LATENESS.0 / 1_000);
                let mark = given.get("lateness_ms").map_or(node.mark, |it| it.mark);
                let fault = Fault::TooLate { found, limit };
                return Err(place.key("lateness_ms").fault(mark, fault));
            }
            home.lateness.insert(id, lateness);
        }
    }
    known.is_declared = true;
    Ok(())
}

fn location(node: &Node, place: &Place<'_>) -> Result<Location, FileError> {
    let keys = ["latitude", "longitude"];
    let given = Fields::of(node, place, "an object with latitude and longitude", &keys)?;
    let degrees = |what: &'static str, limit: i64| {
        let (node, place) = (given.need(what, place)?, place.key(what));
        let found = match &node.data {
            Data::Number(text) => fields::number(text),
            Data::Null | Data::Bool(_) | Data::Word(_) | Data::List(_) | Data::Map(_) => None,
        };
        let fault = || {
            let found = node.shown();
            place.fault(node.mark, Fault::NoDegrees { found, what, limit })
        };
        found
            .filter(|it| it.thousandths().abs() <= limit * 1_000)
            .ok_or_else(fault)
    };
    Ok(Location {
        latitude: degrees("latitude", 90)?,
        longitude: degrees("longitude", 180)?,
    })
}

fn groups(node: &Node, list: &Place<'_>, known: &mut Known) -> Result<(), FileError> {
    for Entry { key, value, .. } in fields::named(node, list, "an object with groups by name")? {
        let place = list.key(key);
        let nodes = fields::some(value, &place, "a list of names of devices")?;
        let (mut devices, mut seen) = (Vec::with_capacity(nodes.len()), BTreeSet::new());
        for (nth, node) in nodes.iter().enumerate() {
            let place = place.nth(nth);
            let device = known.device(node, &place)?;
            if !seen.insert(device) {
                let name = known.catalogue.name(device).unwrap_or_default();
                return Err(place.fault(node.mark, Fault::TwiceInList(name.into())));
            }
            known.note(device, None, node.mark, &place);
            devices.push(device);
        }
        known.groups.insert(key.clone(), devices);
    }
    Ok(())
}

fn scenes(node: &Node, list: &Place<'_>, known: &mut Known) -> Result<(), FileError> {
    for Entry { key, value, .. } in fields::named(node, list, "an object with scenes by name")? {
        let place = list.key(key);
        let entries = fields::named(value, &place, "an object with states by device")?;
        if entries.is_empty() {
            return Err(place.fault(value.mark, Fault::EmptyList));
        }
        let mut states = Vec::with_capacity(entries.len());
        for Entry { key, mark, value } in entries {
            let place = place.key(key);
            let device = known.find(key, *mark, &place)?;
            let state = fields::state(value, &place)?;
            known.note(device, Some(&state), value.mark, &place);
            states.push((device, state));
        }
        known.scenes.insert(key.clone(), states);
    }
    Ok(())
}

fn routine(node: &Node, place: &Place<'_>, known: &mut Known) -> Result<NamedRoutine, FileError> {
    const WANTED: &str = "an object with RoutineName and CommandList";
    let keys = [
        "RoutineName",
        "CommandList",
        "if",
        "mode",
        "limit",
        "urgency",
    ];
    let given = Fields::of(node, place, WANTED, &keys)?;
    let name = given.need("RoutineName", place)?;
    let name = fields::name(name, &place.key("RoutineName"))?;
    let (mode, urgency) = (mode(&given, place)?, urgency(&given, place)?);
    let list = given.need("CommandList", place)?;
    if let Data::List(nodes) = &list.data
        && nodes.len() > MOST
    {
        let fault = Fault::TooManyCommands(nodes.len());
        return Err(place.key("CommandList").fault(list.mark, fault));
    }
    let mut steps = known.commands(list, &place.key("CommandList"))?.steps;
    if let Some(node) = given.get("if") {
        let place = place.key("if");
        let clause = known.clause(node, &place)?;
        known.guard(&mut steps, &clause, node.mark, &place)?;
        known.keep_apart(&steps, &[&clause], node.mark, &place)?;
    }
    Ok(NamedRoutine {
        name: name.into(),
        routine: Routine { steps },
        mode,
        urgency,
    })
}

fn mode(given: &Fields<'_>, place: &Place<'_>) -> Result<Mode, FileError> {
    const MODES: [&str; 4] = ["parallel", "single", "restart", "queued"];
    let limit = given.get("limit");
    let mode = match given.get("mode") {
        Some(node) => {
            let place = place.key("mode");
            let word = fields::word(node, &place, "parallel, single, restart or queued")?;
            let known = MODES.iter().position(|it| *it == word);
            known.ok_or_else(|| {
                let (found, near) = (super::tree::short(word), near(word, MODES));
                place.fault(node.mark, Fault::NoMode { found, near })
            })?
        }
        None => 0,
    };
    let at = place.key("limit");
    match (mode, limit) {
        (3, limit) => {
            let mark = limit.map_or(given.mark, |it| it.mark);
            let no_limit = || at.fault(mark, Fault::NoLimit);
            let found = limit.map(|it| fields::whole(it, &at, LIMIT)).transpose()?;
            let found = found.ok_or_else(no_limit)?;
            let wrong = || at.fault(mark, Fault::Limit(found.to_string()));
            let limit = u16::try_from(found).ok().and_then(NonZeroU16::new);
            let limit = limit.ok_or_else(wrong)?;
            Ok(Mode::Queued { limit })
        }
        (_, Some(stray)) => Err(at.fault(stray.mark, Fault::StrayLimit)),
        (1, None) => Ok(Mode::Single),
        (2, None) => Ok(Mode::Restart),
        (_, None) => Ok(Mode::Parallel),
    }
}

fn urgency(given: &Fields<'_>, place: &Place<'_>) -> Result<Urgency, FileError> {
    let Some(node) = given.get("urgency") else {
        return Ok(Urgency::default());
    };
    let place = place.key("urgency");
    let found = fields::whole(node, &place, "a whole number from 0 to 255")?;
    let fault = || place.fault(node.mark, Fault::Urgency(node.shown()));
    u8::try_from(found).map(Urgency).map_err(|_| fault())
}

fn trigger(
    node: &Node,
    place: &Place<'_>,
    known: &mut Known,
    names: &BTreeSet<String>,
    location: Option<Location>,
) -> Result<NamedTrigger, FileError> {
    const WANTED: &str = "an object with RoutineName and when it is run";
    let keys = [
        "RoutineName",
        "at",
        "days",
        "offset_ms",
        "every_ms",
        "when",
        "manual",
        "cooldown_ms",
    ];
    let given = Fields::of(node, place, WANTED, &keys)?;
    let named = given.need("RoutineName", place)?;
    let name = fields::name(named, &place.key("RoutineName"))?;
    if !names.contains(name) {
        let near = near(name, names.iter().map(String::as_str));
        let name = name.into();
        let fault = Fault::UnknownRoutine { name, near };
        return Err(place.key("RoutineName").fault(named.mark, fault));
    }
    let found = given.count(&["at", "every_ms", "when", "manual"]);
    if found != 1 {
        let keys = TRIGGERS;
        return Err(place.fault(node.mark, Fault::OneOf { found, keys }));
    }
    for key in ["days", "offset_ms"] {
        if let (Some(stray), None) = (given.get(key), given.get("at")) {
            return Err(place.key(key).fault(stray.mark, Fault::OnlyAt(key)));
        }
    }
    let trigger = if let Some(node) = given.get("at") {
        at(node, &given, place, location)?
    } else if let Some(every) = given.some_millis("every_ms", place)? {
        Trigger::Every(every)
    } else if let Some(node) = given.get("when") {
        Trigger::When(known.clause(node, &place.key("when"))?)
    } else {
        let (node, place) = (given.need("manual", place)?, place.key("manual"));
        if !fields::truth(node, &place, "true")? {
            return Err(place.fault(node.mark, Fault::NotManual));
        }
        Trigger::Manual
    };
    let cool_down = given.some_millis("cooldown_ms", place)?.unwrap_or_default();
    if let (Trigger::Manual, Some(stray)) = (&trigger, given.get("cooldown_ms")) {
        let place = place.key("cooldown_ms");
        return Err(place.fault(stray.mark, Fault::StrayCoolDown));
    }
    Ok(NamedTrigger {
        name: name.into(),
        trigger,
        cool_down,
    })
}

fn at(
    node: &Node,
    given: &Fields<'_>,
    place: &Place<'_>,
    location: Option<Location>,
) -> Result<Trigger<State>, FileError> {
    let here = place.key("at");
    let text = fields::word(node, &here, TIMES)?;
    let days = given.get("days").map(|it| days(it, &place.key("days")));
    let days = days.transpose()?;
    let event = match text {
        "sunrise" => SunEvent::Rise,
        "sunset" => SunEvent::Set,
        _ => {
            if let Some(stray) = given.get("offset_ms") {
                return Err(place.key("offset_ms").fault(stray.mark, Fault::OnlySun));
            }
            let fault = || here.fault(node.mark, Fault::NoTime(super::tree::short(text)));
            let at = TimeOfDay::parse(text).ok_or_else(fault)?;
            return Ok(match days {
                Some(days) => Trigger::On { days, at },
                None => Trigger::At(at),
            });
        }
    };
    if location.is_none() {
        return Err(here.fault(node.mark, Fault::NoLocation));
    }
    let offset_ms = match given.get("offset_ms") {
        Some(node) => {
            let place = place.key("offset_ms");
            let fault = || place.fault(node.mark, Fault::Offset(node.shown()));
            let found = fields::whole(node, &place, "whole milliseconds").map_err(|_| fault())?;
            let found = i32::try_from(found).ok();
            found
                .filter(|it| it.unsigned_abs() <= SUN_OFFSET.unsigned_abs())
                .ok_or_else(fault)?
        }
        None => 0,
    };
    Ok(Trigger::Sun {
        days: days.unwrap_or(Days::ALL),
        event,
        offset_ms,
    })
}

pub(super) fn days(node: &Node, place: &Place<'_>) -> Result<Days, FileError> {
    let nodes = fields::some(node, place, "a list of days, as [mon, tue]")?;
    let mut days = Vec::with_capacity(nodes.len().min(7));
    for (nth, node) in nodes.iter().enumerate() {
        let place = place.nth(nth);
        let text = fields::word(node, &place, "a day: mon, tue, wed, thu, fri, sat or sun")?;
        let fault = || place.fault(node.mark, Fault::NoDay(super::tree::short(text)));
        let day = Weekday::parse(text).ok_or_else(fault)?;
        if days.contains(&day) {
            return Err(place.fault(node.mark, Fault::TwiceInList(day.to_string())));
        }
        days.push(day);
    }
    Days::new(days).ok_or_else(|| place.fault(node.mark, Fault::EmptyList))
}
