//! The commands of a routine under its leader.
//!
//! The group decides each step's outcome before the next command is given, and that a condition holds before
//! its own command is given. The paper replicates the stage alone (erratum G7): two leaders that read a device
//! at two moments could differ on whether a command was to be given, and a report could name it as passed over
//! when it was done. That costs a round for each step, and one more for a step with a condition. A repeated
//! request for a step has the same number, so the cluster answers from its decision.

use selvedge_core::{NodeId, Span};
use selvedge_routine::Clause;

use super::machine::{At, Out, RoutineLeader, Task};
use super::{RoutineState, RoutineTimer, StepOutcome, Update};
use crate::effect::Effect;
use crate::message::{Claim, Outcome, Request, Status};

impl RoutineLeader {
    pub(super) fn begin_step(&mut self, state: &RoutineState, out: &mut Out) {
        let At::Step {
            step, is_cleared, ..
        } = self.at
        else {
            return;
        };
        let definition = state.definition();
        let Some(present) = definition.step(step) else {
            debug_assert!(false, "the last step ends the run");
            return;
        };
        let is_open = present.condition.is_some() && !is_cleared;
        self.task = if is_open { Task::Reads } else { Task::Acts };
        out.push(Effect::Arm {
            timer: RoutineTimer::Command,
            after: definition.timeout(present),
        });
        self.ask(state, out);
    }

    /// The command waits until its device wakes: the timeout begins anew, so that it does not count that time.
    pub(super) fn on_asleep(
        &mut self,
        state: &RoutineState,
        claim: Claim,
        step: u16,
        out: &mut Out,
    ) {
        if self.task != Task::Acts || !self.is_at(claim, step) {
            return; // Late.
        }
        if state.is_cut() {
            // The next run does not wait for a command that is out of date.
            return self.end_step(state, StepOutcome::Unknown, out);
        }
        let definition = state.definition();
        let present = definition.step(step.saturating_sub(self.relabelled));
        out.extend(present.map(|present| Effect::Arm {
            timer: RoutineTimer::Command,
            after: definition.timeout(present),
        }));
    }

    pub(super) fn ask_step(&self, state: &RoutineState, out: &mut Out) {
        let At::Step { claim, step, .. } = self.at else {
            return;
        };
        let Some(present) = state.definition().step(step) else {
            return;
        };
        let condition = present.condition.as_ref().and_then(Clause::single);
        match condition.filter(|_| self.task == Task::Reads) {
            Some(condition) => {
                let device = condition.device;
                let read = Request::Read {
                    device,
                    claim,
                    step,
                };
                self.ask_of(device, read, out);
            }
            None => {
                let act = Request::Act {
                    device: present.device,
                    claim,
                    step: step.saturating_add(self.relabelled),
                    value: present.value.clone(),
                    delivery: state.definition().delivery(step),
                };
                self.ask_of(present.device, act, out);
            }
        }
    }

    /// The state of a device that a condition asks for.
    pub(super) fn on_read(
        &mut self,
        state: &RoutineState,
        device: NodeId,
        claim: Claim,
        step: u16,
        status: &Status,
        out: &mut Out,
    ) {
        if self.task != Task::Reads || !self.is_at(claim, step) {
            return; // Late.
        }
        let present = state.definition().step(step);
        let condition = present.and_then(|it| it.condition.as_ref()?.single());
        let Some(condition) = condition.filter(|it| it.device == device) else {
            return; // A peer that lies.
        };
        let value = status.value.as_ref().filter(|_| status.is_up);
        match value.map(|it| condition.holds(it)) {
            Some(true) => {
                let instance = claim.instance;
                self.propose(state, Update::Cleared { instance, step }, out);
            }
            Some(false) => self.end_step(state, StepOutcome::Skipped, out),
            None => self.end_step(state, StepOutcome::Failed, out),
        }
    }

