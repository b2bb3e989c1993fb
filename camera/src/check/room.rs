//! Nodes that cannot remember all others.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::{Delta, Member};
use selvedge_sim::check::{Bounds, Scenario};

use super::Promise::Exclusion;
use super::errata::Case;
use super::{Setup, holds};
use crate::Command::{self, Enter, Exit};
use crate::Published;

const VISIT: &[Command] = &[Enter, Exit];
const TWICE: &[Command] = &[Enter, Exit, Enter, Exit];
const NONE: &[Command] = &[];
const THREE_JOINS: &[(u64, Delta)] = &[(1, Delta::Joined(Member::new(3, 0)))];
const CALM: Bounds = Setup::CALM;

/// Node 1 has room for one other node, and learns of node 2 first.
const NARROW: &[(u64, u32)] = &[(1, 1)];

/// Three nodes that know each other, but for the first.
fn narrow() -> Setup {
    Setup {
        room: NARROW,
        ..Setup::full(3)
    }
}

/// The scenarios under this crate's rules.
pub(super) fn sound() -> Vec<Scenario> {
    let rivals = narrow().visits(&[VISIT, NONE, VISIT]);
    vec![
        holds(
            "room for one, 3 requesters",
            48_033,
            narrow().visits(&[VISIT, VISIT, VISIT]),
        ),
        holds(
            "room for one, loss",
            36_161,
            Setup {
                bounds: Bounds { drops: 1, ..CALM },
                ..rivals.visits(&[TWICE, NONE, VISIT])
            },
        ),
        holds(
            "room for one, permissions kept",
            2_644,
            Setup {
                keep: true,
                slack: 2,
                ..rivals.visits(&[TWICE, NONE, TWICE])
            },
        ),
        holds(
            "room for one, slow path",
            1_275,
            Setup {
                lists: &[&[2], &[1, 3], &[2]],
                max_lives: 4,
                slow: true,
                ..rivals
            },
        ),
        holds(
            "room for one, and who was there leaves",
            9_165,
            Setup {
                max_lives: 3,
                ends: &[2],
                deltas: THREE_JOINS,
                bounds: Bounds { crashes: 1, ..CALM },
                ..rivals
            },
        ),
        abstained_before().ours(),
    ]
}

/// This crate's rules without one part.
pub(super) fn parts() -> Vec<Scenario> {
    vec![abstained_before().under(&[Published::LateAbstentions], Exclusion, 8)]
}

fn abstained_before() -> Case {
    Case {
        name: "A1: a node that had no room to say OK is inside when its abstention comes again",
        setup: Setup {
            bounds: Bounds {
                duplicates: 1,
                ..CALM
            },
            ..narrow().visits(&[VISIT, NONE, VISIT])
        },
        states: 6_494,
    }
}
