//! The progress of time.

use selvedge_core::{Context, Delta, Input, Machine, Span, Time};

use super::{Action, CallError, Loss, Network, Pending, What};

/// A step of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// Its time.
    pub at: Time,
    /// The event.
    pub happened: Happened,
}

/// The event of a [`Step`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Happened {
    /// A message arrived at a node; its machine may have rejected it.
    Delivered {
        /// The receiver.
        node: usize,
    },
    /// A message reached a node that could not receive it.
    Lost {
        /// The receiver.
        node: usize,
        /// Why.
        why: Loss,
    },
    /// Timers of a node ticked.
    Ticked {
        /// The node.
        node: usize,
        /// Their number: 0 when the timer was disarmed in the meantime.
        timers: usize,
    },
    /// A node's storage completed a write.
    Stored {
        /// The node.
        node: usize,
        /// The number of facts stored: 0 when a crash ended the write.
        facts: usize,
    },
    /// A scheduled action was carried out.
    Acted {
        /// True if it succeeded; the node may have been down, or its machine may have rejected it.
        succeeded: bool,
    },
}

impl<M: Machine> Network<M> {
    /// The time of the next event; `None` when the network is idle.
    #[must_use]
    pub fn next_at(&self) -> Option<Time> {
        match (self.queue.next_at(), self.alarms.next_at()) {
            (Some(queue), Some(alarm)) => Some(queue.min(alarm)),
            (queue, alarm) => queue.or(alarm),
        }
    }

    /// Runs the next event, and returns it; `None` when the network is idle.
    ///
    /// Takes O(log (nodes + messages in flight)) and the machine's own time, plus a search of
    /// O(nodes + edges) when a node sends for the first time since the routes changed.
    pub fn step(&mut self) -> Option<Step> {
        let queue_at = self.queue.next_at();
        let alarm_first = self
            .alarms
            .next_at()
            .is_some_and(|alarm| queue_at.is_none_or(|queue| alarm < queue));
        let happened = if alarm_first {
            let (at, node) = self.alarms.pop()?;
            self.now = self.now.max(at);
            self.expire(node)
        } else {
            let (at, pending) = self.queue.pop()?;
            self.now = self.now.max(at);
            match pending {
                Pending::Envelope(payload) => self.arrive(payload),
                Pending::Action(action) => self.act(action),
                Pending::Write { node, write } => self.written(node, write),
            }
        };
        Some(Step {
            at: self.now,
            happened,
        })
    }

    /// Runs everything up to and including `until`, which then is the time. Returns the number of
    /// steps. A past time changes nothing.
    pub fn run_until(&mut self, until: Time) -> u64 {
        let mut steps = 0;
        while self.next_at().is_some_and(|at| at <= until) && self.step().is_some() {
            steps += 1;
        }
        self.now = self.now.max(until);
        steps
    }

    /// Runs for this time. Returns the number of steps.
    pub fn run_for(&mut self, span: Span) -> u64 {
        self.run_until(self.now + span)
    }

    /// Runs until `met` holds, which is called first and after every step, but not beyond `limit`.
    /// Returns true if it held. If not, `limit` is the time then.
    pub fn run_until_met(&mut self, limit: Time, mut met: impl FnMut(&Self) -> bool) -> bool {
        loop {
            if met(self) {
                return true;
            }
            if self.next_at().is_none_or(|at| at > limit) || self.step().is_none() {
                self.now = self.now.max(limit);
                return false;
            }
        }
    }

    /// Passes a command of the application to `node`, now.
    ///
    /// # Errors
    /// When the node does not exist or is down, or its machine rejects the command.
    pub fn command(
        &mut self,
        node: usize,
        command: M::Command,
    ) -> Result<(), CallError<M::Reject>> {
        self.reach(node)?;
        self.tracer
            .line(self.now, Some(node), What::Command(&command));
        self.feed(node, Input::Command(command))
    }

