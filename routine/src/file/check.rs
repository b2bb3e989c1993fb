//! What a document means, or why it means nothing.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroU16;

use selvedge_core::{NodeId, Span};

use super::shape::{
    ClauseShape, CommandShape, ConditionShape, Document, Millis, ModeShape, PriorityShape,
    RoutineShape, Shown, TriggerShape,
};
use super::{Fault, FileError, Home, NamedRoutine, NamedTrigger};
use crate::trigger::{Clause, TimeOfDay, Trigger};
use crate::{
    Catalogue, Comparison, Condition, LONGEST_KEY, LONGEST_LATENESS, Mode, Priority, Routine,
    State, Step, Urgency,
};

/// The longest time: what fits in 64 bits of microseconds.
const LONGEST: u64 = u64::MAX / 1_000;

const COMPARISONS: &str = "equal, not_equal, less and greater";
const CLAUSES: &str = "equal, not_equal, less, greater, all, any and not";
const TRIGGERS: &str = "at, every_ms, when and manual";

/// Where something stands.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    Top,
    Key(&'a Self, &'static str),
    Nth(&'a Self, usize),
}

impl<'a> Place<'a> {
    const fn key(&'a self, key: &'static str) -> Self {
        Self::Key(self, key)
    }

    const fn nth(&'a self, nth: usize) -> Self {
        Self::Nth(self, nth)
    }

    pub(super) fn fault(&self, fault: Fault) -> FileError {
        FileError::Meaning {
            path: self.to_string(),
            fault,
        }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Top => Ok(()),
            Self::Key(Self::Top, key) => f.write_str(key),
            Self::Key(parent, key) => write!(f, "{parent}.{key}"),
            Self::Nth(parent, nth) => write!(f, "{parent}[{nth}]"),
        }
    }
}

/// The devices of a file.
struct Devices {
    catalogue: Catalogue,
    /// Others are refused.
    is_declared: bool,
}

/// What a document means. Devices that the catalogue has keep their ids.
pub(super) fn document(document: &Document, catalogue: Catalogue) -> Result<Home, FileError> {
    let top = Place::Top;
    let mut devices = Devices {
        catalogue,
        is_declared: document.devices.is_some(),
    };
    let declared = declare(document, &mut devices)?;
    let list = top.key("routines");
    let mut routines = Vec::with_capacity(document.routines.len());
    let mut names = BTreeSet::new();
    for (nth, shape) in document.routines.iter().enumerate() {
        let place = list.nth(nth);
        if !names.insert(shape.name.as_str()) {
            let name = shape.name.clone();
            return Err(place.key("RoutineName").fault(Fault::SameRoutine(name)));
        }
        routines.push(routine(shape, &place, &mut devices)?);
    }
    let list = top.key("triggers");
    let mut triggers = Vec::with_capacity(document.triggers.len());
    for (nth, shape) in document.triggers.iter().enumerate() {
        let place = list.nth(nth);
        if !names.contains(shape.name.as_str()) {
            let name = shape.name.clone();
            return Err(place.key("RoutineName").fault(Fault::UnknownRoutine(name)));
        }
        triggers.push(NamedTrigger {
            name: shape.name.clone(),
            trigger: trigger(shape, &place, &mut devices)?,
            cool_down: cool_down(shape, &place)?,
        });
    }
    Ok(Home {
        catalogue: devices.catalogue,
        routines,
        triggers,
        ..declared
    })
}

/// What one routine means.
pub(super) fn single(shape: &RoutineShape, catalogue: Catalogue) -> Result<Home, FileError> {
    let mut devices = Devices {
        catalogue,
        is_declared: false,
    };
    let routine = routine(shape, &Place::Top, &mut devices)?;
    Ok(Home {
        catalogue: devices.catalogue,
        routines: [routine].into(),
        ..Home::default()
    })
}

/// What is said of the devices; their names go to the catalogue.
fn declare(document: &Document, devices: &mut Devices) -> Result<Home, FileError> {
    let top = Place::Top;
    let list = top.key("devices");
    let mut declared = Home::default();
    let mut names = BTreeSet::new();
    for (nth, shape) in document.devices.iter().flatten().enumerate() {
        let place = list.nth(nth);
        let name = place.key("DevID");
        if shape.device.is_empty() {
            return Err(name.fault(Fault::NoName));
        }
        if !names.insert(shape.device.as_str()) {
            return Err(name.fault(Fault::SameDevice(shape.device.clone())));
        }
        let id = devices.catalogue.id_or_new(&shape.device);
        if let Some(Shown(state)) = &shape.initial {
            declared.initial.insert(id, state.clone());
        }
        if let Some(millis) = shape.lateness_ms {
            let lateness = lateness(millis, &place.key("lateness_ms"))?;
            declared.lateness.insert(id, lateness);
        }
    }
    Ok(declared)
}

fn lateness(Millis(found): Millis, place: &Place<'_>) -> Result<Span, FileError> {
    let limit = LONGEST_LATENESS.0 / 1_000;
    if found > limit {
        return Err(place.fault(Fault::TooLate { found, limit }));
    }
    Ok(Span::millis(found))
}