    /// The outcome of a command.
    pub(super) fn on_acted(
        &mut self,
        state: &RoutineState,
        claim: Claim,
        step: u16,
        outcome: Outcome,
        out: &mut Out,
    ) {
        if self.task != Task::Acts || !self.is_at(claim, step) {
            return; // Late.
        }
        let outcome = match outcome {
            Outcome::Done => StepOutcome::Done,
            Outcome::Failed => StepOutcome::Failed,
            Outcome::Unknown => StepOutcome::Unknown,
        };
        let present = state.definition().step(step);
        let hold = present.map_or(Span::ZERO, |it| it.hold);
        if outcome != StepOutcome::Done || hold == Span::ZERO || state.is_cut() {
            return self.end_step(state, outcome, out);
        }
        out.push(Effect::Disarm(RoutineTimer::Command));
        self.hold(hold, state.held(), self.config.resend, out);
    }

    /// Waits, and has the time decided after intervals that double, so that the next leader continues from
    /// there. Otherwise no run would end where leaders change more often than that.
    fn hold(&mut self, hold: Span, held: Span, next: Span, out: &mut Out) {
        let left = Span(hold.0.saturating_sub(held.0).max(1));
        let next = next.min(left);
        self.task = Task::Holds { held, next };
        out.push(Effect::Arm {
            timer: RoutineTimer::Hold,
            after: next,
        });
    }

    pub(super) fn on_held(&mut self, state: &RoutineState, out: &mut Out) {
        let (Task::Holds { held, next }, At::Step { claim, step, .. }) = (&self.task, self.at)
        else {
            return; // A stray tick.
        };
        let held = Span(held.0.saturating_add(next.0));
        let next = Span(next.0.saturating_mul(2));
        let hold = state
            .definition()
            .step(step)
            .map_or(Span::ZERO, |it| it.hold);
        if held >= hold {
            return self.end_step(state, StepOutcome::Done, out);
        }
        let instance = claim.instance;
        let update = Update::Held {
            instance,
            step,
            held,
        };
        self.propose(state, update, out);
        self.hold(hold, held, next, out);
    }

    /// A device's group does not know the device. It may have given a command before the device was removed.
    pub(super) fn on_lacking(&mut self, state: &RoutineState, device: NodeId, out: &mut Out) {
        let At::Step { step, .. } = self.at else {
            return;
        };
        let present = state.definition().step(step);
        let asked = present.and_then(|it| match (&self.task, it.condition.as_ref()) {
            (Task::Reads, Some(condition)) => condition.single().map(|it| it.device),
            (Task::Acts, _) => Some(it.device),
            _ => None,
        });
        if asked == Some(device) {
            self.on_timeout(state, out);
        }
    }

    /// No answer came in time, or none will. A command may have been done; a question has no effect.
    pub(super) fn on_timeout(&mut self, state: &RoutineState, out: &mut Out) {
        match self.task {
            Task::Acts => self.end_step(state, StepOutcome::Unknown, out),
            Task::Reads => self.end_step(state, StepOutcome::Failed, out),
            Task::Rest
            | Task::Holds { .. }
            | Task::BacksOff { .. }
            | Task::Acquires { .. }
            | Task::Releases { .. } => {} // A stray tick.
        }
    }

    fn is_at(&self, claim: Claim, step: u16) -> bool {
        match self.at {
            At::Step {
                claim: present,
                step: at,
                ..
            } => step == at.saturating_add(self.relabelled) && self.rules.is_of(claim, present),
            At::Rest | At::Acquiring(_) | At::Releasing(_) => false,
        }
    }

    pub(super) fn end_step(&mut self, state: &RoutineState, outcome: StepOutcome, out: &mut Out) {
        let At::Step {
            claim,
            step,
            is_cleared,
        } = self.at
        else {
            return;
        };
        let instance = claim.instance;
        if self.rules.progress_in_memory() {
            return self.remember(state, instance, outcome, out);
        }
        let update = Update::StepDone {
            instance,
            step,
            is_cleared,
            outcome,
        };
        self.propose(state, update, out);
    }

    /// The published rule: the group learns of the steps when all are over.
    fn remember(
        &mut self,
        state: &RoutineState,
        instance: u64,
        outcome: StepOutcome,
        out: &mut Out,
    ) {
        self.ahead.push(outcome);
        if self.ahead.len() < state.definition().routine.steps.len() {
            return self.follow(state, out);
        }
        for (step, &outcome) in (0..).zip(&core::mem::take(&mut self.ahead)) {
            out.push(Effect::Propose(Update::StepDone {
                instance,
                step,
                is_cleared: false,
                outcome,
            }));
        }
    }
}
