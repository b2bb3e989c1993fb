//! A routine's answers to clusters that have begun anew.

use selvedge_core::{Member, NodeId};
use selvedge_groups::GroupId;

use super::machine::{ASKERS_MAX, Out, RoutineLeader};
use super::{RoutineState, Stage};
use crate::devices::RESTS;
use crate::effect::Effect;
use crate::message::Progress;
use crate::{Answer, Claim, Delivery};

/// The node that asks, its cluster, the device, and the number of the question.
pub(super) type Question = (Member, GroupId, NodeId, u64);

impl RoutineState {
    /// The progress of its run, as far as it concerns a device.
    pub(super) fn progress(&self, routine: GroupId, device: NodeId) -> Progress {
        let last = Claim {
            routine,
            instance: self.instance(),
            attempt: RESTS,
        };
        let is_used = self.definition().locks().contains(&device);
        let Some(claim) = self.claim(routine).filter(|_| is_used) else {
            return Progress::Over { claim: last };
        };
        match self.stage() {
            Stage::NotTriggered | Stage::ReleasingLocks { .. } => Progress::Over { claim },
            Stage::AcquiringLocks { .. } => Progress::Acquires { claim },
            Stage::Executing { is_cleared, .. } => {
                let step = self.step().unwrap_or(u16::MAX);
                let is_once = self.definition().delivery(step) == Delivery::AtMostOnce;
                let present = self.definition().step(step);
                let has_condition = present.is_some_and(|it| it.condition.is_some());
                // Before the condition is cleared no cluster was asked.
                let is_given = is_once && (*is_cleared || !has_condition);
                let given = step.saturating_add(is_given.into());
                Progress::Executes { claim, given }
            }
        }
    }
}

impl RoutineLeader {
    /// A cluster's leader asks. It is answered once the state is up to date.
    pub(super) fn on_question(&mut self, question: Question, out: &mut Out) {
        let oldest = self.questions.nth(0).map(|it| *it.0);
        if let Some(oldest) = oldest.filter(|_| self.questions.len() >= ASKERS_MAX) {
            self.questions.remove(&oldest); // It is asked again.
        }
        self.last += 1;
        let inserted = self.questions.insert(self.last, question);
        debug_assert!(inserted.is_ok(), "there is room");
        out.push(Effect::Read(self.last));
    }

    /// No question waits, so their numbers may start from the beginning: for checks; their number of
    /// states is bounded then.
    #[cfg(feature = "check")]
    pub(crate) fn forget_questions(&mut self) {
        self.questions.retain(|_, _| false);
        self.last = 0;
    }

    /// The state is up to date.
    pub fn on_readable(&mut self, state: &RoutineState, read: u64, out: &mut Out) {
        let Some((to, cluster, device, since)) = self.questions.remove(&read) else {
            return; // Another question took its place.
        };
        if !state.is_defined() {
            return; // It is asked again.
        }
        let answer = Answer::Progress {
            cluster,
            device,
            since,
            progress: state.progress(self.routine, device),
            watches: state.observed(device).is_some(),
        };
        out.push(Effect::Answer { to, answer });
    }
}