impl Devices {
    fn find(&mut self, name: &str, place: &Place<'_>) -> Result<NodeId, FileError> {
        if name.is_empty() {
            return Err(place.fault(Fault::NoName));
        }
        if !self.is_declared {
            return Ok(self.catalogue.id_or_new(name));
        }
        let found = self.catalogue.id(name);
        found.ok_or_else(|| place.fault(Fault::UnknownDevice(name.into())))
    }
}

fn routine(
    shape: &RoutineShape,
    place: &Place<'_>,
    devices: &mut Devices,
) -> Result<NamedRoutine, FileError> {
    if shape.name.is_empty() {
        return Err(place.key("RoutineName").fault(Fault::NoName));
    }
    let (found, limit) = (shape.name.len(), LONGEST_KEY);
    let has_mode = !matches!(shape.mode, None | Some(ModeShape::Parallel));
    if has_mode && found > limit {
        let fault = Fault::LongName { found, limit };
        return Err(place.key("RoutineName").fault(fault));
    }
    let list = place.key("CommandList");
    if shape.commands.is_empty() {
        return Err(list.fault(Fault::EmptyList));
    }
    let many = shape.commands.len();
    if many > usize::from(u16::MAX) {
        return Err(list.fault(Fault::TooManyCommands(many)));
    }
    let mut steps = Vec::with_capacity(many);
    for (nth, shape) in shape.commands.iter().enumerate() {
        steps.push(step(shape, &list.nth(nth), devices)?);
    }
    Ok(NamedRoutine {
        name: shape.name.clone(),
        routine: Routine { steps },
        mode: mode(shape, place)?,
        urgency: Urgency(shape.urgency),
    })
}

fn mode(shape: &RoutineShape, place: &Place<'_>) -> Result<Mode, FileError> {
    let key = place.key("limit");
    match (shape.mode, shape.limit) {
        (Some(ModeShape::Queued), limit) => {
            let limit = limit.and_then(NonZeroU16::new);
            let limit = limit.ok_or_else(|| key.fault(Fault::NoLimit))?;
            Ok(Mode::Queued { limit })
        }
        (_, Some(_)) => Err(key.fault(Fault::StrayLimit)),
        (None | Some(ModeShape::Parallel), None) => Ok(Mode::Parallel),
        (Some(ModeShape::Single), None) => Ok(Mode::Single),
        (Some(ModeShape::Restart), None) => Ok(Mode::Restart),
    }
}

fn cool_down(shape: &TriggerShape, place: &Place<'_>) -> Result<Span, FileError> {
    let Some(millis) = shape.cooldown_ms else {
        return Ok(Span::ZERO);
    };
    let place = place.key("cooldown_ms");
    if shape.manual.is_some() {
        return Err(place.fault(Fault::StrayCoolDown));
    }
    above_zero(millis, &place)
}

fn step(
    shape: &CommandShape,
    place: &Place<'_>,
    devices: &mut Devices,
) -> Result<Step<State>, FileError> {
    let condition = match &shape.condition {
        Some(shape) => Some(condition(shape, &place.key("if"), devices)?),
        None => None,
    };
    let undo = shape.undo.as_ref().map(|it| it.0.clone());
    if undo.as_ref() == Some(&shape.action.0) {
        let state = shape.action.0.to_string();
        return Err(place.key("undo").fault(Fault::UndoIsAction(state)));
    }
    let timeout = match shape.timeout_ms {
        Some(timeout) => Some(above_zero(timeout, &place.key("timeout_ms"))?),
        None => None,
    };
    if shape.preemptible && shape.hold_ms == Millis(0) {
        return Err(place.key("preemptible").fault(Fault::NoHold));
    }
    Ok(Step {
        device: devices.find(&shape.device, &place.key("DevID"))?,
        value: shape.action.0.clone(),
        priority: match shape.priority {
            PriorityShape::Must => Priority::Must,
            PriorityShape::BestEffort => Priority::BestEffort,
        },
        hold: span(shape.hold_ms, &place.key("hold_ms"))?,
        timeout,
        undo,
        condition,
        preemptible: shape.preemptible,
    })
}

fn span(Millis(found): Millis, place: &Place<'_>) -> Result<Span, FileError> {
    if found > LONGEST {
        let limit = LONGEST;
        return Err(place.fault(Fault::TooLong { found, limit }));
    }
    Ok(Span::millis(found))
}

fn above_zero(millis: Millis, place: &Place<'_>) -> Result<Span, FileError> {
    if millis.0 == 0 {
        return Err(place.fault(Fault::Zero));
    }
    span(millis, place)
}

fn condition(
    shape: &ConditionShape,
    place: &Place<'_>,
    devices: &mut Devices,
) -> Result<Condition<State>, FileError> {
    let given = [&shape.equal, &shape.not_equal, &shape.less, &shape.greater];
    let (comparison, value) = compared(given, COMPARISONS, 0, place)?;
    Ok(Condition {
        device: devices.find(&shape.device, &place.key("DevID"))?,
        comparison,
        value,
    })
}

