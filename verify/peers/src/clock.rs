//! The cost of measuring, which is subtracted.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::network::Counted;

/// The time that measuring itself takes: the least of many means, since other work on the machine
/// would count once for each call of a node, and a contender that sends more has more calls.
pub(crate) fn cost() -> Duration {
    const MEANS: u32 = 100;
    const TIMES: u32 = 10_000;
    let mean = |_| {
        // As around each call: two readings of the clock, one after the other.
        let mut sum = Duration::ZERO;
        for _ in 0..TIMES {
            let begin = Instant::now();
            sum += begin.elapsed();
        }
        black_box(sum) / TIMES
    };
    (0..MEANS).map(mean).min().unwrap_or_default()
}

/// The time in the nodes' own code without two readings of the clock a call.
pub(crate) fn without(cost: Duration, counted: &Counted) -> Duration {
    let entered = u32::try_from(counted.entered).unwrap_or(u32::MAX);
    counted.busy.saturating_sub(cost * entered)
}
