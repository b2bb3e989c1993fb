//! The promises under this crate's rules, explored to the end.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::{Delta, Member};
use selvedge_sim::check::{Bounds, Scenario};

use super::holds;
use super::setup::Ask::{Configure, HandOver, Propose, Read, Stand};
use super::setup::Sight::{AllApplied, Configured, Installed, Leaders, VotesAgain};
use super::setup::{Memory, Setup, Sight};

const TWO: &[u64] = &[1, 2];
const THREE: &[u64] = &[1, 2, 3];
const FIVE: &[u64] = &[1, 2, 3, 4, 5];
const ONE_FAILED: Delta = Delta::Failed(Member::new(1, 0));

const CALM: Bounds = Setup::CALM;
const A_LOSS: Bounds = Bounds { drops: 1, ..CALM };
const A_COPY: Bounds = Bounds {
    duplicates: 1,
    ..CALM
};
const A_RESTART: Bounds = Bounds {
    crashes: 1,
    restarts: 1,
    ..CALM
};

/// Nothing ticks: for events before any timeout, without a check of progress.
const TICKLESS: Setup = Setup {
    bounds: Bounds {
        ticks: Some(0),
        ..CALM
    },
    ends_within: None,
    most_ballots: Some(2),
    ..Setup::of(THREE, &[])
};

pub(super) fn quick() -> Vec<Scenario> {
    let mut all = elections();
    all.extend(faults());
    all.extend(restarts());
    all.extend(changes());
    all.extend(five());
    all
}

fn elections() -> Vec<Scenario> {
    vec![
        holds(
            "3 members, one proposes",
            927,
            Setup {
                sees: &[AllApplied(1)],
                ..Setup::of(THREE, &[&[Propose(11)]])
            },
        ),
        holds("3 members, two propose", 3_709, both(1)),
        holds(
            "2 members stand, both propose",
            3_383,
            Setup {
                nodes: 2,
                members: TWO,
                first: &[(1, Stand), (2, Stand), (1, Propose(11)), (2, Propose(22))],
                bounds: ticks(1),
                sees: &[AllApplied(2)],
                ..TICKLESS
            },
        ),
        holds(
            "two of 3 members stand",
            113_220,
            Setup {
                first: &[(1, Stand), (2, Stand)],
                most_ballots: Some(1),
                sees: &[Leaders(1)],
                ..TICKLESS
            },
        ),
        holds(
            "the leader hands over",
            7_235,
            Setup {
                led_by: Some(1),
                bounds: ticks(0),
                ends_within: None,
                most_ballots: Some(2),
                sees: &[AllApplied(1), Leaders(2)],
                ..Setup::of(THREE, &[&[Propose(11), HandOver(2)]])
            },
        ),
        holds(
            "a witness",
            3_602,
            Setup {
                witnesses: &[3],
                ..both(1)
            },
        ),
        holds(
            "a read",
            2_093,
            Setup {
                led_by: Some(1),
                bounds: ticks(1),
                ends_within: Some(1),
                sees: &[AllApplied(1), Sight::Read],
                ..Setup::of(THREE, &[&[Propose(11)], &[Read(1)]])
            },
        ),
    ]
}

/// Bounds with this number of ticks.
const fn ticks(count: u32) -> Bounds {
    Bounds {
        ticks: Some(count),
        ..CALM
    }
}

/// A leader, and two proposals; this number of ticks.
const fn both(count: u32) -> Setup {
    Setup {
        led_by: Some(1),
        bounds: ticks(count),
        ends_within: Some(1),
        sees: &[AllApplied(2)],
        ..Setup::of(THREE, &[&[Propose(11)], &[Propose(22)]])
    }
}

fn faults() -> Vec<Scenario> {
    let one = Setup {
        sees: &[AllApplied(1)],
        ..Setup::of(THREE, &[&[Propose(11)]])
    };
    vec![
        holds(
            "a loss",
            2_855,
            Setup {
                bounds: A_LOSS,
                ..one
            },
        ),
        holds(
            "a copy",
            10_188,
            Setup {
                bounds: A_COPY,
                ..one
            },
        ),
        holds(
            "a loss, 2 members, both propose",
            17_168,
            Setup {
                bounds: A_LOSS,
                sees: &[AllApplied(2)],
                ..Setup::of(TWO, &[&[Propose(11)], &[Propose(22)]])
            },
        ),
        holds(
            "the leader crashes for good",
            115_961,
            Setup {
                ends: &[1],
                bounds: Bounds {
                    crashes: 1,
                    ..ticks(1)
                },
                ends_within: None,
                sees: &[AllApplied(2), Leaders(2)],
                ..both(1)
            },
        ),
        holds(
            "the leader is said to have failed, one is told",
            4_202,
            Setup {
                led_by: Some(1),
                deltas: &[(2, ONE_FAILED)],
                ends_within: None,
                most_ballots: Some(2),
                bounds: ticks(0),
                sees: &[AllApplied(1)],
                ..Setup::of(THREE, &[&[Propose(11)]])
            },
        ),
        holds(
            "the leader is said to have failed, all are told",
            31_685,
            Setup {
                led_by: Some(1),
                deltas: &[(2, ONE_FAILED), (3, ONE_FAILED)],
                most_ballots: Some(2),
                bounds: ticks(0),
                ends_within: None,
                sees: &[AllApplied(1), Leaders(2)],
                ..one
            },
        ),
    ]
}

