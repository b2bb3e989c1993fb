//! Scenarios of one gateway in which this crate's rules hold.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_sim::check::{Bounds, Scenario};

use super::holds;
use super::party::Ask;
use super::setup::{Offload, Promise, Setup, Sight};

const PLAIN: Setup = Setup::PLAIN;

pub(super) fn quick() -> Vec<Scenario> {
    vec![
        holds("a task", 4_695, PLAIN),
        holds(
            "a task, a loss",
            21_479,
            Setup {
                bounds: Setup::faults(1, 0),
                ..PLAIN
            },
        ),
        holds(
            "a follower that lies",
            13_415,
            Setup {
                followers: &[2, 1, 1],
                bounds: Setup::faults(1, 0),
                ..PLAIN
            },
        ),
        holds(
            "three followers, three values",
            2_267,
            Setup {
                followers: &[1, 2, 3],
                sees: &[Sight::NoMajority],
                ..PLAIN
            },
        ),
        holds(
            "a follower that is gone",
            13_302,
            Setup {
                offload: Offload::Never,
                bounds: Bounds {
                    crashes: 1,
                    ..PLAIN.bounds
                },
                sees: &[Sight::Value, Sight::SecondTerm],
                ..PLAIN
            },
        ),
    ]
}

pub(super) fn deep() -> Vec<Scenario> {
    vec![
        holds(
            "a task, a copy",
            54_269,
            Setup {
                bounds: Setup::faults(0, 1),
                ..PLAIN
            },
        ),
        holds(
            "a task that is cancelled",
            42_754,
            Setup {
                asks: &[Ask::Submit, Ask::Cancel],
                sees: &[Sight::Value, Sight::Cancelled],
                ..PLAIN
            },
        ),
        holds(
            "a follower that is taken for gone",
            123_007,
            Setup {
                followers: &[1, 2, 2],
                offload: Offload::Never,
                suspects: &[2],
                promises: &[
                    Promise::OneAnswer,
                    Promise::Received,
                    Promise::Backed,
                    Promise::Voted,
                    Promise::OneOrchestrator,
                    Promise::OneUnit,
                    Promise::AppendOnly,
                ],
                ..PLAIN
            },
        ),
        holds(
            "a task, a loss, a copy",
            219_313,
            Setup {
                bounds: Setup::faults(1, 1),
                ..PLAIN
            },
        ),
        holds(
            "a follower that begins again",
            254_727,
            Setup {
                bounds: AGAIN,
                sees: &[Sight::Value, Sight::SecondTerm],
                ..PLAIN
            },
        ),
        holds(
            "a follower that begins again, a loss",
            777_708,
            Setup {
                offload: Offload::Never,
                bounds: Bounds { drops: 1, ..AGAIN },
                promises: &[
                    Promise::OneAnswer,
                    Promise::Received,
                    Promise::Voted,
                    Promise::Right,
                ],
                ..PLAIN
            },
        ),
    ]
}

const AGAIN: Bounds = Bounds {
    crashes: 1,
    restarts: 1,
    ..PLAIN.bounds
};
