//! Counting allocations: the allocator of the protocols' tests, and a way to run a machine.

#![allow(dead_code, unused_imports, reason = "each test uses a part of it")]

mod allocator;

use chacha20::ChaCha8Rng;
use selvedge_core::{Context, Driver, Effect, Input, Machine, Outbox, Time};

pub(crate) use allocator::{allocations, held, peak};

/// A runner of one machine at one moment. In debug builds a `Driver` keeps a copy of the machine to
/// check that a refusal changes nothing, so there the machine runs without a driver.
pub(crate) trait Host<M: Machine> {
    fn new(machine: M) -> Self;
    fn machine(&self) -> &M;
    fn step(&mut self, rng: &mut ChaCha8Rng, input: Input<M>, carry_out: &mut dyn FnMut(Effect<M>));
}

impl<M: Machine> Host<M> for Driver<M>
where
    M::Reject: core::fmt::Debug,
{
    fn new(machine: M) -> Self {
        Self::new(machine)
    }

    fn machine(&self) -> &M {
        self.machine()
    }

    fn step(
        &mut self,
        rng: &mut ChaCha8Rng,
        input: Input<M>,
        carry_out: &mut dyn FnMut(Effect<M>),
    ) {
        self.step(Time::ZERO, rng, input, carry_out).unwrap();
    }
}

pub(crate) struct ByHand<M: Machine> {
    machine: M,
    pub(crate) outbox: Outbox<M>,
}

impl<M: Machine> Host<M> for ByHand<M>
where
    M::Reject: core::fmt::Debug,
{
    fn new(machine: M) -> Self {
        let outbox = Outbox::new();
        Self { machine, outbox }
    }

    fn machine(&self) -> &M {
        &self.machine
    }

    fn step(
        &mut self,
        rng: &mut ChaCha8Rng,
        input: Input<M>,
        carry_out: &mut dyn FnMut(Effect<M>),
    ) {
        let mut cx = Context::new(Time::ZERO, rng, &mut self.outbox);
        self.machine.handle(input, &mut cx).unwrap();
        self.outbox.drain_timers().for_each(drop);
        self.outbox.drain_effects().for_each(carry_out);
    }
}
