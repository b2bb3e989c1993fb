//! Runs one machine for a host.

use alloc::vec::Vec;

use crate::timers::Timers;
use crate::{Choose, Context, Effect, Input, Machine, Outbox, Span, Time};

/// The owner of a machine, its outbox and its timers. A host gives inputs to the driver, and never to
/// the machine.
///
/// A host has three duties:
/// 1. on a message, a membership change or a command, call [`step`](Self::step);
/// 2. when [`deadline`](Self::deadline) has come, call [`expire`](Self::expire);
/// 3. carry out the effects that both hand over, in order.
///
/// A host of a [`Durable`](crate::durable::Durable) machine passes them to a
/// [`Barrier`](crate::durable::Barrier) instead, and carries out the effects that the barrier
/// releases.
///
/// Time never steps back: a `now` that lies before an earlier one counts as the earlier one. Steps
/// allocate nothing once the outbox and the timers have grown to their working sizes. When a rare,
/// much larger step has grown the outbox, the next step frees that memory.
#[derive(Debug)]
pub struct Driver<M: Machine> {
    machine: M,
    outbox: Outbox<M>,
    timers: Timers<M::Timer>,
    now: Time,
    refused_ticks: u64,
    #[cfg(debug_assertions)]
    steps: u64,
    /// The forbidden effect of a step that was refused.
    #[cfg(debug_assertions)]
    flaw: Option<&'static str>,
}

impl<M: Machine> Driver<M> {
    /// Creates a driver for `machine`, with no timer armed.
    #[must_use]
    pub const fn new(machine: M) -> Self {
        Self {
            machine,
            outbox: Outbox::new(),
            timers: Timers::new(),
            now: Time::ZERO,
            refused_ticks: 0,
            #[cfg(debug_assertions)]
            steps: 0,
            #[cfg(debug_assertions)]
            flaw: None,
        }
    }

    /// Takes one step and hands its effects to `carry_out`, in order.
    ///
    /// # Errors
    /// When the machine refuses the input. Then nothing changed and there are no effects; debug
    /// builds check that.
    pub fn step<C: Choose>(
        &mut self,
        now: Time,
        choices: &mut C,
        input: Input<M>,
        mut carry_out: impl FnMut(Effect<M>),
    ) -> Result<(), M::Reject> {
        self.take(now, choices, input, &mut carry_out)
    }

    /// Takes one step and adds its effects to `effects`, in order. For a host whose handling of an
    /// effect needs all of the host, driver included.
    ///
    /// # Errors
    /// See [`step`](Self::step).
    pub fn step_into<C: Choose>(
        &mut self,
        now: Time,
        choices: &mut C,
        input: Input<M>,
        effects: &mut Vec<Effect<M>>,
    ) -> Result<(), M::Reject> {
        self.take(now, choices, input, &mut |effect| effects.push(effect))
    }

    /// Takes one step through one of the machine's own methods, as in
    /// `driver.with(now, rng, |camera, cx| camera.enter(cx), send)`.
    ///
    /// # Errors
    /// When the method refuses. Then nothing changed and there are no effects; debug builds check
    /// that in the first 16 steps and in each seventh one.
    pub fn with<C: Choose, T, E>(
        &mut self,
        now: Time,
        choices: &mut C,
        call: impl FnOnce(&mut M, &mut Context<'_, M>) -> Result<T, E>,
        mut carry_out: impl FnMut(Effect<M>),
    ) -> Result<T, E> {
        let outcome = self.call(now, choices, call, &mut carry_out);
        #[cfg(debug_assertions)]
        if let Some(flaw) = self.flaw.take() {
            // The error may have no text.
            let why = core::any::type_name::<E>();
            debug_assert!(false, "a refused call {flaw}: it was refused with a {why}");
        }
        outcome
    }

    /// Ticks every timer that is due, earliest first, and hands the effects to `carry_out`.
    /// Returns how many ticked.
    ///
    /// A timer that is armed again during this call waits for the next call even when it is due
    /// already, so that a call always ends. A tick that the machine refuses is counted, see
    /// [`refused_ticks`](Self::refused_ticks).
    pub fn expire<C: Choose>(
        &mut self,
        now: Time,
        choices: &mut C,
        mut carry_out: impl FnMut(Effect<M>),
    ) -> usize {
        self.now = self.now.max(now);
        let horizon = self.timers.horizon();
        let mut ticked = 0;
        while let Some(timer) = self.timers.pop_due(self.now, horizon) {
            ticked += 1;
            let tick = Input::Tick(timer);
            if (self.take(self.now, choices, tick, &mut carry_out)).is_err() {
                self.refused_ticks += 1;
            }
        }
        ticked
    }

    /// Ticks every timer that is due, as [`expire`](Self::expire), and adds the effects to `effects`.
    pub fn expire_into<C: Choose>(
        &mut self,
        now: Time,
        choices: &mut C,
        effects: &mut Vec<Effect<M>>,
    ) -> usize {
        self.expire(now, choices, |effect| effects.push(effect))
    }

    /// The time at which the next timer is due; `None` when none is armed.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        self.timers.earliest()
    }

