//! Two would-be leaders among members that take each other for failed, or of which one gets such a
//! report: the decisions, changes or answers of one while the other one stands.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::{Delta, Member};
use selvedge_sim::check::{Bounds, Scenario};

use super::holds;
use super::setup::Ask::{Configure, Propose, ProposeAll, Read, Stand};
use super::setup::Before::{Among, Asked, Notified};
use super::setup::Sight::{AllApplied, Configured, Leaders, Read as Reads, ReadByLease};
use super::setup::{Ask, Setup};

const THREE: &[u64] = &[1, 2, 3];
const ONE_FAILED: Delta = Delta::Failed(Member::new(1, 0));
const TWO_FAILED: Delta = Delta::Failed(Member::new(2, 0));

/// Members 1 and 2 take each other for failed: they exchange little, and 3 decides.
pub(super) const APART: &[(u64, Delta)] = &[(1, TWO_FAILED), (2, ONE_FAILED)];

/// They are apart, and 3 may get a report at any time that 1 failed. Nothing ticks.
const RIVALS: Setup = Setup {
    led_by: Some(1),
    notified: APART,
    deltas: &[(3, ONE_FAILED)],
    bounds: Bounds {
        ticks: Some(0),
        ..Setup::CALM
    },
    ends_within: None,
    most_ballots: Some(2),
    ..Setup::of(THREE, &[])
};

/// Members 1 and 2 both stand, and both propose: with any number of ballots.
const DUEL: Setup = Setup {
    led_by: None,
    first: &[(1, Stand), (2, Stand), (1, Propose(11)), (2, Propose(22))],
    most_ballots: None,
    ..RIVALS
};

/// With a lease a leader is elected first: its lease and those that the others acknowledged run
/// from there.
const LEASE: Setup = Setup {
    lease: true,
    led_by: None,
    first: &[(1, Stand)],
    sees: &[Reads, ReadByLease, AllApplied(1), Leaders(2)],
    ..RIVALS
};

/// Bounds with this number of ticks, some also while messages are in flight.
const fn ticks(ticks: u32, early_ticks: u32) -> Bounds {
    Bounds {
        ticks: Some(ticks),
        early_ticks: Some(early_ticks),
        ..Setup::CALM
    }
}

const A_CRASH: Bounds = Bounds {
    crashes: 1,
    ..ticks(0, 0)
};

pub(super) fn quick() -> Vec<Scenario> {
    let mut all = duels();
    all.extend(reads());
    all.extend(changes());
    all.extend(left_behind());
    all
}

/// Node 3 gets no report, and two timers tick.
const APART_DUEL: Setup = Setup {
    deltas: &[],
    bounds: ticks(2, 0),
    sees: &[AllApplied(1), Leaders(2)],
    ..DUEL
};

fn duels() -> Vec<Scenario> {
    vec![
        holds("a duel: two of 3 members are apart", 4_008, APART_DUEL),
        holds(
            "a duel, a copy",
            69_059,
            Setup {
                bounds: Bounds {
                    duplicates: 1,
                    ..APART_DUEL.bounds
                },
                ..APART_DUEL
            },
        ),
    ]
}

fn reads() -> Vec<Scenario> {
    const READ_AT_ONE: &[&[Ask]] = &[&[Read(1)], &[Propose(22)]];
    let round = Setup {
        sees: &[Reads, AllApplied(1), Leaders(2)],
        ..RIVALS
    };
    vec![
        holds(
            "a read at a leader, another one leads",
            8_013,
            Setup {
                asks: &[&[Read(1)], &[Propose(22), Read(2)]],
                ..round
            },
        ),
        holds(
            "a read at a follower, another one leads",
            32_298,
            Setup {
                asks: &[&[], &[Propose(22)], &[Read(1)]],
                ..round
            },
        ),
        holds(
            "a read at a leader, another one leads, a loss and a copy",
            49_985,
            Setup {
                asks: READ_AT_ONE,
                bounds: Bounds {
                    drops: 1,
                    duplicates: 1,
                    ..ticks(0, 0)
                },
                ..round
            },
        ),
        holds(
            "a read by lease, another one stands",
            89_695,
            Setup {
                asks: READ_AT_ONE,
                bounds: ticks(2, 2),
                ..LEASE
            },
        ),
    ]
}

