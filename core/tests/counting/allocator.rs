//! An allocator that counts the requests of each thread.

#![allow(unsafe_code, reason = "an allocator that counts has to be one")]
#![allow(dead_code, reason = "each user needs a part of it")]

use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use std::alloc::System;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
    /// Bytes that were allocated and not freed.
    static HELD: Cell<i64> = const { Cell::new(0) };
    /// The largest number of bytes held since the last reset.
    static PEAK: Cell<i64> = const { Cell::new(0) };
    static COUNTS: Cell<bool> = const { Cell::new(false) };
}

struct Counting;

/// Freeing memory is not allocating: a driver does so after a large step.
fn note(size: usize, given_back: usize) {
    if COUNTS.with(Cell::get) && size > given_back {
        COUNT.with(|count| count.set(count.get() + 1));
    }
    hold(size as i64 - given_back as i64);
}

fn hold(bytes: i64) {
    let held = HELD.with(|held| {
        held.set(held.get() + bytes);
        held.get()
    });
    PEAK.with(|peak| peak.set(peak.get().max(held)));
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

/// The number of allocations in `call`.
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

/// The largest number of bytes that this thread held while `call` ran, beyond the bytes held
/// before.
pub(crate) fn peak<R>(call: impl FnOnce() -> R) -> (R, usize) {
    let before = held();
    PEAK.with(|peak| peak.set(before));
    let result = call();
    let peak = PEAK.with(Cell::get) - before;
    (result, usize::try_from(peak).unwrap_or_default())
}