    /// The time from `now` until the next timer is due.
    #[must_use]
    pub fn wait(&self, now: Time) -> Option<Span> {
        self.deadline().map(|at| at.since(now))
    }

    /// The machine, to read from.
    #[must_use]
    pub const fn machine(&self) -> &M {
        &self.machine
    }

    /// The armed timers with their due times, by tag.
    pub fn timers(&self) -> impl Iterator<Item = (M::Timer, Time)> + '_ {
        self.timers.tags()
    }

    /// The number of ticks that the machine has refused: 0 unless it has a defect.
    #[must_use]
    pub const fn refused_ticks(&self) -> u64 {
        self.refused_ticks
    }

    #[cfg(test)]
    pub(crate) const fn outbox_capacity(&self) -> usize {
        self.outbox.capacity()
    }

    /// Returns the machine, for instance to save it. The timers are lost.
    #[must_use]
    pub fn into_machine(self) -> M {
        self.machine
    }

    /// Takes one step. Not generic in `carry_out`, so that a device has this code once for `step`
    /// and `expire`.
    fn take(
        &mut self,
        now: Time,
        choices: &mut dyn Choose,
        input: Input<M>,
        carry_out: &mut dyn FnMut(Effect<M>),
    ) -> Result<(), M::Reject> {
        #[cfg(debug_assertions)]
        let asked = input.clone();
        let handle = |machine: &mut M, cx: &mut Context<'_, M>| machine.handle(input, cx);
        let outcome = self.call(now, choices, handle, carry_out);
        #[cfg(debug_assertions)]
        if let (Some(flaw), Err(reject)) = (self.flaw.take(), &outcome) {
            debug_assert!(
                false,
                "a refused input {flaw}: {asked:?} was refused with {reject:?}"
            );
        }
        outcome
    }

    fn call<T, E>(
        &mut self,
        now: Time,
        choices: &mut dyn Choose,
        call: impl FnOnce(&mut M, &mut Context<'_, M>) -> Result<T, E>,
        carry_out: &mut dyn FnMut(Effect<M>),
    ) -> Result<T, E> {
        self.now = self.now.max(now);
        #[cfg(debug_assertions)]
        let before = self.is_compared().then(|| self.machine.clone());
        let mut cx = Context::new(self.now, choices, &mut self.outbox);
        let outcome = call(&mut self.machine, &mut cx);
        if outcome.is_err() {
            #[cfg(debug_assertions)]
            if before.is_some_and(|before| self.machine != before) {
                self.flaw = Some("changed the machine");
            } else if !self.outbox.is_empty() {
                self.flaw = Some("had effects");
            }
            self.outbox.clear();
            return outcome;
        }
        for &(timer, after) in self.outbox.timers() {
            match after {
                Some(after) => self.timers.arm(timer, self.now + after),
                None => self.timers.disarm(timer),
            }
        }
        self.outbox.clear_timers();
        let used = self.outbox.effects().len();
        for effect in self.outbox.drain_effects() {
            carry_out(effect);
        }
        self.outbox.give_back(used);
        outcome
    }

    /// Returns true if a refusal of the next step is compared with a copy of the machine.
    #[cfg(debug_assertions)]
    const fn is_compared(&mut self) -> bool {
        self.steps += 1;
        // The copies would take half of the time of long histories, and many of these meet each refusal
        // often. By a count, so that the same inputs give the same result.
        self.steps <= 16 || self.steps.is_multiple_of(7)
    }
}
