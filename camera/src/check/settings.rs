//! Settings that the other scenarios leave at their simplest value: lists in parts, more than one
//! copy of a lost message, requests that are repeated at two paces, and patience.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_sim::check::{Bounds, Scenario};

use super::{Setup, holds};
use crate::Command::{self, Enter, Exit};

const STAY: &[Command] = &[Enter];
const VISIT: &[Command] = &[Enter, Exit];
const TWICE: &[Command] = &[Enter, Exit, Enter, Exit];

const CALM: Bounds = Setup::CALM;
const LOSS: Bounds = Bounds { drops: 1, ..CALM };
/// Three nodes learn of each other from the fourth, which names two of them to the third. The fourth
/// is in every quorum, so a bound of 3 is enough. A node that enters stays inside.
fn parts() -> Setup {
    Setup {
        lists: &[&[4], &[4], &[4], &[1, 2, 3]],
        max_lives: 3,
        narrow: true,
        progress: false,
        ..Setup::full(4).visits(&[STAY, STAY, STAY])
    }
}

/// Lost messages are sent again in two copies.
fn copies(nodes: u64) -> Setup {
    Setup {
        copies: 2,
        resends: 2,
        bounds: LOSS,
        ..Setup::full(nodes)
    }
}

/// Four nodes in a line: only neighbours know each other.
fn line() -> Setup {
    Setup {
        lists: &[&[2], &[1, 3], &[2, 4], &[3]],
        max_lives: 4,
        slow: true,
        ..Setup::full(4)
    }
}

/// Node 2 dies between two nodes that want to enter: each adopts the other, which is not on its list,
/// asks it without an answer, and gives it up. A node that enters stays inside.
fn patience() -> Setup {
    Setup {
        lists: &[&[2], &[1, 3], &[2]],
        max_lives: 4,
        slow: true,
        patience: 1,
        ends: &[2],
        bounds: Bounds {
            crashes: 1,
            drops: 2,
            ..CALM
        },
        progress: false,
        ..Setup::full(3).visits(&[STAY, &[], STAY])
    }
}

/// The scenarios under this crate's rules.
pub(super) fn sound() -> Vec<Scenario> {
    vec![
        holds("lists in parts", 3_418, parts()),
        holds(
            "lists in parts, duplicate",
            75_698,
            Setup {
                bounds: Bounds {
                    duplicates: 1,
                    ..CALM
                },
                ..parts()
            },
        ),
        holds(
            "lists in parts, loss",
            30_356,
            Setup {
                bounds: LOSS,
                ..parts()
            },
        ),
        holds(
            "2 nodes, loss, 2 copies",
            10_861,
            copies(2).visits(&[TWICE, VISIT]),
        ),
        holds(
            "2 nodes, loss and duplicate, 2 copies",
            100_188,
            Setup {
                bounds: Bounds {
                    duplicates: 1,
                    ..LOSS
                },
                ..copies(2).visits(&[TWICE, VISIT])
            },
        ),
        holds(
            "3 nodes, loss, 2 copies",
            10_006,
            copies(3).visits(&[VISIT, VISIT]),
        ),
        holds(
            "slow path, loss, asked again at two paces",
            8_215,
            Setup {
                copies: 2,
                resends: 2,
                bounds: LOSS,
                ..line().visits(&[TWICE])
            },
        ),
        holds(
            "slow path, patience with the node below a dead one",
            139_107,
            patience(),
        ),
    ]
}

/// Larger scenarios of this kind, for `--deep`.
pub(super) fn deep() -> Vec<Scenario> {
    vec![
        holds(
            "lists in parts, and one leaves",
            779_706,
            parts().visits(&[STAY, VISIT, STAY]),
        ),
        holds(
            "slow path, 2 roots, loss, asked again at two paces",
            240_896,
            Setup {
                lists: &[&[3], &[3], &[1, 2]],
                max_lives: 4,
                slow: true,
                resends: 2,
                bounds: LOSS,
                ..Setup::full(3).visits(&[VISIT, VISIT])
            },
        ),
    ]
}
