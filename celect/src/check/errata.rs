//! Scenarios in which the thesis' rules break, and this crate's do not.

use alloc::vec::Vec;

use selvedge_core::{Delta, Member};
use selvedge_sim::check::{Bounds, Erratum, Scenario};

use super::Promise::{Liveness, Safety};
use super::{Leads, Lists, Setup};
use crate::Command::{self, Elect};
use crate::Protocol::{Hybrid, Optimistic};
use crate::Published;

const SECOND: &[&[Command]] = &[&[], &[Elect]];
const THIRD: &[&[Command]] = &[&[], &[], &[Elect]];
const FOURTH: &[&[Command]] = &[&[], &[], &[], &[Elect]];
const BOTH: &[&[Command]] = &[&[Elect], &[Elect]];
const TWICE: &[&[Command]] = &[&[], &[Elect, Elect]];
const ONE: Member = Member::new(1, 0);
const TWO: Member = Member::new(2, 0);
const THREE: Member = Member::new(3, 0);

const A_CRASH: Bounds = Bounds {
    crashes: 1,
    ..Setup::CALM
};

type Case = Erratum<Setup>;

pub(super) fn pairs() -> Vec<Scenario> {
    let cases = answers().into_iter().chain(orders()).chain(health());
    cases.flat_map(Case::pair).collect()
}

/// Cases of queries and answers.
fn answers() -> Vec<Case> {
    // Node 1, the lowest, dies before it leads, and no list is ever purged.
    let dead = Setup {
        ends: &[1],
        early: true,
        witnesses: &[],
        bounds: A_CRASH,
        ..Setup::full(4, 1, 1)
    };
    alloc::vec![
        Case {
            name: "E1: lists that do not name their owner",
            setup: Setup {
                commands: SECOND,
                ..Setup::full(2, 0, 0)
            },
            states: 6,
            rules: &[Published::OwnerLeftOut],
            promise: Safety,
            steps: 4,
        },
        Case {
            name: "E2: the initiator knows fewer than c + 1 nodes",
            setup: Setup {
                lists: Lists::Given(&[&[2, 3, 4], &[1, 3, 4], &[1, 2, 4], &[3]]),
                commands: FOURTH,
                ..Setup::full(4, 2, 0)
            },
            states: 57,
            rules: &[Published::NoDiscovery],
            promise: Liveness,
            steps: 1,
        },
        Case {
            name: "E6: the lowest is dead, and on every list",
            setup: Setup {
                commands: THIRD,
                ..Setup { nodes: 3, ..dead }
            },
            states: 47,
            rules: &[Published::RetriesTheDead],
            promise: Liveness,
            steps: 2,
        },
        Case {
            name: "E6b: the lowest is dead, and the next one is on few lists",
            setup: Setup {
                lists: Lists::Given(&[&[2, 3, 4], &[1, 3, 4], &[4], &[1, 2, 3]]),
                commands: FOURTH,
                ..dead
            },
            states: 154,
            rules: &[Published::SkipsLocally],
            promise: Safety,
            steps: 10,
        },
        Case {
            name: "E7: an answer to an earlier run, from a list that has changed",
            setup: Setup {
                lists: Lists::Given(&[&[2, 3, 4], &[1, 3, 4], &[2, 4], &[1, 2, 3]]),
                commands: TWICE,
                deltas: &[(3, Delta::Refuted(ONE)), (4, Delta::Failed(ONE))],
                calm_lists: true,
                reelect: false,
                ..Setup::full(4, 1, 1)
            },
            states: 14_076,
            rules: &[Published::AnyRun],
            promise: Safety,
            steps: 23,
        },
    ]
}

/// Cases of several leaders.
fn orders() -> Vec<Case> {
    alloc::vec![
        Case {
            name: "E4: the lowest led and is dead",
            setup: Setup {
                commands: SECOND,
                ends: &[1],
                bounds: A_CRASH,
                ..Setup::full(3, 0, 1)
            },
            states: 1_699,
            rules: &[Published::LowestWins],
            promise: Liveness,
            steps: 6,
        },
        Case {
            name: "E4b: two leaders are heard of in two orders",
            setup: Setup {
                lists: Lists::Given(&[&[2, 3], &[3], &[1, 2]]),
                protocol: Optimistic,
                commands: THIRD,
                ..Setup::full(3, 1, 0)
            },
            states: 58,
            rules: &[Published::LastWins],
            promise: Safety,
            steps: 11,
        },
        Case {
            name: "E5: a node gave way to an initiator that dies",
            setup: Setup {
                commands: BOTH,
                ends: &[1],
                bounds: A_CRASH,
                ..Setup::full(2, 0, 0)
            },
            states: 196,
            rules: &[Published::GivesUp],
            promise: Liveness,
            steps: 3,
        },
    ]
}

/// Cases of nodes that are passed over as unhealthy.
fn health() -> Vec<Case> {
    alloc::vec![
        Case {
            name: "E9: the first leader of Hybrid is lower than the last",
            setup: Setup {
                protocol: Hybrid,
                xy: (1, 1),
                lists: Lists::Given(&[&[2, 3], &[1, 3], &[1, 2]]),
                notified: &[(2, Delta::Suspected(ONE))],
                commands: THIRD,
                leads: Leads::This(2),
                ..Setup::full(3, 1, 0)
            },
            states: 58,
            rules: &[Published::LowestWins],
            promise: Safety,
            steps: 11,
        },
        Case {
            name: "E9b: no candidate is left for a moment",
            setup: Setup {
                protocol: Hybrid,
                xy: (1, 1),
                lists: Lists::Given(&[&[2, 3, 4], &[1, 3, 4], &[1, 4], &[1, 2, 3]]),
                notified: &[
                    (1, Delta::Suspected(TWO)),
                    (2, Delta::Suspected(ONE)),
                    (3, Delta::Suspected(ONE)),
                ],
                commands: FOURTH,
                leads: Leads::This(THREE.id.0),
                ..Setup::full(4, 2, 0)
            },
            states: 1_695,
            rules: &[Published::RestartsWhenEmpty],
            promise: Safety,
            steps: 19,
        },
    ]
}
