//! From a home to text.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use selvedge_core::{NodeId, Span};
use serde::Serialize;

use super::check::{self, Place};
use super::shape::{
    ClauseShape, CommandShape, ConditionShape, DeviceShape, Document, Millis, ModeShape,
    PriorityShape, RoutineShape, Shown, TriggerShape,
};
use super::{Fault, FileError, Home};
use crate::trigger::{Clause, Trigger};
use crate::{Catalogue, Comparison, Condition, Mode, Priority, Routine, State, Step};

impl Home {
    /// Writes a document. What was read is written so that it is read as an equal home; devices
    /// that have no routine and of which nothing is said included.
    ///
    /// # Errors
    /// When the home was changed so that it could not be read again: a device without a name, a
    /// time of a part of a millisecond, and all that [`Home::read`] refuses.
    pub fn write(&self) -> Result<String, FileError> {
        for &id in self.initial.keys().chain(self.lateness.keys()) {
            device(id, &self.catalogue)?;
        }
        let names = self.catalogue.iter();
        let devices = names.map(|(id, name)| {
            let lateness = self.lateness.get(&id).copied();
            Ok(DeviceShape {
                device: name.into(),
                initial: self.initial.get(&id).cloned().map(Shown),
                lateness_ms: lateness.map(millis).transpose()?,
            })
        });
        let mut document = Document {
            devices: Some(devices.collect::<Result<_, FileError>>()?),
            routines: Vec::with_capacity(self.routines.len()),
            triggers: Vec::with_capacity(self.triggers.len()),
            hub: None,
        };
        for it in &self.routines {
            let mut shape = routine(&it.name, &it.routine, &self.catalogue)?;
            (shape.mode, shape.limit) = match it.mode {
                Mode::Parallel => (None, None),
                Mode::Single => (Some(ModeShape::Single), None),
                Mode::Restart => (Some(ModeShape::Restart), None),
                Mode::Queued { limit } => (Some(ModeShape::Queued), Some(limit.get())),
            };
            shape.urgency = it.urgency.0;
            document.routines.push(shape);
        }
        for it in &self.triggers {
            let mut shape = trigger(&it.name, &it.trigger, &self.catalogue)?;
            if it.cool_down > Span::ZERO {
                shape.cooldown_ms = Some(millis(it.cool_down)?);
            }
            document.triggers.push(shape);
        }
        check::document(&document, Catalogue::new())?;
        text(&document)
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
    let shape = routine(name, it, catalogue)?;
    check::single(&shape, Catalogue::new())?;
    text(&shape)
}

fn text(shape: &impl Serialize) -> Result<String, FileError> {
    // Strings, numbers and lists can always be written.
    serde_json::to_string_pretty(shape).map_err(|error| FileError::Form {
        path: String::new(),
        why: error.to_string(),
        line: 0,
        column: 0,
    })
}

fn routine(
    name: &str,
    routine: &Routine<State>,
    catalogue: &Catalogue,
) -> Result<RoutineShape, FileError> {
    let commands = routine.steps.iter().map(|it| command(it, catalogue));
    Ok(RoutineShape {
        name: name.into(),
        mode: None,
        limit: None,
        urgency: 0,
        commands: commands.collect::<Result<_, _>>()?,
    })
}

fn command(step: &Step<State>, catalogue: &Catalogue) -> Result<CommandShape, FileError> {
    let condition = match &step.condition {
        Some(it) => {
            let [equal, not_equal, less, greater] = comparisons(it);
            Some(ConditionShape {
                device: device(it.device, catalogue)?,
                equal,
                not_equal,
                less,
                greater,
            })
        }
        None => None,
    };
    Ok(CommandShape {
        device: device(step.device, catalogue)?,
        action: Shown(step.value.clone()),
        priority: match step.priority {
            Priority::Must => PriorityShape::Must,
            Priority::BestEffort => PriorityShape::BestEffort,
        },
        hold_ms: millis(step.hold)?,
        preemptible: step.preemptible,
        timeout_ms: step.timeout.map(millis).transpose()?,
        undo: step.undo.clone().map(Shown),
        condition,
    })
}

fn trigger(
    name: &str,
    trigger: &Trigger<State>,
    catalogue: &Catalogue,
) -> Result<TriggerShape, FileError> {
    let mut shape = TriggerShape {
        name: name.into(),
        ..TriggerShape::default()
    };
    match trigger {
        Trigger::At(time) => shape.at = Some(time.to_string()),
        Trigger::Every(every) => shape.every_ms = Some(millis(*every)?),
        Trigger::When(it) => shape.when = Some(clause(it, catalogue)?),
        Trigger::Manual => shape.manual = Some(true),
    }
    Ok(shape)
}

fn clause(it: &Clause<State>, catalogue: &Catalogue) -> Result<ClauseShape, FileError> {
    let list = |clauses: &[Clause<State>]| {
        let shapes = clauses.iter().map(|it| clause(it, catalogue));
        shapes.collect::<Result<Vec<_>, _>>()
    };
    let mut shape = ClauseShape::default();
    match it {
        Clause::Is(condition) => {
            let [equal, not_equal, less, greater] = comparisons(condition);
            shape = ClauseShape {
                device: Some(device(condition.device, catalogue)?),
                equal,
                not_equal,
                less,
                greater,
                ..shape
            };
        }
        Clause::Not(it) => shape.not = Some(Box::new(clause(it, catalogue)?)),
        Clause::All(clauses) => shape.all = Some(list(clauses)?),
        Clause::Any(clauses) => shape.any = Some(list(clauses)?),
    }
    Ok(shape)
}

/// The comparison at its key, of equal, not_equal, less and greater.
fn comparisons(condition: &Condition<State>) -> [Option<Shown>; 4] {
    [
        Comparison::Equal,
        Comparison::NotEqual,
        Comparison::Less,
        Comparison::Greater,
    ]
    .map(|it| (it == condition.comparison).then(|| Shown(condition.value.clone())))
}

fn device(id: NodeId, catalogue: &Catalogue) -> Result<String, FileError> {
    let fault = || Place::Top.fault(Fault::NoDeviceName(id));
    catalogue.name(id).map(Into::into).ok_or_else(fault)
}

fn millis(span: Span) -> Result<Millis, FileError> {
    if span.0.is_multiple_of(1_000) {
        Ok(Millis(span.0 / 1_000))
    } else {
        Err(Place::Top.fault(Fault::NotWhole(span.0)))
    }
}
