//! Preemption of less urgent routines that stand in the way of a more urgent one.
//!
//! The hub decides about it once, when it admits the urgent run. From then on less urgent runs get no place
//! before it and do not overtake it, so no later step and no clock decides about preemption, and an ordinary
//! run costs one comparison.

use alloc::vec::Vec;

use selvedge_core::{Context, NodeId};

use crate::config::Visibility;
use crate::run::{Run, Stage};
use crate::work::Task;
use crate::{AbortReason, Event, Hub, Mode, RoutineId, Timer, Urgency, Value};

impl<V: Value> Hub<V> {
    /// Cuts short or aborts the less urgent routines that stand in the way of this one, which is
    /// about to be admitted. Takes O(r k s) if it is urgent, with r the number of routines, k the
    /// number of devices that it needs and s the most commands of one routine.
    pub(crate) fn preempt(&mut self, id: RoutineId, cx: &mut Context<'_, Self>) {
        let Some(urgent) = self.urgent(id) else {
            return;
        };
        let others = self.below(urgent.urgency());
        let in_way = |other| {
            let run = self.runs.get(&other)?;
            Some((other, self.in_way(other, run.at, urgent)?))
        };
        let others: Vec<(RoutineId, NodeId)> = others.filter_map(in_way).collect();
        for (other, device) in others {
            self.push_aside(other, device, Some(id), cx);
        }
    }

    /// Aborts at once the less urgent runs before an urgent queued one.
    pub(crate) fn preempt_series(&mut self, id: RoutineId, cx: &mut Context<'_, Self>) {
        let Some(urgent) = self.urgent(id) else {
            return;
        };
        if !matches!(urgent.terms.mode(), Mode::Queued { .. }) {
            return;
        }
        let key = urgent.terms.key();
        let is_former = |other: &RoutineId| {
            let run = self.runs.get(other);
            run.is_some_and(|run| run.terms.key() == key)
        };
        let others: Vec<RoutineId> = self.below(urgent.urgency()).filter(is_former).collect();
        for other in others {
            if let Some(device) = self.runs.get(&other).and_then(|it| Some(it.step()?.device)) {
                self.abort_for(other, device, Some(id), cx);
            }
        }
    }

    fn urgent(&self, id: RoutineId) -> Option<&Run<V>> {
        let run = self.runs.get(&id)?;
        let is_urgent = run.urgency() > Urgency::default() && !self.rules.waits_behind_hold();
        is_urgent.then_some(run)
    }

    /// The routines that may be preempted with this urgency. Committed ones never are, and an
    /// aborted one only has a command in flight.
    fn below(&self, urgency: Urgency) -> impl Iterator<Item = RoutineId> {
        let is_below =
            move |it: &(&RoutineId, &Run<V>)| it.1.urgency() < urgency && !it.1.is_over();
        self.runs.iter().filter(is_below).map(|it| *it.0)
    }

    pub(crate) fn in_the_way_of_hand(&self, device: NodeId, urgency: Urgency) -> Vec<RoutineId> {
        let needs = |id: &RoutineId| {
            let run = self.runs.get(id);
            run.is_some_and(|run| run.still_needs(device))
        };
        self.below(urgency).filter(needs).collect()
    }

    /// The device on which this routine, if it goes on with that command, stands in the way of an
    /// urgent one: it still needs the device, or keeps it, or changed it and may be undone though
    /// the urgent one asks for its state. If one routine runs at a time, each one that has begun
    /// does.
    fn in_way(&self, id: RoutineId, from: u16, urgent: &Run<V>) -> Option<NodeId> {
        let run = self.runs.get(&id)?;
        let at = usize::from(from);
        let mut devices = urgent.devices.iter().copied();
        let visibility = self.config.visibility;
        let is_alone = matches!(
            visibility,
            Visibility::GlobalStrict | Visibility::StrongGlobalStrict
        );
        if is_alone && run.is_active() {
            let shared = devices.find(|it| run.routine.needs(*it, at));
            return shared.or_else(|| Some(run.step()?.device));
        }
        let releases = visibility == Visibility::Eventual && self.config.post_leases;
        let asks = |device| {
            let left = urgent.routine.steps.iter().skip(usize::from(urgent.at));
            let mut asked = left.filter_map(|it| it.condition.as_ref());
            asked.any(|it| it.asks(device))
        };
        devices.find(|&device| {
            if !urgent.still_needs(device) {
                return false;
            }
            if run.routine.needs(device, at) {
                return true;
            }
            let entry = self.devices.get(&device).and_then(|it| it.entry(id));
            entry.is_some_and(|it| !it.released && !releases || asks(device))
        })
    }

    /// A routine makes room: its hold ends early, if it may and that is enough; else it is aborted.
    pub(crate) fn push_aside(
        &mut self,
        id: RoutineId,
        device: NodeId,
        by: Option<RoutineId>,
        cx: &mut Context<'_, Self>,
    ) {
        match self.cuttable(id, device, by) {
            Some(at) => {
                cx.disarm(Timer::Hold(at));
                cx.event(Event::CutShort {
                    routine: id,
                    device: at,
                    by,
                });
                self.on_hold_over(at, cx);
                // Before devices are restored: it may be finished now, and then the routine for
                // which it made room may set them.
                self.work.hurry(Task::Queue);
                self.work.hurry(Task::Routine(id));
            }
            None => self.abort_for(id, device, by, cx),
        }
    }

    fn abort_for(
        &mut self,
        id: RoutineId,
        device: NodeId,
        by: Option<RoutineId>,
        cx: &mut Context<'_, Self>,
    ) {
        let step = self.runs.get(&id).and_then(|it| it.blame(device));
        self.abort(id, AbortReason::Preempted { by, device, step }, cx);
    }

    /// The device on which a routine holds, if the hold may end early and the routine does not
    /// stand in the way of the urgent one then.
    fn cuttable(&self, id: RoutineId, device: NodeId, by: Option<RoutineId>) -> Option<NodeId> {
        let run = self.runs.get(&id)?;
        let step = run.step().filter(|it| it.preemptible)?;
        let at = run.busy.filter(|at| *at == step.device)?;
        let is_held = self.devices.get(&at)?.held == Some(id) && run.stage == Stage::Running;
        let next = run.at.saturating_add(1);
        let is_last = usize::from(next) == run.routine.steps.len();
        let stays = match by.map(|it| self.runs.get(&it)) {
            Some(urgent) => urgent.is_none_or(|it| self.in_way(id, next, it).is_some()),
            None => run.routine.needs(device, next.into()),
        };
        (is_held && (is_last || !stays)).then_some(at)
    }
}
