//! Rules of the paper that break a promise, beside the rules of this crate that hold.

use alloc::vec::Vec;

use selvedge_sim::check::{Erratum, Scenario};

use super::setup::{Network, Plan, Promise, Setup, Who};
use super::sound::{ANEW, EDITED_ALONE};
use crate::Rule;
use crate::devices::Published as OfDevices;
use crate::routines::{Locking, Published, Retrigger};

type Case = Erratum<Setup>;

pub(super) fn pairs() -> Vec<Scenario> {
    cases().into_iter().flat_map(Case::pair).collect()
}

/// A routine that is triggered twice, and another routine.
const AGAIN: &[Plan] = &[
    Plan {
        triggers: 2,
        retrigger: Retrigger::QueueOnce,
        ..Plan::of(&[0])
    },
    Plan::of(&[0]),
];

const BOTH: &[Plan] = &[Plan::of(&[0, 1]), Plan::of(&[1])];
const ALONE: &[Plan] = &[Plan::of(&[0, 1])];

/// The paper's rules for tries, at routines and devices.
const TRIES: &[Rule] = &[
    Rule::Routine(Published::AnyAttempt),
    Rule::Routine(Published::ReleasesAcquired),
    Rule::Device(OfDevices::Unlabelled),
];

/// A routine that is triggered by a device, and commands another one.
const SENSES: &[Plan] = &[Plan {
    clause: Some(0),
    triggers: 0,
    ..Plan::of(&[1])
}];

/// A routine that an occurrence of a trigger of time starts.
const TIMED: &[Plan] = &[Plan {
    triggers: 0,
    occurrences: 1,
    retrigger: Retrigger::QueueOnce,
    ..Plan::of(&[0])
}];

const ONE: &[Plan] = &[Plan::of(&[0])];

/// The definitions of two later sites.
const IN_TURN: &[Plan] = &[Plan::of(&[1]), Plan::of(&[0])];

fn cases() -> [Case; 12] {
    let one = Setup::of(1, AGAIN);
    let tries = Setup {
        locking: Locking::Optimistic,
        ..Setup::of(2, BOTH)
    };
    [
        Case {
            name: "G5: a lock that was granted to the run before comes late",
            setup: one,
            states: 2_027,
            rules: &[
                Rule::Routine(Published::AnyInstance),
                Rule::Device(OfDevices::Unnumbered),
            ],
            promise: Promise::Apart,
            steps: 13,
        },
        Case {
            name: "G6: a lock of a run that is over comes late",
            setup: tries,
            states: 3_357,
            rules: TRIES,
            promise: Promise::NoStrays,
            steps: 21,
        },
        Case {
            name: "G6: a lock overtakes its release",
            setup: Setup {
                network: Network::Loses(0),
                ..tries
            },
            states: 695,
            rules: TRIES,
            promise: Promise::Ends,
            steps: 24,
        },
        Case {
            name: "G7: another leader goes on with the commands",
            setup: Setup::of(2, ALONE).with_takeover(&[Who::Routine(0)]),
            states: 7_068,
            rules: &[Rule::Routine(Published::ProgressInMemory)],
            promise: Promise::Inherited,
            steps: 9,
        },
        Case {
            name: "G8: the leader to which a status was told is replaced",
            setup: Setup {
                changes: Some(0),
                delays: true,
                network: Network::Loses(0),
                ..Setup::of(2, SENSES).with_takeover(&[Who::Routine(0), Who::Cluster(0)])
            },
            states: 16_676,
            rules: &[Rule::Routine(Published::SeesAtOnce)],
            promise: Promise::Ends,
            steps: 3,
        },
        Case {
            name: "G8: a status is lost",
            setup: Setup {
                changes: Some(0),
                network: Network::Loses(1),
                ..Setup::of(2, SENSES)
            },
            states: 338,
            rules: &[Rule::Device(OfDevices::ToldOnce)],
            promise: Promise::Ends,
            steps: 4,
        },
        Case {
            name: "G9: a trigger while it runs",
            setup: one,
            states: 2_027,
            rules: &[Rule::Routine(Published::RetriggersAnew)],
            promise: Promise::NoStrays,
            steps: 5,
        },
        Case {
            name: "G12: two nodes believe to lead at an occurrence",
            setup: Setup::of(1, TIMED).with_takeover(&[Who::Routine(0)]),
            states: 2_662,
            rules: &[Rule::Routine(Published::EachLeaderStarts)],
            promise: Promise::Once,
            steps: 6,
        },
        Case {
            name: "G12: a clock is ahead",
            setup: Setup {
                wrong_clock: true,
                network: Network::Loses(0),
                ..Setup::of(1, TIMED)
            },
            states: 177,
            rules: &[Rule::Routine(Published::OneClock)],
            promise: Promise::Once,
            steps: 3,
        },
        Case {
            name: "a definition comes within a run",
            setup: EDITED_ALONE,
            states: 148_582,
            rules: &[Rule::Routine(Published::DefinesAtOnce)],
            promise: Promise::OneDefinition,
            steps: 2,
        },
        Case {
            name: "a definition changes twice, a leader of the site between",
            setup: Setup {
                routines: ONE,
                editions: IN_TURN,
                ..EDITED_ALONE
            },
            states: 95_895,
            rules: &[Rule::Routine(Published::DefinesLate)],
            promise: Promise::OneDefinition,
            steps: 4,
        },
        Case {
            name: "a cluster begins anew while a run executes",
            setup: ANEW,
            states: 2_358,
            rules: &[Rule::Device(OfDevices::ForgetsLocks)],
            promise: Promise::Ends,
            steps: 3,
        },
    ]
}
