//! Lists of operations on homes of every model.

use super::Seed;

/// The models in the order of the first byte.
const MODELS: [&str; 7] = [
    "timeline",
    "just-in-time",
    "first-come",
    "partitioned",
    "global",
    "strong-global",
    "weak",
];

/// Two short commands that must succeed, to device 0 and then to device 1.
const BOTH: [u8; 9] = [0, 0, 1, 17, 5, 0, 17, 5, 1];

/// Two more, in the opposite order; the first one is long.
const BACK: [u8; 9] = [0, 0, 1, 25, 5, 1, 17, 5, 0];

pub(super) fn operation_seeds() -> Vec<Seed> {
    // An event, and its device: see `operate` of the operations.
    let done = |device: u8| vec![4, device];
    let plays: [(&str, Vec<Vec<u8>>); 7] = [
        ("meet", vec![done(0), done(1), done(1), done(0)]),
        ("refuse", vec![done(0), vec![10, 1], done(1)]),
        ("silence", vec![vec![11, 0, 0], vec![12, 0], done(1)]),
        ("fail", vec![done(0), vec![15, 0, 3], vec![15, 0, 3]]),
        ("cancel", vec![done(0), vec![17, 0, 1], done(1)]),
        ("hand", vec![done(0), vec![18, 0, 5], done(1)]),
        ("restart", vec![vec![19, 0], done(0), vec![19, 0], done(1)]),
    ];
    let mut seeds = Vec::new();
    for (model, name) in (0_u8..).zip(MODELS) {
        // With and without a restart of the hub around each step.
        for (kind, restarts) in [(0, ""), (2, "-restarts")] {
            for (play, operations) in &plays {
                let mut bytes = vec![model, 0, kind, 1];
                bytes.extend(BOTH);
                bytes.extend(BACK);
                bytes.extend(operations.iter().flatten());
                seeds.push(Seed {
                    target: "home_operations",
                    name: format!("{play}-{name}{restarts}"),
                    bytes,
                });
            }
        }
    }
    seeds
}
