//! The slow path: trees through meshes in which few nodes know each other.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::{Delta, Member};
use selvedge_sim::check::{Bounds, Scenario};

use super::Promise::{Exclusion, Progress};
use super::errata::Case;
use super::{Setup, holds};
use crate::Command::{self, Cancel, Enter, Exit};
use crate::Published::{self, LateCaching, NoQuorum, NoRebuilding, OwnOksAreNotAsked};

const VISIT: &[Command] = &[Enter, Exit];
const TWICE: &[Command] = &[Enter, Exit, Enter, Exit];
const STAY: &[Command] = &[Enter];
const NONE: &[Command] = &[];

const TWO: Member = Member::new(2, 0);
const THREE: Member = Member::new(3, 0);

/// Four nodes in a line: only neighbours know each other.
const LINE: &[&[u64]] = &[&[2], &[1, 3], &[2, 4], &[3]];
const RING: &[&[u64]] = &[&[2, 4], &[1, 3], &[2, 4], &[1, 3]];
/// Nodes 1 and 2 know node 3 only.
const FRIEND: &[&[u64]] = &[&[3], &[3], &[1, 2]];
/// Node 2 stands between nodes 1 and 3.
const BETWEEN: &[&[u64]] = &[&[2], &[1, 3], &[2]];

const CALM: Bounds = Setup::CALM;
const ONE_CRASH: Bounds = Bounds { crashes: 1, ..CALM };

/// A node that knows one other of four needs the slow path.
fn mesh(lists: &'static [&'static [u64]]) -> Setup {
    Setup {
        lists,
        max_lives: 4,
        slow: true,
        ..Setup::full(lists.len() as u64)
    }
}

/// Scenarios of several features and faults together, under this crate's rules.
pub(super) fn sound() -> Vec<Scenario> {
    let friend = mesh(FRIEND).visits(&[VISIT, VISIT]);
    let between = mesh(BETWEEN).visits(&[VISIT, NONE, VISIT]);
    let ends = mesh(LINE).visits(&[VISIT, NONE, NONE, VISIT]);
    // Node 2 knows node 3 only, and membership reports node 2 to no node.
    let out_and_gone = Setup {
        unanswered: &[2],
        bounds: ONE_CRASH,
        ..mesh(&[&[3], &[3], &[1, 4], &[3]]).visits(&[VISIT, VISIT])
    };
    vec![
        holds("slow path, 2 roots", 12_166, friend),
        holds(
            "slow path, 2 roots, one comes again",
            434_577,
            friend.visits(&[TWICE, VISIT]),
        ),
        holds("slow path, from both ends of 4", 82_925, ends),
        holds(
            "slow path and fast path, 4 nodes",
            33_341,
            mesh(&[&[2, 3], &[3], &[2, 4], &[3, 1]]).visits(&[VISIT, VISIT]),
        ),
        holds(
            "slow path, loss",
            57_293,
            Setup {
                bounds: Bounds { drops: 1, ..CALM },
                ..friend
            },
        ),
        holds(
            "slow path, duplicate",
            122_531,
            Setup {
                bounds: Bounds {
                    duplicates: 1,
                    ..CALM
                },
                ..friend
            },
        ),
        holds(
            "slow path, no multicast",
            96_045,
            Setup {
                multicast: false,
                ..ends
            },
        ),
        holds(
            "fast path becomes slow in mid-request",
            93_038,
            Setup {
                deltas: &[(1, Delta::Failed(TWO))],
                ..mesh(&[&[2, 3], &[3], &[1, 2]]).visits(&[VISIT, VISIT])
            },
        ),
        holds(
            "slow path, a root dies",
            32_054,
            Setup {
                ends: &[1],
                bounds: ONE_CRASH,
                ..between
            },
        ),
        holds(
            "slow path, a node that is waited for is out and gone",
            29_923,
            out_and_gone,
        ),
        holds(
            "slow path, a node that is waited for is out and gone, no multicast",
            30_852,
            Setup {
                multicast: false,
                ..out_and_gone
            },
        ),
        holds(
            "slow path, two in a row die",
            2_581,
            Setup {
                ends: &[2, 3],
                bounds: Bounds { crashes: 2, ..CALM },
                ..mesh(LINE).visits(&[VISIT])
            },
        ),
    ]
}

