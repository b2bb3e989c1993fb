//! Scenarios that take longer.

use alloc::vec::Vec;

use selvedge_sim::check::{Bounds, Scenario};

use super::narrow::{electing, returning, with_a_loss};
use super::{SUSPECTED, TWO, any, crashes, on_lease_over};
use crate::Protocol::{Base, Hybrid, Lean, Optimistic, Preferred};
use crate::check::{Leads, Setup, holds};

pub(in crate::check) fn deep() -> Vec<Scenario> {
    let mut all = lists();
    all.extend(troubles());
    all.extend(returns());
    all
}

/// A node that was cut off comes back to nodes that keep their leader.
fn returns() -> Vec<Scenario> {
    let lean = Setup {
        protocol: Lean,
        ..returning(1)
    };
    alloc::vec![
        holds(
            "3 nodes, the last comes back, a loss",
            133_179,
            with_a_loss(returning(3))
        ),
        holds(
            "3 nodes, the last comes back and elects",
            440_269,
            electing(returning(3))
        ),
        holds(
            "3 nodes, the lowest comes back and elects, Lean",
            198_064,
            electing(lean)
        ),
    ]
}

/// Two initiators, with faults; leases.
fn troubles() -> Vec<Scenario> {
    let two = |protocol: crate::Protocol| {
        let setup = Setup {
            protocol,
            commands: TWO,
            f: 1,
            ..Setup::full(3, 1, 0)
        };
        if protocol.prefers() {
            Setup {
                xy: (2, 1),
                notified: SUSPECTED,
                leads: Leads::One,
                ..setup
            }
        } else {
            setup
        }
    };
    let mut all = Vec::new();
    for (name, protocol, ends, states) in [
        (
            "Base, two initiators, the lowest crashes",
            Base,
            1,
            1_040_190,
        ),
        (
            "Base, two initiators, the other one crashes",
            Base,
            2,
            11_747,
        ),
        (
            "Preferred, two initiators, the lowest crashes",
            Preferred,
            1,
            22_791,
        ),
        (
            "Preferred, two initiators, the other one crashes",
            Preferred,
            2,
            108_606,
        ),
        (
            "Hybrid, two initiators, the other one crashes",
            Hybrid,
            2,
            390_118,
        ),
    ] {
        let setup = Setup {
            ends: if ends == 1 { &[1] } else { &[2] },
            bounds: crashes(1),
            ..two(protocol)
        };
        all.push(holds(&alloc::format!("3 nodes, {name}"), states, setup));
    }
    for (name, protocol) in [("Base", Base), ("Lean", Lean)] {
        let setup = Setup {
            bounds: Bounds {
                duplicates: 1,
                ..Setup::CALM
            },
            ..two(protocol)
        };
        let name = alloc::format!("3 nodes, {name}, two initiators, a message comes twice");
        all.push(holds(&name, 27_417, setup));
    }
    let three = Setup {
        nodes: 3,
        ..on_lease_over(1)
    };
    let name = "3 nodes, a lease that runs out at any time, a timer";
    all.push(holds(name, 1_189, three));
    all
}

/// Every list of 4 nodes.
fn lists() -> Vec<Scenario> {
    let healthy = |setup| Setup {
        xy: (2, 1),
        ..setup
    };
    alloc::vec![
        holds(
            "every list of 4 nodes that satisfies c = 1, Preferred, the highest begins",
            12_490,
            healthy(any(Preferred, 1, 4))
        ),
        holds(
            "every list of 4 nodes that satisfies c = 1, Hybrid, the highest begins",
            48_013,
            healthy(any(Hybrid, 1, 4))
        ),
        holds(
            "2 nodes, a lease that runs out at any time, four timers",
            2_113_299,
            on_lease_over(4)
        ),
        holds(
            "every list of 4 nodes that satisfies c = 2, Base, the highest begins",
            90_474,
            any(Base, 2, 4)
        ),
        holds(
            "every list of 4 nodes that satisfies c = 2, Base, the lowest begins",
            77_192,
            any(Base, 2, 1)
        ),
        holds(
            "every list of 4 nodes that satisfies c = 1, Optimistic, the highest begins",
            48_013,
            any(Optimistic, 1, 4)
        ),
        holds(
            "every list of 4 nodes that satisfies c = 1, Base, the lowest crashes",
            113_650,
            Setup {
                f: 1,
                ends: &[1],
                witnesses: &[4],
                bounds: crashes(1),
                ..any(Base, 1, 4)
            }
        ),
        holds(
            "every list of 4 nodes that satisfies c = 1, Lean, the lowest crashes",
            72_158,
            Setup {
                f: 1,
                ends: &[1],
                witnesses: &[4],
                bounds: crashes(1),
                ..any(Lean, 1, 4)
            }
        ),
        holds(
            "every list of 4 nodes that satisfies c = 1, Lean, the initiator crashes",
            947_715,
            Setup {
                f: 1,
                ends: &[4],
                bounds: crashes(1),
                ..any(Lean, 1, 4)
            }
        ),
    ]
}
