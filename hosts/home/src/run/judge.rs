//! The judgement of a run.

use std::collections::BTreeMap;

use selvedge_core::{Choose, NodeId};
use selvedge_routine::State;
use selvedge_safehome::{Placed, Visibility};

use super::{Stage, Watch};
use crate::trace::{Happened, Trace};

/// The outcome of a run.
#[derive(Clone, Debug)]
pub(crate) struct Outcomes {
    /// The events.
    pub(crate) trace: Trace,
    /// The state of each device at the end, with true if it is up.
    pub(crate) devices: BTreeMap<NodeId, (Option<State>, bool)>,
    /// True if the reported serial order gives the devices' states; `None` if the hub reports no
    /// order, or if a device could not be restored.
    pub(crate) explained: Option<bool>,
}

impl<C: Choose, W: Watch> Stage<'_, C, W> {
    /// True if the serial order gives the devices' states.
    pub(super) fn explained(&self) -> Option<bool> {
        let strict = self.plan.config.visibility != Visibility::Weak;
        let restored = self.things.values().all(|it| it.is_up)
            && !self.trace.happened.iter().any(|it| it.2 == Happened::Stuck);
        if !strict || !restored {
            return None;
        }
        let mut states: BTreeMap<NodeId, Option<State>> = BTreeMap::new();
        for &device in self.things.keys() {
            states.insert(device, self.plan.home.initial.get(&device).cloned());
        }
        for placed in &self.placed {
            match placed {
                Placed::Routine(id) => {
                    let Some(it) = self.trace.occurrences.get(id) else {
                        return Some(false);
                    };
                    for (nth, step) in it.routine.steps.iter().enumerate() {
                        if !it.skipped.iter().any(|(at, _)| usize::from(*at) == nth) {
                            states.insert(step.device, Some(step.value.clone()));
                        }
                    }
                }
                Placed::Set { device, state } => {
                    states.insert(*device, state.clone());
                }
                Placed::Failed(_) | Placed::Restarted(_) => {}
            }
        }
        let mut things = self.things.iter();
        Some(things.all(|(id, it)| states.get(id) == Some(&it.state)))
    }
}
