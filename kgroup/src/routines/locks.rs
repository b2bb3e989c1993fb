//! The part of a routine's leader in getting devices and giving them back.

use alloc::collections::BTreeSet;

use selvedge_core::NodeId;

use super::machine::{At, Out, RoutineLeader, Task};
use super::{Locking, RoutineState, RoutineTimer, Update};
use crate::effect::Effect;
use crate::message::{Claim, Patience, Request};

impl RoutineLeader {
    pub(super) fn begin_acquiring(&mut self, state: &RoutineState, claim: Claim, out: &mut Out) {
        let lacking = self.locks.iter().find(|&&it| !self.has_group(it));
        if let Some(&device) = lacking {
            return self.lacks(state, device, out);
        }
        if claim.attempt == 1 {
            return self.acquire(state, out);
        }
        self.task = Task::BacksOff {
            released: BTreeSet::new(),
            is_over: false,
        };
        out.push(Effect::ArmAbout {
            timer: RoutineTimer::Backoff,
            after: self.config.wait_before(claim.attempt),
        });
        self.ask(state, out);
    }

    fn acquire(&mut self, state: &RoutineState, out: &mut Out) {
        let granted = BTreeSet::new();
        self.task = Task::Acquires { granted };
        self.ask(state, out);
    }

    pub(super) fn begin_releasing(&mut self, state: &RoutineState, out: &mut Out) {
        let released = BTreeSet::new();
        self.task = Task::Releases { released };
        self.ask(state, out);
        self.check_released(state, out);
    }

    /// Asks for the first device alone under sequential locking, else for all at once.
    pub(super) fn ask_locks(
        &self,
        state: &RoutineState,
        granted: &BTreeSet<NodeId>,
        out: &mut Out,
    ) {
        let At::Acquiring(claim) = self.at else {
            return;
        };
        let (patience, at_once) = match state.definition().locking {
            Locking::Sequential => (Patience::Queues, 1),
            Locking::Optimistic => (Patience::Leaves, usize::MAX),
        };
        let missing = self.locks.iter().filter(|it| !granted.contains(it));
        for &device in missing.take(at_once) {
            let lock = Request::Lock {
                device,
                claim,
                patience,
                generation: self.generation,
            };
            self.ask_of(device, lock, out);
        }
    }

    pub(super) fn ask_back(&self, released: &BTreeSet<NodeId>, out: &mut Out) {
        let claim = match self.at {
            At::Acquiring(claim) => former(claim),
            At::Releasing(claim) => claim,
            At::Rest | At::Step { .. } => return,
        };
        for &device in self.locks.iter().filter(|it| !released.contains(it)) {
            if self.is_given_back(device) {
                let release = Request::Release {
                    device,
                    claim,
                    generation: self.generation,
                };
                self.ask_of(device, release, out);
            }
        }
    }

    /// Returns true if a device has to be given back, which is so also without a known grant: a
    /// request for it may still be under way (erratum G6).
    fn is_given_back(&self, device: NodeId) -> bool {
        let is_needed = !self.rules.releases_acquired() || self.acquired.contains(&device);
        is_needed && self.has_group(device)
    }

    pub(super) fn on_granted(
        &mut self,
        state: &RoutineState,
        device: NodeId,
        claim: Claim,
        out: &mut Out,
    ) {
        let At::Acquiring(present) = self.at else {
            return; // Late.
        };
        let Task::Acquires { granted } = &mut self.task else {
            return; // An answer to the try before.
        };
        if !self.rules.is_of(claim, present)
            || !self.locks.contains(&device)
            || !granted.insert(device)
        {
            return;
        }
        if granted.len() < self.locks.len() {
            if state.definition().locking == Locking::Sequential {
                self.ask(state, out);
            }
            return;
        }
        let Claim {
            instance, attempt, ..
        } = present;
        self.propose(state, Update::Locked { instance, attempt }, out);
    }

    pub(super) fn on_busy(&mut self, state: &RoutineState, claim: Claim, out: &mut Out) {
        if let At::Acquiring(present) = self.at
            && self.rules.is_of(claim, present)
            && state.definition().locking == Locking::Optimistic
        {
            self.retry(state, present, out);
        }
    }

    /// A claim comes late. A leader that asks for its devices tries again. A leader that got them
    /// goes on asking: a former leader of the cluster sends this when it has not learned of the
    /// lock.
    pub(super) fn on_over(
        &mut self,
        state: &RoutineState,
        device: NodeId,
        claim: Claim,
        out: &mut Out,
    ) {
        if self.at == At::Acquiring(claim) && self.locks.contains(&device) {
            self.retry(state, claim, out);
        }
    }

    fn retry(&mut self, state: &RoutineState, claim: Claim, out: &mut Out) {
        let Claim {
            instance, attempt, ..
        } = claim;
        self.propose(state, Update::Retry { instance, attempt }, out);
    }

    pub(super) fn on_released(
        &mut self,
        state: &RoutineState,
        device: NodeId,
        claim: Claim,
        out: &mut Out,
    ) {
        let expected = match self.at {
            At::Acquiring(claim) => former(claim),
            At::Releasing(claim) => claim,
            At::Rest | At::Step { .. } => return,
        };
        if self.rules.is_of(claim, expected) && self.locks.contains(&device) {
            self.is_back(device);
            self.check_released(state, out);
        }
    }

    /// This device has no group, or its group does not know it: nothing can be locked there, or
    /// given back.
    pub(super) fn lacks(&mut self, state: &RoutineState, device: NodeId, out: &mut Out) {
        if !self.locks.contains(&device) {
            return;
        }
        match (self.at, &self.task) {
            (At::Acquiring(_), Task::BacksOff { .. }) | (At::Releasing(_), _) => {
                self.is_back(device);
                self.check_released(state, out);
            }
            (At::Acquiring(claim), _) => {
                let update = Update::NoDevice {
                    instance: claim.instance,
                    attempt: claim.attempt,
                    device,
                };
                self.propose(state, update, out);
            }
            (At::Step { .. }, _) => self.on_lacking(state, device, out),
            (At::Rest, _) => {}
        }
    }

    fn is_back(&mut self, device: NodeId) {
        if let Task::BacksOff { released, .. } | Task::Releases { released } = &mut self.task {
            released.insert(device);
        }
    }

    fn check_released(&mut self, state: &RoutineState, out: &mut Out) {
        let (Task::BacksOff { released, .. } | Task::Releases { released }) = &self.task else {
            return;
        };
        let is_left = |it: &NodeId| !released.contains(it) && self.is_given_back(*it);
        if self.locks.iter().any(is_left) {
            return;
        }
        match (self.at, &self.task) {
            (At::Acquiring(_), Task::BacksOff { is_over: true, .. }) => self.acquire(state, out),
            (At::Releasing(claim), _) => {
                let instance = claim.instance;
                self.propose(state, Update::Released { instance }, out);
            }
            _ => {} // The backoff is not over.
        }
    }

    pub(super) fn on_backoff(&mut self, state: &RoutineState, out: &mut Out) {
        if let Task::BacksOff { is_over, .. } = &mut self.task {
            *is_over = true;
            self.check_released(state, out);
        }
    }
}

/// The claim of the try before.
const fn former(claim: Claim) -> Claim {
    Claim {
        attempt: claim.attempt.saturating_sub(1),
        ..claim
    }
}
