//! The promises under this crate's rules, explored to the end.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::{Delta, Member};
use selvedge_sim::check::{Bounds, Scenario};

use super::one::Ask::{Epoch, Propose, Question};
use super::one::Setup;
use super::one::Sight::{self, Applied, Configured, InAgain, Leaders, Left};
use super::past::Before::{self, Asked, Cut, Lost, Notified, Rest, Rounds};
use super::setup::ticks;
use super::{breaks, holds};
use crate::Published;

const FAULTS: Bounds = Bounds {
    drops: 1,
    duplicates: 1,
    ..ticks(2)
};

const ONE_FAILED: Delta = Delta::Failed(Member::new(1, 1));
const TWO_FAILED: Delta = Delta::Failed(Member::new(2, 1));
const THREE_FAILED: Delta = Delta::Failed(Member::new(3, 1));
const THREE_AGAIN: Delta = Delta::Joined(Member::new(3, 2));

/// The group has a leader.
const LED: &[Before] = &[Rest];

/// 3 is no longer in the group, and has left it: 1, 2 and 4 are. As a founder it is notified of
/// that.
const LEFT: &[Before] = &[Rest, Asked(1, Epoch(&[1, 2, 4])), Rest];

pub(super) fn quick() -> Vec<Scenario> {
    let mut all = beginnings();
    all.extend(questions());
    all.extend(failures());
    all.extend(changes());
    all
}

fn beginnings() -> Vec<Scenario> {
    let founded = Setup {
        bounds: ticks(2),
        ends_within: Some(2),
        sees: &[Leaders(1)],
        ..Setup::after(&[])
    };
    vec![
        holds("it is founded", 1_940, founded),
        holds(
            "it is founded, an update",
            115_148,
            Setup {
                asks: &[(2, Propose(22))],
                sees: &[Leaders(1), Applied(1)],
                ..founded
            },
        ),
        holds(
            "it is founded by two of three, a loss",
            2_464,
            Setup {
                down: &[3],
                asks: &[(2, Propose(22))],
                bounds: Bounds {
                    drops: 1,
                    ..ticks(4)
                },
                ends_within: Some(3),
                sees: &[Leaders(1), Applied(1)],
                ..founded
            },
        ),
    ]
}

fn questions() -> Vec<Scenario> {
    let asks = Setup {
        asks: &[(4, Question(1)), (4, Question(2))],
        sees: &[Sight::Asked],
        ..Setup::after(LED)
    };
    vec![
        holds("a node that is in no group asks twice", 502, asks),
        holds(
            "a node that is in no group asks, and the leader has failed",
            163,
            Setup {
                before: &[
                    Rest,
                    Asked(4, Question(0)),
                    Rest,
                    Notified(2, ONE_FAILED),
                    Notified(3, ONE_FAILED),
                    Cut(&[1]),
                    Rest,
                ],
                down: &[1],
                asks: &[(4, Question(1)), (4, Question(2)), (4, Question(3))],
                ..asks
            },
        ),
        holds(
            "a node that left asks twice",
            7,
            Setup {
                before: LEFT,
                asks: &[(3, Question(1)), (3, Question(2))],
                sees: &[Sight::Asked, Left],
                ..asks
            },
        ),
    ]
}

fn failures() -> Vec<Scenario> {
    let suspected = Setup {
        asks: &[(1, Propose(11))],
        deltas: &[(2, ONE_FAILED)],
        bounds: ticks(0),
        ends_within: None,
        sees: &[Applied(1)],
        ..Setup::after(LED)
    };
    vec![
        holds(
            "the leader is said to have failed, one is told",
            4_202,
            suspected,
        ),
        holds(
            "two members take each other for gone",
            6_886,
            Setup {
                before: &[Rest, Notified(1, TWO_FAILED), Notified(2, ONE_FAILED)],
                deltas: &[(3, ONE_FAILED)],
                sees: &[Applied(1), Leaders(2)],
                ..suspected
            },
        ),
        holds(
            "a member that is gone is replaced",
            23_629,
            Setup {
                before: &[Rest, Notified(1, THREE_FAILED)],
                down: &[3],
                asks: &[],
                deltas: &[],
                bounds: ticks(1),
                ticks_at: &[1],
                ends_within: Some(1),
                sees: &[Configured(2)],
                ..suspected
            },
        ),
        holds(
            "a member has begun again",
            7_733,
            Setup {
                before: &[Rest, Before::Again(3), Notified(1, THREE_AGAIN)],
                down: &[4],
                asks: &[],
                deltas: &[],
                bounds: ticks(1),
                ticks_at: &[1],
                ends_within: Some(1),
                sees: &[Configured(2), InAgain(3)],
                ..suspected
            },
        ),
    ]
}

