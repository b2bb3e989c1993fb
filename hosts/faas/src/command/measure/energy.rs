//! The paper's model of energy (section 5): an ESP32 takes power while it is awake, and next to
//! none while it sleeps; a Raspberry Pi 3B as gateway always takes the same power. The figures are
//! the paper's, as in `verify/lab/src/claims/pcm/energy.rs`; no power is measured.

use core::time::Duration;

/// An ESP32: volts, and amperes awake and asleep.
const VOLTS: f64 = 3.3;
const AWAKE: f64 = 0.260;
const ASLEEP: f64 = 2.5e-6;
/// A Raspberry Pi 3B, in watts.
const GATEWAY: f64 = 2.592_3;

/// The energy in joules of a node that is awake for a part of this time.
pub(super) fn node(awake: Duration, all: Duration) -> f64 {
    let asleep = all.saturating_sub(awake);
    VOLTS * (AWAKE * awake.as_secs_f64() + ASLEEP * asleep.as_secs_f64())
}

/// The energy in joules of a gateway.
pub(super) fn gateway(all: Duration) -> f64 {
    GATEWAY * all.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0.858 W awake, 8.25 uW asleep.
    #[test]
    fn a_node_that_sleeps_takes_next_to_nothing() {
        let one = node(Duration::from_secs(1), Duration::from_secs(10));
        assert!((one - (0.858 + 9.0 * 8.25e-6)).abs() < 1e-9, "{one}");
        assert!((gateway(Duration::from_millis(500)) - 1.296_15).abs() < 1e-9);
    }
}
