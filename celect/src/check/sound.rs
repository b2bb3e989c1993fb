//! What holds, under our rules.

use alloc::vec::Vec;

use selvedge_core::{Delta, Member, Ratio, Span};
use selvedge_sim::check::{Bounds, Scenario};

use super::{Leads, Lists, Setup, holds};
use crate::Command::{self, Elect};
use crate::Protocol::{Base, Hybrid, Lean, Optimistic, Preferred};
use crate::{Estimation, Source};

/// The second node begins.
const SECOND: &[&[Command]] = &[&[], &[Elect]];
const TWO: &[&[Command]] = &[&[Elect], &[Elect]];

/// Each suspected another one, so that all are unhealthy at one node.
const SUSPECTED: &[(u64, Delta)] = &[
    (1, Delta::Suspected(Member::new(2, 0))),
    (2, Delta::Suspected(Member::new(1, 0))),
    (3, Delta::Suspected(Member::new(1, 0))),
];

/// Node 2 hears of node 3, and nobody else does.
const JOINS: &[(u64, Delta)] = &[(2, Delta::Joined(Member::new(3, 0)))];

const fn crashes(crashes: u32) -> Bounds {
    Bounds {
        crashes,
        ..Setup::CALM
    }
}

/// Every list of 4 nodes.
const fn any(protocol: crate::Protocol, c: u16, initiator: u64) -> Setup {
    Setup {
        lists: Lists::Any(initiator),
        protocol,
        ..Setup::full(4, c, 0)
    }
}

/// The lowest asks for lists, the last one elects.
const MEASURE: &[&[Command]] = &[&[Command::Measure], &[], &[Elect]];

/// Both others are asked, so that what is found is exact.
const EXACT: Estimation = Estimation {
    source: Source::Sampling,
    sample: 2,
    at_once: 2,
    period: Span::secs(60),
    pool: 1,
    miss: Ratio::new(1, 10),
    margin: 0,
    floor: 0,
    ceiling: u16::MAX,
    window: 1,
    valid: Span::secs(300),
};

/// One of three lists lacks the lowest, which is what c may be and what is found.
const fn measured(commands: &'static [&'static [Command]], drops: u32) -> Setup {
    Setup {
        lists: Lists::Given(&[&[2, 3], &[1, 3], &[2]]),
        commands,
        retries: 1,
        estimation: Some(EXACT),
        bounds: Bounds {
            drops,
            ticks: Some(3),
            ..Setup::CALM
        },
        ..Setup::full(3, 1, 0)
    }
}

/// Nothing is promised of who leads: renewals are a matter of time.
const fn on_lease_over(ticks: u32) -> Setup {
    Setup {
        commands: SECOND,
        lease: true,
        retries: 1,
        bounds: Bounds {
            ticks: Some(ticks),
            early_ticks: None,
            ..Setup::CALM
        },
        only: Some(super::Promise::Ballots),
        ..Setup::full(2, 0, 0)
    }
}