fn changes() -> Vec<Scenario> {
    let epoch = Setup {
        asks: &[(1, Epoch(&[1, 2, 4]))],
        down: &[3],
        ticks_at: &[1],
        bounds: ticks(1),
        sees: &[Configured(2)],
        ..Setup::after(LED)
    };
    let chosen_anew = Setup {
        before: LEFT,
        asks: &[(1, Epoch(&[1, 3, 2])), (1, Propose(11))],
        down: &[4],
        sees: &[Left, Configured(3), InAgain(3), Applied(1)],
        ..epoch
    };
    let a_loss = Bounds {
        drops: 1,
        ..ticks(2)
    };
    vec![
        holds("an epoch", 23_630, epoch),
        holds(
            "the leader fails during an epoch, and another member is down",
            79_178,
            Setup {
                ends: &[1],
                down: &[3],
                bounds: Bounds {
                    crashes: 1,
                    ..ticks(2)
                },
                sees: &[Configured(2), Leaders(2)],
                // Where the former members had not decided, they have no quorum.
                ends_within: None,
                ..epoch
            },
        ),
        holds("a member that left is chosen anew", 2_337, chosen_anew),
        holds(
            "a member that left is chosen anew, a loss",
            33_572,
            Setup {
                bounds: a_loss,
                ends_within: Some(2),
                ..chosen_anew
            },
        ),
        holds(
            "a node that missed a link asks a former member, and others are there",
            989,
            Setup {
                before: MISSED,
                down: &[],
                asks: &[],
                sees: &[Applied(2)],
                ticks_at: &[2],
                bounds: ticks(3),
                // 1 and 2 still take each other for failed.
                ends_within: None,
                ..epoch
            },
        ),
    ]
}

/// Five members, of which two may fail. With four of them there, and more to be done, there are too many
/// states to explore.
fn of_five() -> Vec<Scenario> {
    let two_failed = Setup {
        nodes: 6,
        down: &[4, 5, 6],
        asks: &[(2, Propose(22))],
        ticks_at: &[1],
        bounds: ticks(0),
        ends_within: None,
        sees: &[Applied(1)],
        ..Setup::after(LED)
    };
    vec![
        holds("two of five have failed, an update", 11, two_failed),
        holds(
            "two of five have failed, an update, a loss",
            27_433,
            Setup {
                bounds: Bounds {
                    drops: 1,
                    ..ticks(2)
                },
                ticks_at: &[],
                ..two_failed
            },
        ),
        holds(
            "two of five fail, and one of them leads",
            354,
            Setup {
                before: &[
                    Rest,
                    Notified(2, ONE_FAILED),
                    Notified(3, ONE_FAILED),
                    Notified(4, ONE_FAILED),
                    Cut(&[1, 5]),
                ],
                down: &[1, 5, 6],
                ticks_at: &[2, 3, 4],
                bounds: ticks(1),
                ends_within: Some(1),
                sees: &[Leaders(2), Applied(1)],
                ..two_failed
            },
        ),
    ]
}

pub(super) fn deep() -> Vec<Scenario> {
    let change = Setup {
        bounds: ticks(1),
        sees: &[Configured(2)],
        ..Setup::after(LED)
    };
    let mut all = vec![
        holds(
            "an epoch, a loss",
            84_297,
            Setup {
                asks: &[(1, Epoch(&[1, 2, 4]))],
                down: &[3],
                ticks_at: &[1],
                bounds: Bounds {
                    drops: 1,
                    ..ticks(2)
                },
                ends_within: Some(2),
                ..change
            },
        ),
        holds(
            "a former member is chosen anew while a node asks it that missed a link",
            48_235,
            Setup {
                before: MISSED,
                down: &[],
                asks: &[(1, Epoch(&[1, 3, 4]))],
                sees: &[Configured(4), InAgain(3)],
                ticks_at: &[1, 2],
                bounds: ticks(2),
                // 1 and 2 still take each other for failed.
                ends_within: None,
                ..change
            },
        ),
        holds(
            "a member that left is chosen anew, a loss and a copy",
            69_007,
            Setup {
                before: LEFT,
                asks: &[(1, Epoch(&[1, 3, 2]))],
                down: &[4],
                ticks_at: &[1],
                bounds: FAULTS,
                ends_within: Some(2),
                sees: &[Configured(3), InAgain(3)],
                ..change
            },
        ),
        holds(
            "a member begins again at any time",
            360_435,
            Setup {
                ends: &[3],
                down: &[4],
                ticks_at: &[1],
                bounds: Bounds {
                    crashes: 1,
                    restarts: 1,
                    ..ticks(1)
                },
                ..change
            },
        ),
    ];
    all.extend(of_five());
    all
}

/// 2 answers an inquiry, is cut off, and misses an update and a link; 3 voted for both, has left,
/// and kept nothing but its mark.
const MISSED: &[Before] = &[
    Rest,
    // Members are named in the lives that they are in.
    Asked(1, Epoch(&[1, 2, 3])),
    Rest,
    Asked(1, Epoch(&[1, 4, 2])),
    Rounds(1),
    Asked(1, Propose(11)),
    Lost(2),
    Rounds(1),
    Cut(&[2]),
    Rest,
    // Its hint of the link has expired.
    Asked(3, Epoch(&[1, 4, 2])),
    Notified(1, TWO_FAILED),
    Notified(4, TWO_FAILED),
    Cut(&[]),
    Asked(2, Propose(22)),
    Notified(2, ONE_FAILED),
];

pub(super) fn pairs() -> Vec<Scenario> {
    let setup = Setup {
        bounds: ticks(4),
        ticks_at: &[2, 3],
        down: &[1, 4],
        ends_within: None,
        sees: &[Left],
        ..Setup::after(MISSED)
    };
    let name = "a node that missed a link asks a member that left it";
    vec![
        holds(name, 107, setup),
        breaks(name, 9, setup, &[Published::NoMark]),
    ]
}