/// Larger scenarios of this kind, for `--deep`.
pub(super) fn deep() -> Vec<Scenario> {
    let friend = mesh(FRIEND).visits(&[VISIT, VISIT]);
    vec![
        // The same number of states as without `keep`, for no permission of a tree is kept.
        holds(
            "slow path, permissions kept",
            434_577,
            Setup {
                keep: true,
                slack: 2,
                ..friend.visits(&[TWICE, VISIT])
            },
        ),
        holds(
            "slow path, inner nodes wrongly declared failed",
            421_196,
            Setup {
                deltas: &[(1, Delta::Failed(TWO)), (2, Delta::Failed(THREE))],
                ..mesh(BETWEEN).visits(&[VISIT, NONE, VISIT])
            },
        ),
        holds(
            "slow path, no multicast, loss",
            118_984,
            Setup {
                multicast: false,
                bounds: Bounds { drops: 1, ..CALM },
                ..friend
            },
        ),
        holds(
            "slow path, cancel",
            10_330_868,
            Setup {
                // A node that is inside when it wants to give up stays there.
                progress: false,
                ..friend.visits(&[&[Enter, Cancel, Enter, Exit], VISIT])
            },
        ),
        holds(
            "slow path, one of a ring of 4 dies",
            2_113_019,
            Setup {
                ends: &[2],
                bounds: ONE_CRASH,
                ..mesh(RING).visits(&[VISIT, NONE, VISIT])
            },
        ),
    ]
}

/// Nodes 1 and 2 are on no list, so they can learn of each other only from node 3.
fn strangers() -> Case {
    Case {
        name: "S1: two roots that nobody lists",
        setup: mesh(&[&[3], &[3], &[4], &[3]]).visits(&[VISIT, VISIT]),
        states: 26_191,
    }
}

fn joined_later() -> Case {
    Case {
        name: "S1: a root joins after another one's tree is built",
        setup: Setup {
            deltas: &[(3, Delta::Joined(TWO))],
            ..mesh(&[&[3], &[3], &[1]]).visits(&[VISIT, VISIT])
        },
        states: 20_232,
    }
}

fn parent_dies() -> Case {
    Case {
        name: "S3: an inner node dies, and its child has said OK to it",
        setup: Setup {
            ends: &[2],
            bounds: ONE_CRASH,
            ..mesh(BETWEEN).visits(&[VISIT, NONE, VISIT])
        },
        states: 62_786,
    }
}

fn dies_while_building() -> Case {
    Case {
        name: "S4: an inner node dies while the tree is built",
        setup: Setup {
            ends: &[2],
            bounds: ONE_CRASH,
            progress: false,
            ..mesh(RING).visits(&[STAY, NONE, NONE, STAY])
        },
        states: 16_154,
    }
}

/// The errata: the published rules break a promise, this crate's rules hold.
pub(super) fn pairs() -> Vec<Scenario> {
    let pairs = [
        strangers().pair(Exclusion, 10),
        joined_later().pair(Exclusion, 8),
        parent_dies().pair(Progress, 11),
        dies_while_building().pair(Exclusion, 14),
    ];
    pairs.into_iter().flatten().collect()
}

/// This crate's rules without one part, each in the scenario that needs the part.
pub(super) fn parts() -> Vec<Scenario> {
    const NEITHER: &[Published] = &[LateCaching, Published::RootIgnoresRivals];
    // Each of the other two keeps the second one out as well.
    const ALONE: &[Published] = &[NoRebuilding, NoQuorum, OwnOksAreNotAsked];
    vec![
        strangers().under(&[Published::RootIgnoresRivals], Exclusion, 10),
        strangers().under(NEITHER, Exclusion, 10),
        parent_dies().under(&[Published::AdoptedStaySilent], Progress, 8),
        dies_while_building().under(ALONE, Exclusion, 15).deep(),
    ]
}
