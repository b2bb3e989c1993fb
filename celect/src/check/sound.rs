//! Scenarios that hold, under this crate's rules.

mod deep;
mod narrow;

use alloc::vec::Vec;

use selvedge_core::{Delta, Member, Ratio, Span};
use selvedge_sim::check::{Bounds, Scenario};

use super::{Leads, Lists, Setup, holds};
use crate::Command::{self, Elect};
use crate::Protocol::{Base, Hybrid, Lean, Optimistic, Preferred};
use crate::{Estimation, Source};
pub(super) use deep::deep;
use narrow::narrow;

/// The second node begins.
const SECOND: &[&[Command]] = &[&[], &[Elect]];
const TWO: &[&[Command]] = &[&[Elect], &[Elect]];

/// Each node suspected another, so that all are unhealthy at one node.
const SUSPECTED: &[(u64, Delta)] = &[
    (1, Delta::Suspected(Member::new(2, 0))),
    (2, Delta::Suspected(Member::new(1, 0))),
    (3, Delta::Suspected(Member::new(1, 0))),
];

/// Node 2 learns of node 3, and no other node does.
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

/// Both others are asked, so that the result is exact.
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

/// A mesh in which one of three lists lacks the lowest node: c allows this, and the measurement finds it.
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

/// A lease that runs out. Any node may lead: renewals are a matter of time.
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
                    notified: SUSPECTED,
                    leads: Leads::One,
                    ..setup
                }
            } else {
                Setup { protocol, ..setup }
            }
        };
        // A streaming node that crashes may leave a leader that is not the lowest.
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
                leads: Leads::Any,
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
                // These few ticks do not repair every loss.
                only: Some(super::Promise::Safety),
                ..measured(MEASURE, 1)
            },
        ),
        holds(
            "3 nodes, the one that is elected measures c",
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