fn restarts() -> Vec<Scenario> {
    vec![
        holds(
            "2 members, a restart with storage",
            35_854,
            Setup {
                ends: &[1],
                memory: Memory::Facts(0),
                bounds: A_RESTART,
                sees: &[AllApplied(1), Leaders(2), VotesAgain],
                ..Setup::of(TWO, &[&[], &[Propose(22)]])
            },
        ),
        holds(
            "2 members, a restart with storage that lags",
            6_019,
            Setup {
                ends: &[2],
                memory: Memory::Facts(1),
                bounds: A_RESTART,
                sees: &[AllApplied(1), VotesAgain],
                ..Setup::of(TWO, &[&[Propose(11)]])
            },
        ),
        holds(
            "3 members, a restart with storage",
            1_489,
            Setup {
                led_by: Some(1),
                first: &[(1, Propose(11))],
                ends: &[2],
                memory: Memory::Facts(0),
                most_ballots: Some(2),
                bounds: Bounds {
                    ticks: Some(0),
                    ..A_RESTART
                },
                ends_within: None,
                sees: &[AllApplied(1), VotesAgain],
                ..Setup::of(THREE, &[])
            },
        ),
        holds(
            "3 members, a witness among them, one that forgot is named anew",
            107_770,
            forgot(&[2]),
        ),
    ]
}

const THREE_AGAIN: Delta = Delta::Joined(Member::new(3, 1));

/// Member 3 has lost its memory, and the leader learns of its new life: it names it again. 2 is a
/// witness or not.
const fn forgot(witnesses: &'static [u64]) -> Setup {
    Setup {
        witnesses,
        led_by: Some(1),
        forgot: &[3],
        notified: &[(1, THREE_AGAIN)],
        most_ballots: Some(1),
        sees: &[Configured(2), VotesAgain],
        ..TICKLESS
    }
}

fn changes() -> Vec<Scenario> {
    vec![
        holds(
            "from one member to another",
            10,
            Setup {
                nodes: 2,
                led_by: Some(1),
                sees: &[AllApplied(1), Configured(2), Installed],
                ..Setup::of(&[1], &[&[Propose(11), Configure(&[2])]])
            },
        ),
        holds(
            "from one member to two others",
            982,
            Setup {
                nodes: 3,
                led_by: Some(1),
                sees: &[AllApplied(1), Configured(2), Installed],
                ..Setup::of(&[1], &[&[Propose(11), Configure(&[2, 3])]])
            },
        ),
    ]
}

/// Five members, of which three are a quorum.
const OF_FIVE: Setup = Setup {
    led_by: Some(1),
    bounds: ticks(0),
    ends_within: None,
    most_ballots: Some(2),
    ..Setup::of(FIVE, &[])
};

/// The leader takes 4 and 5 for failed.
const THREE_OF_FIVE: Setup = Setup {
    notified: &[(1, FOUR_FAILED), (1, FIVE_FAILED)],
    ..OF_FIVE
};

const TWO_FAILED: Delta = Delta::Failed(Member::new(2, 0));
const FOUR_FAILED: Delta = Delta::Failed(Member::new(4, 0));
const FIVE_FAILED: Delta = Delta::Failed(Member::new(5, 0));

/// 1 leads with 3 at most, which leaves it as 4 does: 2 leads with both.
const TWO_LEADS: &[(u64, Delta)] = &[
    (1, TWO_FAILED),
    (1, FOUR_FAILED),
    (1, FIVE_FAILED),
    (2, ONE_FAILED),
    (2, FIVE_FAILED),
    (3, ONE_FAILED),
    (4, ONE_FAILED),
];

fn five() -> Vec<Scenario> {
    vec![
        holds(
            "5 members, two proposals",
            394,
            Setup {
                first: &[(1, Propose(11)), (1, Propose(12))],
                sees: &[AllApplied(2)],
                ..THREE_OF_FIVE
            },
        ),
        holds(
            "5 members, another one leads, both propose",
            5_249,
            Setup {
                notified: TWO_LEADS,
                first: &[(1, Propose(11)), (2, Propose(22))],
                sees: &[AllApplied(1), Leaders(2)],
                ..OF_FIVE
            },
        ),
    ]
}

/// Two proposals at the leader of five members, and one at another: more states than are searched.
pub(super) const FIVE_AT_WORK: Setup = Setup {
    led_by: Some(1),
    bounds: ticks(1),
    ends_within: Some(1),
    ..Setup::of(FIVE, &[&[Propose(11), Propose(12)], &[Propose(22)]])
};

pub(super) fn deep() -> Vec<Scenario> {
    vec![
        holds(
            "5 members, one proposes, a tick",
            163,
            Setup {
                led_by: Some(1),
                bounds: ticks(1),
                ends_within: Some(1),
                sees: &[AllApplied(1)],
                ..Setup::of(FIVE, &[&[Propose(11)]])
            },
        ),
        holds(
            "5 members, two propose at any time",
            246_218,
            Setup {
                asks: &[&[Propose(11), Propose(12)], &[Propose(22)]],
                sees: &[AllApplied(3)],
                ..THREE_OF_FIVE
            },
        ),
        holds(
            "3 members, one that forgot is named anew",
            528_279,
            forgot(&[]),
        ),
    ]
}
