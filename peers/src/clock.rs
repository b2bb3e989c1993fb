//! What measuring takes, which is taken off.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::network::Counted;

/// The time that measuring itself takes.
pub(crate) fn cost() -> Duration {
    const TIMES: u32 = 1_000_000;
    // As around each call: two readings of the clock, one after the other.
    let mut sum = Duration::ZERO;
    for _ in 0..TIMES {
        let begin = Instant::now();
        sum += begin.elapsed();
    }
    black_box(sum) / TIMES
}

/// The time in the nodes' own code without two readings of the clock a call.
pub(crate) fn without(cost: Duration, counted: &Counted) -> Duration {
    let entered = u32::try_from(counted.entered).unwrap_or(u32::MAX);
    counted.busy.saturating_sub(cost * entered)
}
