//! Scenarios in which the thesis' rules break a promise, and this crate's rules hold.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::{Delta, Member};
use selvedge_sim::check::{Bounds, Scenario};

use super::Promise::{Exclusion, Progress, Tokens};
use super::{Promise, Setup, breaks, holds};
use crate::Command::{self, Enter, Exit};
use crate::Published;

const VISIT: &[Command] = &[Enter, Exit];
const NONE: &[Command] = &[];
const TWICE: &[Command] = &[Enter, Exit, Enter, Exit];
/// Nodes 1 and 2 want to enter, do not know each other, and both know node 3.
const FRIEND: &[&[u64]] = &[&[3], &[3], &[1, 2]];

const TWO: Member = Member::new(2, 0);
const ONE: Member = Member::new(1, 0);
const TWO_JOINS: &[(u64, Delta)] = &[(1, Delta::Joined(TWO))];
const ONE_JOINS: &[(u64, Delta)] = &[(2, Delta::Joined(ONE))];
const ONE_FAILS_TWO: &[(u64, Delta)] = &[(1, Delta::Failed(TWO))];
const THREE_FAILS_ONE: &[(u64, Delta)] = &[(3, Delta::Failed(ONE))];

/// A setup in which rules are tried.
#[derive(Clone, Copy)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) setup: Setup,
    /// States under our rules.
    pub(super) states: usize,
}

impl Case {
    pub(super) fn ours(&self) -> Scenario {
        holds(self.name, self.states, self.setup)
    }

    pub(super) fn under(
        &self,
        rules: &'static [Published],
        promise: Promise,
        steps: usize,
    ) -> Scenario {
        breaks(self.name, steps, self.setup, rules, promise)
    }

    /// An erratum: the thesis' rules break the promise after `steps` steps, and this crate's rules hold.
    pub(super) fn pair(self, promise: Promise, steps: usize) -> [Scenario; 2] {
        [self.ours(), self.under(&Published::THESIS, promise, steps)]
    }
}

/// Nodes 1 and 2 enter once each.
fn friends() -> Setup {
    Setup {
        lists: FRIEND,
        ..Setup::full(3).visits(&[VISIT, VISIT])
    }
}

fn two() -> Setup {
    Setup::full(2).visits(&[VISIT, VISIT])
}

fn joined_while_waiting() -> Case {
    Case {
        name: "C1: a member joins the list of a node that waits",
        setup: Setup {
            deltas: TWO_JOINS,
            ..friends()
        },
        states: 6_199,
    }
}

fn holder_suspected() -> Case {
    Case {
        name: "C2: the holder is wrongly declared failed",
        setup: Setup {
            deltas: ONE_FAILS_TWO,
            ..two()
        },
        states: 448,
    }
}

fn holder_suspected_by_friend() -> Case {
    Case {
        name: "C3a: a friend wrongly declares the holder failed",
        setup: Setup {
            deltas: THREE_FAILS_ONE,
            ..friends()
        },
        states: 3_250,
    }
}

fn holder_dies_first() -> Case {
    Case {
        name: "C3b: the end of the holder is known before the holder is",
        setup: Setup {
            ends: &[2],
            bounds: Bounds {
                crashes: 1,
                ..Setup::CALM
            },
            ..friends()
        },
        states: 3_590,
    }
}

fn friend_comes_back() -> Case {
    Case {
        name: "C3c: a friend comes back without its memory",
        setup: Setup {
            max_lives: 4,
            // Two of four lives are too few; with node 1 node 2 has three.
            deltas: ONE_JOINS,
            ends: &[3],
            bounds: Bounds {
                crashes: 1,
                restarts: 1,
                ..Setup::CALM
            },
            ..friends()
        },
        states: 97_028,
    }
}

fn requester_comes_back() -> Case {
    Case {
        name: "C3d: a requester comes back, and an OK to its former life arrives",
        setup: Setup {
            ends: &[1],
            bounds: Bounds {
                crashes: 1,
                restarts: 1,
                ..Setup::CALM
            },
            // A node that did not crash has one Enter too many.
            progress: false,
            ..Setup::full(2).visits(&[&[Enter, Enter, Exit], VISIT])
        },
        states: 7_742,
    }
}

fn friends_die() -> Case {
    Case {
        name: "C3f: both common friends say OK to one each, and die",
        setup: Setup {
            lists: &[&[3, 4], &[3, 4], &[1, 2], &[1, 2]],
            max_lives: 4,
            ends: &[3, 4],
            bounds: Bounds {
                crashes: 2,
                ..Setup::CALM
            },
            ..Setup::full(4).visits(&[VISIT, VISIT])
        },
        states: 582_730,
    }
}

fn quorums_of_two_sizes() -> Case {
    Case {
        name: "C10: one list is a quorum of 3, the other of 5",
        setup: Setup {
            lists: &[&[3], &[4, 5], &[1], &[2], &[2]],
            max_lives: 5,
            ..Setup::full(5).visits(&[VISIT, VISIT])
        },
        states: 2_122,
    }
}

fn ok_of_an_earlier_request() -> Case {
    Case {
        name: "C4: an OK to an earlier request comes again",
        setup: Setup {
            bounds: Bounds {
                duplicates: 1,
                ..Setup::CALM
            },
            ..Setup::full(2).visits(&[TWICE, VISIT])
        },
        states: 5_622,
    }
}

fn forgotten_ok() -> Case {
    Case {
        name: "C5: a node that has our OK is wrongly declared failed",
        setup: Setup {
            deltas: ONE_FAILS_TWO,
            ..two()
        },
        states: 448,
    }
}