pub(super) fn quick() -> Vec<Scenario> {
    let three = Setup::full(3, 1, 0);
    let second = Setup {
        commands: SECOND,
        ..three
    };
    let two = Setup {
        commands: TWO,
        ..three
    };
    let lowest_crashes = Setup {
        commands: SECOND,
        ends: &[1],
        bounds: crashes(1),
        ..Setup::full(3, 1, 1)
    };
    let initiator_crashes = Setup {
        ends: &[2],
        ..lowest_crashes
    };
    let mut all = Vec::new();
    for (protocol, name, states) in [
        (Base, "Base", [14, 489, 1_242, 293]),
        (Optimistic, "Optimistic", [30, 2_981, 2_518, 369]),
        (Preferred, "Preferred", [14, 514, 110, 1_739]),
        (Hybrid, "Hybrid", [70, 7_983, 229, 2_963]),
        (Lean, "Lean", [14, 356, 1_242, 293]),
    ] {
        let [one, both, lowest, initiator] = states;
        let with = |setup: Setup| {
            if protocol.prefers() {
                Setup {
                    protocol,
                    xy: (2, 1),
                    told: SUSPECTED,
                    leads: Leads::One,
                    ..setup
                }
            } else {
                Setup { protocol, ..setup }
            }
        };
        // Whoever streams and crashes may leave one that leads, and is not the lowest.
        let initiator_crashes = Setup {
            leads: if protocol.streams() || protocol.prefers() {
                Leads::One
            } else {
                Leads::Lowest
            },
            ..with(initiator_crashes)
        };
        let named = |what: &str| alloc::format!("3 nodes, {name}{what}");
        all.push(holds(&named(""), one, with(second)));
        all.push(holds(&named(", two initiators"), both, with(two)));
        all.push(holds(
            &named(", the lowest crashes"),
            lowest,
            with(lowest_crashes),
        ));
        all.push(holds(
            &named(", the initiator crashes"),
            initiator,
            initiator_crashes,
        ));
    }
    all.extend([
        holds(
            "every list of 4 nodes that satisfies c = 1, Base, the highest begins",
            12_490,
            any(Base, 1, 4),
        ),
        holds(
            "every list of 4 nodes that satisfies c = 1, Base, the lowest begins",
            11_761,
            any(Base, 1, 1),
        ),
        holds(
            "every list of 4 nodes that satisfies c = 1, Lean, the highest begins",
            9_498,
            any(Lean, 1, 4),
        ),
        holds(
            "every list of 4 nodes that satisfies c = 2, Lean, the highest begins",
            40_750,
            any(Lean, 2, 4),
        ),
        holds(
            "LEADER over lists that differ, a loss",
            83,
            Setup {
                lists: Lists::Given(&[&[2], &[1, 3], &[1, 2]]),
                commands: SECOND,
                retries: 1,
                bounds: Bounds {
                    drops: 1,
                    ..Setup::CALM
                },
                ..three
            },
        ),
        holds(
            "a lost message, the host's multicast apart",
            77,
            Setup {
                retries: 1,
                bounds: Bounds {
                    drops: 1,
                    ..Setup::CALM
                },
                ..second
            },
        ),
    ]);
    all.extend([
        holds(
            "2 nodes, a leader that restarts",
            7_653,
            Setup {
                commands: SECOND,
                ends: &[1],
                rejoins: true,
                retries: 1,
                leads: Leads::Whoever,
                bounds: Bounds {
                    restarts: 1,
                    ..crashes(1)
                },
                ..Setup::full(2, 0, 1)
            },
        ),
        holds(
            "3 nodes, c is measured while an election runs, a list is lost",
            12_816,
            Setup {
                // So few ticks do not mend every loss.
                only: Some(super::Promise::Safety),
                ..measured(MEASURE, 1)
            },
        ),
        holds(
            "3 nodes, whoever is elected measures c",
            156,
            measured(SECOND, 0),
        ),
        holds(
            "3 nodes, two initiators report to the leader, which tells c",
            21_424,
            Setup {
                estimation: Some(Estimation {
                    source: Source::Feedback,
                    ..EXACT
                }),
                ..measured(TWO, 0)
            },
        ),
        holds(
            "2 nodes, a lease that runs out at any time, three timers",
            61_146,
            on_lease_over(3),
        ),
    ]);
    all.extend(narrow());
    all
}

/// What only narrow settings show.
fn narrow() -> Vec<Scenario> {
    let mut all = unheard();
    all.extend(little_room());
    all
}

/// Nobody is told, and only time mends it.
fn unheard() -> Vec<Scenario> {
    let four = Setup {
        lists: Lists::Given(&[&[], &[], &[1, 2, 4], &[3]]),
        commands: &[&[], &[], &[], &[Elect]],
        ends: &[1, 2],
        early: true,
        witnesses: &[],
        bounds: crashes(2),
        ..Setup::full(4, 1, 0)
    };
    alloc::vec![
        holds(
            "4 nodes, a list names two dead ones whom the initiator never knew",
            128,
            four
        ),
        holds(
            "3 nodes, one that joins later and that the leader does not know",
            205,
            Setup {
                lists: Lists::Given(&[&[2], &[1], &[1, 2]]),
                commands: SECOND,
                deltas: JOINS,
                retries: 1,
                bounds: Bounds {
                    drops: 1,
                    ..Setup::CALM
                },
                only: Some(super::Promise::Liveness),
                ..Setup::full(3, 1, 0)
            }
        ),
        holds(
            "3 nodes, two initiators, one crashes before anybody leads, and nobody is told",
            3_440,
            Setup {
                commands: TWO,
                ends: &[1],
                early: true,
                witnesses: &[],
                patience: true,
                bounds: crashes(1),
                ..Setup::full(3, 1, 1)
            }
        ),
    ]
}

/// Few places on a list, and short frames.
fn little_room() -> Vec<Scenario> {
    alloc::vec![
        holds(
            "3 nodes, each has room for one other, a loss",
            125,
            Setup {
                commands: &[&[], &[], &[Elect]],
                peers: 1,
                retries: 1,
                bounds: Bounds {
                    drops: 1,
                    ..Setup::CALM
                },
                ..Setup::full(3, 1, 0)
            }
        ),
        holds(
            "3 nodes, c is measured by lists in parts of one, a loss and a message twice",
            383,
            Setup {
                // Each short member fits alone.
                frame: 45,
                led_by: Some(1),
                only: Some(super::Promise::Measured),
                bounds: Bounds {
                    drops: 1,
                    duplicates: 1,
                    ..Setup::CALM
                },
                ..measured(&[&[Command::Measure]], 1)
            }
        ),
    ]
}

pub(super) fn deep() -> Vec<Scenario> {
    let mut all = lists();
    all.extend(troubles());
    all
}

/// Two initiators, and what may go wrong meanwhile; leases.
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
                told: SUSPECTED,
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
