//! Runs of one routine, and the effect of a new one on the others.
//!
//! A run that is superseded, or preempted, is aborted like any other: it leaves the order, and its
//! changes must be undone, so the order needs no new argument. One rule is new. If the next run on
//! a device replaced the aborted one, and its next action there is a command, the device is not
//! restored first. That is sound because a rollback's target is computed when it is sent, and
//! compared again when it is done (erratum H8): the command makes the state right, or it fails and
//! the rollback is still due. A condition needs the state before, so a run with a condition waits
//! for the rollback. If the new run inherited places and states instead, two routines would become
//! one of which half can be undone.

use alloc::vec::Vec;

use selvedge_core::{Context, NodeId};

use crate::lineage::Owner;
use crate::run::{Run, Stage};
use crate::work::Task;
use crate::{
    AbortReason, Event, Hub, LONGEST_KEY, Mode, Reject, Routine, RoutineId, Terms, Urgency, Value,
};

impl<V: Value> Hub<V> {
    pub(crate) fn submit(
        &mut self,
        routine: Routine<V>,
        terms: Terms,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        self.check_routine(&routine)?;
        let former = self.superseded_by(&terms)?;
        let limit = self.config.routine_limit;
        let room = self.leave_at_most((limit as usize).saturating_sub(1));
        room.map_err(|_| Reject::TooManyRoutines { limit })?;
        self.accept(routine, terms, &former, cx);
        Ok(())
    }

    /// The runs that a new run with these terms supersedes.
    fn superseded_by(&self, terms: &Terms) -> Result<Vec<RoutineId>, Reject> {
        let Some(key) = terms.key() else {
            return Ok(Vec::new());
        };
        let (found, limit) = (key.len(), LONGEST_KEY);
        if found > limit {
            return Err(Reject::KeyTooLong { found, limit });
        }
        let mode = terms.mode();
        if mode == Mode::Parallel {
            return Ok(Vec::new());
        }
        let is_its = |run: &Run<V>| run.stage != Stage::Committed && run.terms.key() == Some(key);
        let runs = self.runs.iter().filter(|it| is_its(it.1));
        let runs: Vec<RoutineId> = runs.map(|it| *it.0).collect();
        let Some(&routine) = runs.first() else {
            return Ok(runs);
        };
        match mode {
            Mode::Parallel => Ok(Vec::new()),
            Mode::Single => Err(Reject::Unfinished { routine }),
            Mode::Restart => Ok(runs),
            Mode::Queued { limit } if runs.len() >= limit.get().into() => {
                Err(Reject::QueueFull { routine, limit })
            }
            Mode::Queued { .. } => Ok(Vec::new()),
        }
    }

    fn accept(
        &mut self,
        routine: Routine<V>,
        terms: Terms,
        former: &[RoutineId],
        cx: &mut Context<'_, Self>,
    ) {
        self.last.0 += 1;
        let id = self.last;
        let mut run = Run::new(routine, terms);
        run.took = !former.is_empty();
        *run.since = cx.now();
        self.runs.insert(id, run);
        cx.event(Event::Accepted(id));
        if !self.rules.keeps_former() {
            for &former in former {
                self.abort(former, AbortReason::Superseded(id), cx);
            }
        }
        self.preempt_series(id, cx);
        if self.held_by(id).is_none() || self.rules.queues_nothing() {
            self.admit(id, cx);
            return;
        }
        if let Some(run) = self.runs.get_mut(&id) {
            run.stage = Stage::Queued;
        }
        self.held.insert(id);
    }

    /// The unfinished routine for which this one is held back: a run of its key, or a held-back
    /// routine that must come before it. Takes O(routines) if it is queued or any is held back,
    /// else O(1).
    pub(crate) fn held_by(&self, id: RoutineId) -> Option<RoutineId> {
        // A run that is held back has no place in the order of any device. With a place behind the
        // run before it, the timeline could put that run behind others, and both would wait for
        // each other. A later routine that sets the same devices is held back too; otherwise the
        // last one would not win. Each waits for lower numbers only, so no cycle is possible.
        let run = self.runs.get(&id)?;
        let key = run.terms.key();
        let is_queued = matches!(run.terms.mode(), Mode::Queued { .. });
        if !is_queued && self.held.is_empty() {
            return None;
        }
        let holds = |other: &Run<V>| {
            let is_former = is_queued && other.terms.key() == key;
            // It is held back, and routines that set the same devices keep their order. A less
            // urgent one is preempted.
            let is_alike = other.stage == Stage::Queued
                && !self.is_weak()
                && other.urgency() >= run.urgency()
                && other.keeps_order_with(run)
                && !self.rules.overtakes_queued();
            other.stage != Stage::Committed && (is_former || is_alike)
        };
        let mut before = self.runs.before(id);
        before.find(|it| holds(it.1)).map(|it| *it.0)
    }

    /// Schedules a check of the held-back routines, because a routine is finished.
    pub(crate) fn look_at_held(&mut self) {
        if !self.held.is_empty() {
            self.work.enqueue(Task::Held);
        }
    }

    /// Admits the routines that are not held back any more, in the order of their submission.
    pub(crate) fn let_in(&mut self, cx: &mut Context<'_, Self>) {
        let held: Vec<RoutineId> = self.held.iter().copied().collect();
        for id in held {
            if self.held_by(id).is_some() {
                continue;
            }
            // A routine that is admitted may preempt another one of the list.
            if !self.held.remove(&id) {
                continue;
            }
            if let Some(run) = self.runs.get_mut(&id) {
                run.stage = Stage::Waiting;
                *run.since = cx.now();
                self.admit(id, cx);
            }
        }
    }

    /// Handles a manual change with an urgency: less urgent routines must not overwrite it.
    pub(crate) fn on_hand(
        &mut self,
        device: NodeId,
        state: V,
        urgency: Urgency,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        if !self.devices.contains(&device) {
            return Err(Reject::UnknownDevice(device));
        }
        let is_placed = self.on_observed(device, state.clone(), cx);
        let others = self.in_the_way_of_hand(device, urgency);
        if others.is_empty() {
            return Ok(());
        }
        if !is_placed
            && !self.is_weak()
            && let Some(it) = self.devices.get_mut(&device)
            && it.late.is_none()
        {
            // Also if a routine had brought it there, or has a command in flight that does.
            it.happen(Owner::Hand, Some(state));
            self.work.unsettled.push(device);
            self.settle(cx);
            self.work.enqueue(Task::Device(device));
        }
        for other in others {
            self.push_aside(other, device, None, cx);
        }
        Ok(())
    }
}
