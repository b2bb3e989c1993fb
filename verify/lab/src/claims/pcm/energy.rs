//! The paper's model of energy (section 5): a node takes power while it is awake, and next to none
//! while it sleeps; a gateway always takes as much.

use selvedge_core::Span;

/// Of an ESP32: volts, and amperes awake and asleep.
const VOLTS: f64 = 3.3;
const AWAKE: f64 = 0.260;
const ASLEEP: f64 = 2.5e-6;
/// Of a Raspberry Pi 3 B, in watts.
pub(super) const GATEWAY: f64 = 2.592_3;

pub(super) const fn seconds(span: Span) -> f64 {
    span.0 as f64 / 1e6
}

/// The energy of nodes that are awake for this time together, and present for this time.
pub(super) fn nodes(awake: Span, present: Span) -> f64 {
    let asleep = seconds(present) - seconds(awake);
    VOLTS * (AWAKE * seconds(awake) + ASLEEP * asleep)
}

/// The energy of gateways.
pub(super) fn gateways(present: Span) -> f64 {
    GATEWAY * seconds(present)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0.858 W awake, 8.25 uW asleep.
    #[test]
    fn a_node_that_sleeps_takes_next_to_nothing() {
        let one = nodes(Span::secs(1), Span::secs(10));
        assert!((one - (0.858 + 9.0 * 8.25e-6)).abs() < 1e-9, "{one}");
        assert!((gateways(Span::millis(500)) - 1.296_15).abs() < 1e-9);
    }
}
