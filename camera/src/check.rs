//! The promises as properties, and the scenarios that check them.
//!
//! One list, [`scenarios`], is run by this crate's tests, by `selvedge check`, and by programs that
//! compose Camera with other machines. Each scenario explores every order of messages, ticks,
//! losses, crashes, restarts and deltas within its bounds. Where the thesis' rule breaks a promise,
//! the scenario comes twice under one name: with the published rules, which must break a promise,
//! and with this crate's rules, which must hold.
//!
//! Timeouts are longer than any delivery in all of them, and OKs are refreshed only if the
//! scenario names it.

mod errata;
pub mod operations;
mod pairs;
mod room;
mod sections;
mod settings;
mod setup;
mod slow;

use alloc::vec::Vec;

use selvedge_core::{Delta, Member};
use selvedge_sim::check::{Bounds, Scenario, breaks, holds};

pub use setup::{Promise, Setup, Watch};

use crate::Command::{Cancel, Enter, Exit, GiveBack};

/// All scenarios: first this crate's rules, which must hold, then rules that must break.
#[must_use]
pub fn scenarios() -> Vec<Scenario> {
    let mut all = sound();
    all.extend(slow::sound());
    all.extend(room::sound());
    all.extend(settings::sound());
    all.extend(pairs::sound());
    let deep = [deep(), slow::deep(), settings::deep(), pairs::deep()];
    all.extend(deep.into_iter().flatten().map(Scenario::deep));
    all.extend(sections::scenarios());
    all.extend(errata::pairs());
    all.extend(slow::pairs());
    all.extend(errata::parts());
    all.extend(slow::parts());
    all.extend(room::parts());
    all
}

/// Larger scenarios of all kinds, for `--deep`.
fn deep() -> Vec<Scenario> {
    const VISIT: &[crate::Command] = &[Enter, Exit];
    const TWICE: &[crate::Command] = &[Enter, Exit, Enter, Exit];
    const FALSE: &[(u64, Delta)] = &[
        (1, Delta::Failed(Member::new(2, 0))),
        (2, Delta::Failed(Member::new(1, 0))),
        (3, Delta::Failed(Member::new(1, 0))),
        (3, Delta::Failed(Member::new(2, 0))),
        (1, Delta::Refuted(Member::new(2, 0))),
    ];
    const JOINS: &[(u64, Delta)] = &[
        (1, Delta::Joined(Member::new(2, 0))),
        (2, Delta::Joined(Member::new(1, 0))),
        (3, Delta::Failed(Member::new(1, 0))),
    ];
    let (three, calm) = (Setup::full(3), Setup::CALM);
    let one_crash = Bounds { crashes: 1, ..calm };
    alloc::vec![
        holds(
            "3 nodes, 3 requesters, a false suspicion",
            1_796_607,
            Setup {
                deltas: FALSE,
                bounds: Bounds {
                    deltas: Some(1),
                    ..calm
                },
                ..three.visits(&[VISIT, VISIT, VISIT])
            },
        ),
        holds(
            "3 requesters that enter with a quorum",
            10_194_694,
            Setup {
                eager: true,
                ..three.visits(&[VISIT, VISIT, VISIT])
            },
        ),
        holds(
            "friends, joins, loss and a false suspicion",
            4_637_370,
            Setup {
                lists: &[&[3], &[3], &[1, 2]],
                deltas: JOINS,
                bounds: Bounds { drops: 1, ..calm },
                ..three.visits(&[TWICE, VISIT])
            },
        ),
        holds(
            "4 nodes in a ring, quorums",
            1_893_703,
            Setup {
                lists: &[&[2, 4], &[1, 3], &[2, 4], &[1, 3]],
                max_lives: 4,
                ..Setup::full(4).visits(&[VISIT, VISIT, VISIT])
            },
        ),
        holds(
            "5 nodes, requesters that know 3 each, crashes",
            529_747,
            Setup {
                lists: &[&[3, 4], &[4, 5], &[1], &[1, 2], &[2]],
                max_lives: 5,
                ends: &[2, 4],
                bounds: one_crash,
                ..Setup::full(5).visits(&[VISIT, VISIT])
            },
        ),
        holds(
            "3 nodes, 3 requesters, crash and loss",
            1_756_643,
            Setup {
                ends: &[1],
                bounds: Bounds {
                    drops: 1,
                    ..one_crash
                },
                ..three.visits(&[VISIT, VISIT, VISIT])
            },
        ),
        holds(
            "3 nodes, permissions kept, crash and slack",
            1_469_610,
            Setup {
                keep: true,
                slack: 2,
                ends: &[1],
                bounds: one_crash,
                ..three.visits(&[TWICE, TWICE, VISIT])
            },
        ),
        holds(
            "3 nodes, permissions kept, false suspicions",
            2_666_825,
            Setup {
                keep: true,
                slack: 2,
                deltas: FALSE,
                bounds: Bounds {
                    deltas: Some(2),
                    ..calm
                },
                ..three.visits(&[TWICE, VISIT, VISIT])
            },
        ),
        holds(
            "3 nodes, the holder is passed over",
            2_501_068,
            Setup {
                takeover: true,
                deltas: FALSE,
                bounds: Bounds {
                    deltas: Some(2),
                    ..calm
                },
                ..three.visits(&[TWICE, VISIT])
            },
        ),
    ]
}