fn deferred_is_suspected() -> Case {
    Case {
        name: "C8: a node that waits for us is wrongly declared failed, and nothing is sent again",
        setup: Setup {
            deltas: ONE_FAILS_TWO,
            bounds: Bounds {
                ticks: Some(0),
                ..Setup::CALM
            },
            ..two()
        },
        states: 193,
    }
}

fn tokens() -> Case {
    Case {
        name: "T1: two nodes that never heard of each other enter one after the other",
        setup: friends(),
        states: 1_625,
    }
}

fn rival_is_suspected() -> Case {
    Case {
        name: "C2b: the holder is wrongly declared failed, and a quorum says OK",
        setup: Setup {
            deltas: ONE_FAILS_TWO,
            ..Setup::full(3).visits(&[VISIT, VISIT])
        },
        states: 2_481,
    }
}

fn forgotten_among_three() -> Case {
    Case {
        name: "C5b: a node that has our OK is wrongly declared failed, and a quorum says OK",
        setup: Setup {
            lists: &[&[3], &[1], &[1]],
            deltas: ONE_FAILS_TWO,
            ..Setup::full(3).visits(&[VISIT, VISIT])
        },
        states: 1_053,
    }
}

fn issued_again() -> Case {
    Case {
        name: "T2: a request is issued again while others wait",
        setup: Setup {
            lists: &[&[2, 3], &[1, 3], &[2]],
            bounds: Bounds {
                ticks: Some(0),
                ..Setup::CALM
            },
            ..Setup::full(3).visits(&[VISIT, VISIT, VISIT])
        },
        states: 18_213,
    }
}

fn late_release() -> Case {
    Case {
        name: "R1: a RELEASE is late",
        setup: friends().visits(&[TWICE, VISIT]),
        states: 19_256,
    }
}

/// Nodes 1 and 2 know each other; node 3 knows both, and membership never reports node 3.
fn asked_and_went() -> Case {
    Case {
        name: "L1: a node that asked is gone, and membership never heard of it",
        setup: Setup {
            lists: &[&[2], &[1], &[1, 2]],
            unanswered: &[3],
            bounds: Bounds {
                crashes: 1,
                ..Setup::CALM
            },
            ..Setup::full(3).visits(&[VISIT, NONE, VISIT])
        },
        states: 761,
    }
}

/// The same, with an answer that is lost.
fn out_and_gone() -> Case {
    let case = asked_and_went();
    Case {
        name: "L2: a node that is waited for is out and gone, and an older OK names it",
        setup: Setup {
            bounds: Bounds {
                drops: 1,
                ..case.setup.bounds
            },
            ..case.setup
        },
        states: 3_359,
    }
}

fn two_wait_for_one() -> Case {
    Case {
        name: "X1: two nodes that do not know each other wait for one",
        setup: friends().visits(&[VISIT, VISIT, VISIT]),
        states: 237_708,
    }
}

/// The errata: the published rules break a promise, this crate's rules hold.
pub(super) fn pairs() -> Vec<Scenario> {
    let broken = [
        (joined_while_waiting(), Exclusion, 7),
        (holder_suspected(), Exclusion, 5),
        (holder_suspected_by_friend(), Exclusion, 7),
        (holder_dies_first(), Progress, 5),
        (friend_comes_back(), Exclusion, 5),
        (requester_comes_back(), Exclusion, 7),
        (friends_die(), Exclusion, 8),
        (quorums_of_two_sizes(), Exclusion, 8),
        (ok_of_an_earlier_request(), Exclusion, 9),
        (forgotten_ok(), Exclusion, 5),
        (tokens(), Tokens, 8),
        (issued_again(), Tokens, 8),
        (rival_is_suspected(), Exclusion, 9),
        (forgotten_among_three(), Exclusion, 6),
    ];
    let pairs = |(case, promise, steps): (Case, _, _)| case.pair(promise, steps);
    let mut all: Vec<Scenario> = broken.into_iter().flat_map(pairs).collect();
    // Correct parts of the thesis: a promise breaks only without one of them.
    all.extend([
        deferred_is_suspected().ours(),
        late_release().ours(),
        two_wait_for_one().ours(),
        asked_and_went().ours(),
        out_and_gone().ours(),
    ]);
    all
}

/// This crate's rules without one part, each in the scenario that needs the part.
pub(super) fn parts() -> Vec<Scenario> {
    vec![
        joined_while_waiting().under(&[Published::AskWhoIsNotListed], Exclusion, 7),
        rival_is_suspected().under(&[Published::FailureEndsWait], Exclusion, 9),
        holder_suspected_by_friend().under(&[Published::FailureForgets], Exclusion, 7),
        holder_dies_first().under(&[Published::NoTombstones], Progress, 4),
        requester_comes_back().under(&[Published::OneLife], Exclusion, 8),
        friends_die().under(&[Published::NoQuorum], Exclusion, 8),
        quorums_of_two_sizes().under(&[Published::NoQuorum], Exclusion, 8),
        ok_of_an_earlier_request().under(&[Published::OkForAnyRequest], Exclusion, 9),
        forgotten_among_three().under(&[Published::OwnOksAreNotAsked], Exclusion, 6),
        deferred_is_suspected().under(&[Published::FailureForgetsDeferred], Progress, 4),
        tokens().under(&[Published::NumberIsToken], Tokens, 8),
        issued_again().under(&[Published::ReissueKeepsDeferred], Progress, 6),
        late_release().under(&[Published::ReleaseById], Exclusion, 11),
        two_wait_for_one().under(&[Published::SnapshotInExit], Exclusion, 12),
        asked_and_went().under(&[Published::RequestLists], Progress, 10),
        out_and_gone().under(&[Published::ReleaseIsNoEnd], Progress, 10),
    ]
}
