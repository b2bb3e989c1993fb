//! The routines that have waited for too long, and the test whether others go before them.

use alloc::vec::Vec;

use selvedge_core::NodeId;

use crate::run::{Run, Stage};
use crate::{Hub, RoutineId};

/// A routine that has waited for too long, and the later ones that have a place already.
#[derive(Debug)]
pub(super) struct Impatient {
    id: RoutineId,
    ahead: Vec<RoutineId>,
}

impl Impatient {
    pub(super) fn new(hub: &Hub<u8>, id: RoutineId) -> Self {
        let later = hub.runs.iter().skip_while(|it| *it.0 < id);
        let placed = later.filter(|it| !it.1.is_placeless());
        Self {
            id,
            ahead: placed.map(|it| *it.0).collect(),
        }
    }

    /// Returns true if another has got a place since then on a device for which it still waits:
    /// any, if it has no place itself; else one in front of it.
    pub(super) fn is_overtaken(&self, hub: &Hub<u8>) -> bool {
        let Some(waiting) = hub.runs.get(&self.id) else {
            return false;
        };
        let is_passed = |other: RoutineId, run: &Run<u8>, at: &NodeId| {
            let Some(device) = hub.devices.get(at) else {
                return false;
            };
            match device.entry(self.id) {
                None => waiting.stage == Stage::Waiting && run.devices.contains(at),
                Some(ours) => {
                    let place = device.position(other);
                    !ours.touched && place.is_some() && place < device.position(self.id)
                }
            }
        };
        let mut later = hub.runs.iter().skip_while(|it| *it.0 < self.id);
        later.any(|(&other, run)| {
            let is_new = !run.is_placeless() && !self.ahead.contains(&other);
            let mut devices = waiting.devices.iter();
            other != self.id && is_new && devices.any(|at| is_passed(other, run, at))
        })
    }
}