    /// Passes a delta of the membership service to `node`, now.
    ///
    /// # Errors
    /// When the node does not exist or is down, or its machine rejects the input.
    pub fn membership(&mut self, node: usize, delta: Delta) -> Result<(), CallError<M::Reject>> {
        self.reach(node)?;
        self.tracer
            .line(self.now, Some(node), What::Membership(delta));
        self.feed(node, Input::Membership(delta))
    }

    /// Calls one of the machine's own methods at `node`, now, as in
    /// `network.with(2, |camera, cx| camera.enter(cx))`.
    ///
    /// # Errors
    /// When the node does not exist or is down, or the method refuses.
    pub fn with<T, E: core::fmt::Debug>(
        &mut self,
        node: usize,
        call: impl FnOnce(&mut M, &mut Context<'_, M>) -> Result<T, E>,
    ) -> Result<T, CallError<E>> {
        self.reach(node)?;
        self.tracer.line(self.now, Some(node), What::Called);
        let (now, effects) = (self.now, &mut self.effects);
        let nodes = self.nodes.len();
        let Some(slot) = self.nodes.get_mut(node) else {
            return Err(CallError::NoSuchNode { node, nodes });
        };
        let outcome = slot
            .driver
            .with(now, &mut slot.rng, call, |effect| effects.push(effect));
        if outcome.is_err() {
            slot.counters.rejected += 1;
        }
        self.alarms.set(node, slot.alarm(now));
        self.carry(node);
        outcome.map_err(|why| CallError::Refused { node, why })
    }

    /// Schedules `action`. A past time counts as now: the action happens with the next step.
    ///
    /// # Errors
    /// [`NetworkError`](super::NetworkError) when it names a node that was not added yet or is
    /// invalid. An action that fails only at its time, because the node is down or its machine
    /// rejects, is counted in [`Counters::failed_actions`](super::Counters).
    pub fn schedule(&mut self, at: Time, action: Action<M>) -> Result<(), super::NetworkError> {
        self.check_action(&action)?;
        self.queue.push(at.max(self.now), Pending::Action(action));
        Ok(())
    }

    /// Passes an input to a machine that is up; counts and traces a rejection.
    pub(super) fn feed(
        &mut self,
        node: usize,
        input: Input<M>,
    ) -> Result<(), CallError<M::Reject>> {
        let (now, effects) = (self.now, &mut self.effects);
        let nodes = self.nodes.len();
        let Some(slot) = self.nodes.get_mut(node) else {
            return Err(CallError::NoSuchNode { node, nodes });
        };
        let outcome = slot.driver.step_into(now, &mut slot.rng, input, effects);
        if let Err(why) = outcome {
            slot.counters.rejected += 1;
            slot.last_reject = Some(why.clone());
            self.tracer.line(now, Some(node), What::Rejected(&why));
            return Err(CallError::Refused { node, why });
        }
        self.alarms.set(node, slot.alarm(now));
        self.carry(node);
        Ok(())
    }

    fn expire(&mut self, node: usize) -> Happened {
        let (now, effects) = (self.now, &mut self.effects);
        let mut timers = 0;
        if let Some(slot) = self.nodes.get_mut(node) {
            self.tracer.line(now, Some(node), What::Due);
            timers = slot.driver.expire_into(now, &mut slot.rng, effects);
            slot.counters.ticks += timers as u64;
            // A microsecond later at the earliest, or a timer armed with no delay would hold time.
            self.alarms.set(node, slot.alarm(now + Span::micros(1)));
        }
        self.carry(node);
        Happened::Ticked { node, timers }
    }

    fn reach<E: core::fmt::Debug>(&self, node: usize) -> Result<(), CallError<E>> {
        let nodes = self.nodes.len();
        if node >= nodes {
            return Err(CallError::NoSuchNode { node, nodes });
        }
        if !self.radio.is_up(node) {
            return Err(CallError::Down { node });
        }
        Ok(())
    }
}
