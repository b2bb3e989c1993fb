//! Scenarios that need narrow settings.

use alloc::vec::Vec;

use selvedge_sim::check::{Bounds, Scenario};

use super::{JOINS, SECOND, TWO, crashes, measured};
use crate::Command::{self, Elect};
use crate::check::{Lists, Promise, Setup, breaks, holds};

pub(super) fn narrow() -> Vec<Scenario> {
    let mut all = unanswered();
    all.extend(little_room());
    all.extend(returns());
    all
}

/// No node is notified, and only time repairs it.
fn unanswered() -> Vec<Scenario> {
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
            "4 nodes, a list names two dead ones that the initiator never knew",
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
                only: Some(Promise::Liveness),
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

/// A node that was cut off comes back to nodes that have a leader.
fn returns() -> Vec<Scenario> {
    let published = Setup {
        keep_leader: false,
        ..returning(1)
    };
    let lowest = "3 nodes, the lowest comes back";
    alloc::vec![
        holds(lowest, 5_364, returning(1)),
        breaks(lowest, 2, published, &[], Promise::Stays),
        holds("3 nodes, the last comes back", 33_921, returning(3)),
        holds(
            "3 nodes, the lowest comes back, a loss",
            22_340,
            with_a_loss(returning(1))
        ),
        holds(
            "3 nodes, the lowest comes back and elects",
            46_870,
            electing(returning(1))
        ),
    ]
}

/// A setup with a loss, and too few ticks to repair every loss.
pub(super) const fn with_a_loss(setup: Setup) -> Setup {
    Setup {
        bounds: Bounds {
            drops: 1,
            ticks: Some(2),
            ..Setup::CALM
        },
        only: Some(Promise::Stays),
        ..setup
    }
}

pub(super) const fn electing(setup: Setup) -> Setup {
    Setup {
        alone_elects: true,
        ..setup
    }
}

/// Node 2 leads, and the others keep it when this node comes back.
pub(super) const fn returning(alone: u64) -> Setup {
    Setup {
        led_by: Some(2),
        alone: Some(alone),
        keep_leader: true,
        retries: 1,
        patience: true,
        only: Some(Promise::Kept),
        ..Setup::full(3, 0, 0)
    }
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
                only: Some(Promise::Measured),
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