fn changes() -> Vec<Scenario> {
    let change = Setup {
        first: &[(1, Configure(&[3])), (2, Propose(22))],
        sees: &[Configured(2), Leaders(2), AllApplied(1)],
        ..RIVALS
    };
    vec![
        holds("a change, another one stands before it", 2_632, change),
        holds(
            "a change that the leader stays in, another one stands before it",
            49_935,
            Setup {
                first: &[(1, Configure(&[1, 3])), (2, Propose(22))],
                ..change
            },
        ),
        holds(
            "a change, another one stands before it, the leader crashes",
            12_052,
            Setup {
                ends: &[1],
                bounds: A_CRASH,
                ..change
            },
        ),
    ]
}

/// Leader 1 is cut off with 2, in the middle of two updates. The others decide more than fits into a
/// frame, and go over to 4 alone; then 1 reaches 4, and learns in parts.
const CUT_OFF: Setup = Setup {
    led_by: Some(1),
    before: &[
        Notified(1, Delta::Failed(Member::new(3, 0))),
        Notified(1, Delta::Failed(Member::new(4, 0))),
        Notified(1, Delta::Failed(Member::new(5, 0))),
        Among(&[1, 2]),
        Asked(1, ProposeAll(&[11, 12])),
        Among(&[3, 4, 5]),
        Notified(4, ONE_FAILED),
        Notified(4, TWO_FAILED),
        Notified(5, ONE_FAILED),
        Notified(5, TWO_FAILED),
        Notified(3, ONE_FAILED),
        Notified(3, TWO_FAILED),
        Asked(
            3,
            ProposeAll(&[31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42]),
        ),
        Asked(3, Configure(&[4])),
    ],
    asks: &[&[Propose(13)]],
    deltas: &[(1, Delta::Refuted(Member::new(4, 0)))],
    window: 16,
    frame_budget: 127,
    bounds: ticks(0, 0),
    ends_within: None,
    most_ballots: Some(2),
    sees: &[Configured(2), AllApplied(12)],
    ..Setup::of(&[1, 2, 3, 4, 5], &[])
};

/// Configuration 1 has ended: 1 decided the next one with 2, and goes on with 4 there. 2 and 3 have not
/// learned so, and 2 leads once more.
const ENDED: Setup = Setup {
    nodes: 4,
    led_by: Some(1),
    before: &[
        Among(&[1, 2]),
        Asked(1, Configure(&[1, 3, 4])),
        Among(&[1, 4]),
        Notified(1, Delta::Joined(Member::new(4, 0))),
        Asked(1, Propose(11)),
        Among(&[2, 3]),
        Notified(3, ONE_FAILED),
    ],
    notified: &[(2, ONE_FAILED)],
    asks: &[&[], &[], &[Read(1)]],
    bounds: ticks(0, 0),
    ends_within: None,
    most_ballots: Some(2),
    window: 4,
    sees: &[Configured(2), Leaders(2)],
    ..Setup::of(THREE, &[])
};

fn left_behind() -> Vec<Scenario> {
    vec![holds(
        "a leader is cut off with one of 5 members, and learns in parts",
        3_752,
        CUT_OFF,
    )]
}

pub(super) fn deep() -> Vec<Scenario> {
    vec![
        holds("a read in a configuration that has ended", 227_943, ENDED),
        holds(
            "a duel, the third is told that the first failed",
            173_463,
            Setup {
                bounds: ticks(2, 0),
                sees: &[AllApplied(2), Leaders(2)],
                ..DUEL
            },
        ),
        holds(
            "a duel, a loss",
            240_375,
            Setup {
                bounds: Bounds {
                    drops: 1,
                    ..APART_DUEL.bounds
                },
                ..APART_DUEL
            },
        ),
        holds(
            "a change behind an update, another one stands before it",
            203_647,
            Setup {
                asks: &[&[Propose(11), Configure(&[3])], &[Propose(22)]],
                sees: &[Configured(2), Leaders(2), AllApplied(2)],
                ..RIVALS
            },
        ),
    ]
}
