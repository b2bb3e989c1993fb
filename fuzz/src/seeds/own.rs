//! Lists of operations on a lock of three nodes.

use super::Seed;

/// A step through all bytes that meets each operation and each node: it is odd, so all 256 come.
const STEPS: [u8; 4] = [1, 37, 101, 171];

pub(super) fn operation_seeds() -> Vec<Seed> {
    let seed = |step: u8| Seed {
        target: "own_operations",
        name: format!("step-{step}"),
        bytes: (0..=u8::MAX).map(|at| at.wrapping_mul(step)).collect(),
    };
    STEPS.into_iter().map(seed).collect()
}