/// The one comparison that is given.
fn compared(
    [equal, not_equal, less, greater]: [&Option<Shown>; 4],
    keys: &'static str,
    others: usize,
    place: &Place<'_>,
) -> Result<(Comparison, State), FileError> {
    let all = [
        (Comparison::Equal, equal, "equal"),
        (Comparison::NotEqual, not_equal, "not_equal"),
        (Comparison::Less, less, "less"),
        (Comparison::Greater, greater, "greater"),
    ];
    let mut given = all
        .iter()
        .filter_map(|&(how, value, key)| value.as_ref().map(|it| (how, &it.0, key)));
    let found = given.clone().count() + others;
    let (Some((how, value, key)), 1) = (given.next(), found) else {
        return Err(place.fault(Fault::OneOf { found, keys }));
    };
    if let (Comparison::Less | Comparison::Greater, State::Word(word)) = (how, value) {
        return Err(place.key(key).fault(Fault::WordOrder(word.clone())));
    }
    Ok((how, value.clone()))
}

fn trigger(
    shape: &TriggerShape,
    place: &Place<'_>,
    devices: &mut Devices,
) -> Result<Trigger<State>, FileError> {
    let found = usize::from(shape.at.is_some())
        + usize::from(shape.every_ms.is_some())
        + usize::from(shape.when.is_some())
        + usize::from(shape.manual.is_some());
    let keys = TRIGGERS;
    if found != 1 {
        return Err(place.fault(Fault::OneOf { found, keys }));
    }
    if let Some(text) = &shape.at {
        let fault = || place.key("at").fault(Fault::NoTime(text.clone()));
        return TimeOfDay::parse(text).map(Trigger::At).ok_or_else(fault);
    }
    if let Some(every) = shape.every_ms {
        return above_zero(every, &place.key("every_ms")).map(Trigger::Every);
    }
    if let Some(when) = &shape.when {
        return clause(when, &place.key("when"), devices).map(Trigger::When);
    }
    if shape.manual == Some(false) {
        return Err(place.key("manual").fault(Fault::NotManual));
    }
    Ok(Trigger::Manual)
}

/// As deep on the stack as the clause is nested, which the reader of JSON limits to 128.
fn clause(
    shape: &ClauseShape,
    place: &Place<'_>,
    devices: &mut Devices,
) -> Result<Clause<State>, FileError> {
    let (all, any, not) = (&shape.all, &shape.any, &shape.not);
    let lists = usize::from(all.is_some()) + usize::from(any.is_some());
    let others = lists + usize::from(not.is_some());
    let given = [&shape.equal, &shape.not_equal, &shape.less, &shape.greater];
    let compares = given.iter().any(|it| it.is_some());
    if compares || others != 1 {
        let (comparison, value) = compared(given, CLAUSES, others, place)?;
        let name = shape.device.as_ref();
        let name = name.ok_or_else(|| place.fault(Fault::NoDevice))?;
        return Ok(Clause::Is(Condition {
            device: devices.find(name, &place.key("DevID"))?,
            comparison,
            value,
        }));
    }
    if shape.device.is_some() {
        return Err(place.key("DevID").fault(Fault::StrayDevice));
    }
    let mut list = |shapes: &[ClauseShape], place: &Place<'_>| {
        if shapes.is_empty() {
            return Err(place.fault(Fault::EmptyList));
        }
        let clauses = shapes.iter().enumerate();
        let clauses = clauses.map(|(nth, it)| clause(it, &place.nth(nth), devices));
        clauses.collect::<Result<Vec<_>, _>>()
    };
    if let Some(shapes) = all {
        let place = place.key("all");
        let clauses = list(shapes, &place)?;
        can_be(&clauses, &place, &devices.catalogue)?;
        return Ok(Clause::All(clauses));
    }
    if let Some(shapes) = any {
        return Ok(Clause::Any(list(shapes, &place.key("any"))?));
    }
    match not {
        Some(shape) => {
            let clause = clause(shape, &place.key("not"), devices)?;
            Ok(Clause::Not(Box::new(clause)))
        }
        None => Err(place.fault(Fault::OneOf {
            found: 0,
            keys: CLAUSES,
        })),
    }
}

/// A device is in one state at a time.
fn can_be(
    clauses: &[Clause<State>],
    place: &Place<'_>,
    catalogue: &Catalogue,
) -> Result<(), FileError> {
    let mut states: BTreeMap<NodeId, &State> = BTreeMap::new();
    for (nth, clause) in clauses.iter().enumerate() {
        let Clause::Is(condition) = clause else {
            continue;
        };
        if condition.comparison != Comparison::Equal {
            continue;
        }
        let before = states.insert(condition.device, &condition.value);
        if let Some(first) = before.filter(|it| **it != condition.value) {
            let fault = Fault::NeverTrue {
                device: catalogue
                    .name(condition.device)
                    .map_or_else(String::new, Into::into),
                first: first.to_string(),
                second: condition.value.to_string(),
            };
            return Err(place.nth(nth).fault(fault));
        }
    }
    Ok(())
}
