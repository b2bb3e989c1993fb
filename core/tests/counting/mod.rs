//! What counts allocations: the allocator of the protocols' tests, and how they run a machine.

#![allow(unsafe_code, reason = "an allocator that counts has to be one")]
#![allow(dead_code, reason = "each test uses a part of it")]

use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use std::alloc::System;

use chacha20::ChaCha8Rng;
use selvedge_core::{Context, Driver, Effect, Input, Machine, Outbox, Time};

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
    /// Bytes that were asked for and not given back.
    static HELD: Cell<i64> = const { Cell::new(0) };
    static COUNTS: Cell<bool> = const { Cell::new(false) };
}

struct Counting;

/// To give memory back is not to allocate: a driver does so after a large step.
fn note(size: usize, given_back: usize) {
    if COUNTS.with(Cell::get) && size > given_back {
        COUNT.with(|count| count.set(count.get() + 1));
    }
    hold(size as i64 - given_back as i64);
}

fn hold(bytes: i64) {
    HELD.with(|held| held.set(held.get() + bytes));
}

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size(), 0);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        hold(-(layout.size() as i64));
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size, layout.size());
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How often `call` allocated.
pub(crate) fn allocations(call: impl FnOnce()) -> u64 {
    COUNT.with(|count| count.set(0));
    COUNTS.with(|counts| counts.set(true));
    call();
    COUNTS.with(|counts| counts.set(false));
    COUNT.with(Cell::get)
}

/// The bytes that this thread holds.
pub(crate) fn held() -> i64 {
    HELD.with(Cell::get)
}

/// What runs one machine at one moment. In debug builds a `Driver` keeps a copy of the machine to
/// see that a refusal changes nothing, so there the machine is run by hand.
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