/// Scenarios of several features and faults together, under this crate's rules.
fn sound() -> Vec<Scenario> {
    const VISIT: &[crate::Command] = &[Enter, Exit];
    const TWICE: &[crate::Command] = &[Enter, Exit, Enter, Exit];
    const GIVE_UP: &[crate::Command] = &[Enter, Cancel, Enter, Exit];
    const GIVE_BACK: &[crate::Command] = &[Enter, Exit, GiveBack, Enter, Exit];
    const FALSE: &[(u64, Delta)] = &[(1, Delta::Failed(Member::new(2, 0)))];
    let two = Setup::full(2);
    let three = Setup::full(3);
    let calm = Setup::CALM;
    alloc::vec![
        holds("2 nodes, 2 visits", 6_802, two.visits(&[TWICE, TWICE])),
        holds("3 nodes, 2 requesters", 770, three.visits(&[VISIT, VISIT])),
        holds(
            "3 nodes, 3 requesters",
            132_992,
            three.visits(&[VISIT, VISIT, VISIT])
        ),
        holds(
            "2 nodes, loss and duplicate",
            18_237,
            Setup {
                bounds: Bounds {
                    drops: 1,
                    duplicates: 1,
                    ..calm
                },
                ..two.visits(&[TWICE, VISIT])
            },
        ),
        holds(
            "2 nodes, loss, OKs refreshed",
            5_399,
            Setup {
                bounds: Bounds { drops: 1, ..calm },
                refresh: true,
                ..two.visits(&[TWICE, VISIT])
            },
        ),
        holds(
            "2 nodes, cancel and loss",
            5_736,
            Setup {
                bounds: Bounds { drops: 1, ..calm },
                // A node that is inside when it wants to give up stays there.
                progress: false,
                ..two.visits(&[GIVE_UP, VISIT])
            },
        ),
        holds(
            "2 nodes, permissions kept, loss and duplicate",
            3_428,
            Setup {
                bounds: Bounds {
                    drops: 1,
                    duplicates: 1,
                    ..calm
                },
                keep: true,
                slack: 2,
                ..two.visits(&[TWICE, VISIT])
            },
        ),
        holds(
            "2 nodes, permissions kept and given back, loss",
            3_407,
            Setup {
                bounds: Bounds { drops: 1, ..calm },
                keep: true,
                slack: 2,
                refresh: true,
                // A node that is inside when it is to give back stays there.
                progress: false,
                ..two.visits(&[GIVE_BACK, VISIT])
            },
        ),
        holds(
            "3 nodes that do not know each other, permissions kept",
            387,
            Setup {
                keep: true,
                slack: 1,
                lists: &[&[3], &[3], &[]],
                ..three.visits(&[TWICE, VISIT])
            },
        ),
        holds(
            "3 nodes that enter with a quorum, one restarts",
            142_944,
            Setup {
                eager: true,
                max_lives: 4,
                bounds: Bounds {
                    crashes: 1,
                    restarts: 1,
                    ..calm
                },
                ends: &[3],
                ..three.visits(&[VISIT, VISIT])
            },
        ),
        holds(
            "3 nodes that enter with a quorum, permissions kept, loss",
            19_975,
            Setup {
                eager: true,
                keep: true,
                slack: 2,
                bounds: Bounds { drops: 1, ..calm },
                ..three.visits(&[TWICE, VISIT])
            },
        ),
        holds(
            "permissions kept, a quorum, a false failure between exit and entry",
            77_434,
            Setup {
                eager: true,
                keep: true,
                slack: 2,
                deltas: FALSE,
                bounds: Bounds {
                    drops: 1,
                    deltas: Some(1),
                    ..calm
                },
                ..three.visits(&[TWICE, VISIT])
            },
        ),
        holds(
            "4 nodes in a ring that enter with a quorum",
            1_682,
            Setup {
                lists: &[&[2, 4], &[1, 3], &[2, 4], &[1, 3]],
                max_lives: 4,
                eager: true,
                ..Setup::full(4).visits(&[VISIT, VISIT])
            },
        ),
        holds(
            "crash of a requester that is confirmed dead",
            2_618,
            Setup {
                bounds: Bounds { crashes: 1, ..calm },
                ends: &[1],
                ..three.visits(&[VISIT, VISIT])
            },
        ),
        holds(
            "crash and comeback with memory lost",
            63_917,
            Setup {
                max_lives: 3,
                bounds: Bounds {
                    crashes: 1,
                    restarts: 1,
                    ..calm
                },
                ends: &[1, 2],
                ..three.visits(&[VISIT, VISIT])
            },
        ),
    ]
}
