//! Scenarios of several gateways that elect a manager and decide, while they lose messages, take each
//! other for failed, crash and restart.
//!
//! They check the replacement of the paper's election and of its copies of tables (errata Q1 to Q3).
//! Few timers expire, and only while no message is in flight, so every state is explored.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_sim::check::{Bounds, Scenario};

use super::holds;
use super::party::{Ask, LIAR};
use super::setup::{Memory, Offload, Promise, Setup, Sight};
use crate::gateway::Voting;

const ALL: &[Promise] = &[
    Promise::ElectionSafety,
    Promise::OneOrchestrator,
    Promise::Tracking,
    Promise::OneUnit,
    Promise::AppendOnly,
    Promise::TableMatching,
    Promise::OneAnswer,
    Promise::Received,
    Promise::Voted,
    Promise::Right,
];

/// Two gateways without a follower: a task waits until its client cancels it.
const TWO: Setup = Setup {
    gateways: 2,
    followers: &[],
    asks: &[Ask::Submit],
    offload: Offload::Never,
    bounds: ticks(1),
    promises: ALL,
    sees: &[Sight::Decided],
    ..Setup::PLAIN
};

const fn ticks(count: u32) -> Bounds {
    Bounds {
        ticks: Some(count),
        ..Setup::PLAIN.bounds
    }
}

const fn lossy(drops: u32, duplicates: u32, count: u32) -> Bounds {
    Bounds {
        drops,
        duplicates,
        ..ticks(count)
    }
}

const fn crash(count: u32) -> Bounds {
    Bounds {
        crashes: 1,
        restarts: 1,
        ..ticks(count)
    }
}

/// Gateway 2 may take gateway 1, which manages, for failed, and then manages itself.
const MISSED: Setup = Setup {
    misses: &[(1, 0)],
    ticks_at: &[1],
    sees: &[Sight::Decided, Sight::SecondManager],
    ..TWO
};

const FOLLOWED: Setup = Setup {
    followers: &[1, 1, 1],
    bounds: ticks(0),
    sees: &[Sight::Value],
    ..TWO
};

/// Gateway 1, which manages, crashes, and gateway 2 is notified.
const GONE: Setup = Setup {
    gateways: 3,
    misses: &[(1, 0)],
    misses_rightly: true,
    crashes: &[0],
    bounds: Bounds {
        crashes: 1,
        ..ticks(0)
    },
    sees: &[Sight::Decided, Sight::SecondManager],
    ..TWO
};

pub(super) fn quick() -> Vec<Scenario> {
    vec![
        holds(
            "two gateways, a loss",
            488,
            Setup {
                bounds: lossy(1, 0, 1),
                ..TWO
            },
        ),
        holds(
            "two gateways, a copy",
            3_056,
            Setup {
                bounds: lossy(0, 1, 1),
                ..TWO
            },
        ),
        holds("two gateways, one misses the other", 11_677, MISSED),
        holds(
            "two gateways, one begins again",
            10_654,
            Setup {
                bounds: crash(1),
                crashes: &[0, 1],
                sees: &[Sight::Decided, Sight::ManagesAgain],
                ..TWO
            },
        ),
        holds(
            "three gateways, a loss",
            2_770,
            Setup {
                gateways: 3,
                bounds: lossy(1, 0, 0),
                ..TWO
            },
        ),
        holds("two gateways, three followers", 3_928, FOLLOWED),
        holds("three gateways, the one that manages is gone", 6_186, GONE),
    ]
}

pub(super) fn deep() -> Vec<Scenario> {
    let counted = holds(
        "a follower that lies, votes counted, a loss",
        49_761,
        Setup {
            followers: &[LIAR, 1, 1],
            counts_votes: true,
            bounds: Setup::faults(1, 0),
            ..Setup::PLAIN
        },
    );
    let all = two().into_iter().chain(three());
    all.chain([counted]).collect()
}

fn two() -> Vec<Scenario> {
    vec![
        holds(
            "two gateways, one misses the other, a loss",
            30_671,
            Setup {
                bounds: lossy(1, 0, 1),
                ..MISSED
            },
        ),
        holds(
            "two gateways, one begins again and is missed",
            301_997,
            Setup {
                bounds: crash(1),
                crashes: &[0],
                ..MISSED
            },
        ),
        holds(
            "two gateways, a follower moves",
            112_959,
            Setup {
                followers: &[1],
                moves: 1,
                bounds: ticks(1),
                ..FOLLOWED
            },
        ),
        holds(
            "two gateways, three followers, a loss",
            87_172,
            Setup {
                bounds: lossy(1, 0, 1),
                ..FOLLOWED
            },
        ),
        holds(
            "two gateways, a follower that lies, votes counted",
            4_044,
            Setup {
                followers: &[1, LIAR],
                counts_votes: true,
                ..FOLLOWED
            },
        ),
        holds(
            "two gateways, a task that is cancelled",
            5_123,
            Setup {
                asks: &[Ask::Submit, Ask::Cancel],
                sees: &[Sight::Cancelled],
                ..TWO
            },
        ),
    ]
}

fn three() -> Vec<Scenario> {
    vec![
        holds(
            "three gateways, one begins again",
            327_088,
            Setup {
                gateways: 3,
                bounds: crash(0),
                crashes: &[0],
                ..TWO
            },
        ),
        holds(
            "three gateways, one forgets",
            30_159,
            Setup {
                gateways: 3,
                bounds: crash(0),
                crashes: &[0],
                memory: Memory::None,
                ..TWO
            },
        ),
        holds(
            "three gateways, a follower",
            413_480,
            Setup {
                gateways: 3,
                followers: &[1],
                ..FOLLOWED
            },
        ),
        holds(
            "three gateways, the one that manages is gone, a loss",
            19_017,
            Setup {
                bounds: Bounds {
                    crashes: 1,
                    ..lossy(1, 0, 0)
                },
                ..GONE
            },
        ),
        holds(
            "three gateways, those that count follow one that is gone",
            170_323,
            Setup {
                voting: Voting::Dynamic,
                misses: &[(0, 2)],
                crashes: &[2],
                sees: &[Sight::Decided, Sight::Configured],
                ..GONE
            },
        ),
    ]
}
