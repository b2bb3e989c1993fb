//! The conditions on runs of one key and on urgent routines.

use alloc::collections::BTreeSet;

use selvedge_core::NodeId;

use super::Home;
use crate::lineage::Entry;
use crate::run::{Run, Stage};
use crate::{Hub, Mode, RoutineId, Urgency, Visibility};

impl Home {
    /// Returns true if at most one run of each key is admitted, of the runs that must not run at
    /// the same time.
    pub(super) fn is_one_of_each_key(&self) -> bool {
        let is_in = |it: &&Run<u8>| {
            it.terms.mode() != Mode::Parallel && !it.is_over() && it.stage != Stage::Queued
        };
        let mut keys = BTreeSet::new();
        let mut runs = self.hub().runs.values().filter(is_in);
        runs.all(|it| keys.insert(it.terms.key()))
    }

    /// Returns true if a run that supersedes others or is urgent sets this device as its first
    /// command there, and has not begun.
    pub(super) fn is_set_next(&self, device: NodeId) -> bool {
        self.hub().runs.values().any(|run| {
            let step = run.step().filter(|_| run.at == 0 && run.busy.is_none());
            let is_next = step.is_some_and(|it| it.device == device && it.condition.is_none());
            is_next && run.takes_over() && !run.is_over() && run.stage != Stage::Queued
        })
    }

    /// Returns true if no admitted urgent routine waits for a less urgent one.
    pub(super) fn is_urgent_first(&self) -> bool {
        let hub = self.hub();
        let mut all = hub.runs.iter().filter(|it| !it.1.is_over());
        all.all(|(&id, urgent)| {
            let below =
                |it: &(&RoutineId, &Run<u8>)| it.1.urgency() < urgent.urgency() && !it.1.is_over();
            let mut below = hub.runs.iter().filter(below);
            urgent.urgency() == Urgency::default()
                || below.all(|(&other, run)| !stands_in_way(hub, other, run, id, urgent))
        })
    }
}

/// Returns true if a less urgent routine, which goes on, stands in the way of an urgent one.
fn stands_in_way(
    hub: &Hub<u8>,
    id: RoutineId,
    run: &Run<u8>,
    urgent_id: RoutineId,
    urgent: &Run<u8>,
) -> bool {
    if urgent.stage == Stage::Queued {
        return id < urgent_id
            && run.terms.key().is_some()
            && run.terms.key() == urgent.terms.key();
    }
    let is_alone = matches!(
        hub.config.visibility,
        Visibility::GlobalStrict | Visibility::StrongGlobalStrict
    );
    if is_alone {
        return run.is_active();
    }
    let left = || urgent.routine.steps.iter().skip(usize::from(urgent.at));
    let asks = |device| left().any(|it| it.condition.as_ref().is_some_and(|it| it.asks(device)));
    urgent.devices.iter().any(|&at| {
        let Some(device) = hub.devices.get(&at).filter(|_| urgent.still_needs(at)) else {
            return false;
        };
        let place = device.position(urgent_id);
        if place.is_none() && hub.is_weak() {
            // It does not wait there yet.
            return false;
        }
        let before = device.lineage.get(..place.unwrap_or(device.lineage.len()));
        let mut before = before.unwrap_or_default().iter();
        let ours = |it: &&Entry<u8>| it.routine() == Some(id);
        before.find(ours).is_some_and(|it| !it.released || asks(at))
    })
}
