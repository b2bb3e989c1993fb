//! Scenarios in which the site changes, and leaders follow different generations of it.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_sim::check::{Erratum, Scenario, holds};

use super::script::{Play, Until};
use super::{Edition, Fate, LOCKS, PATIENT, Promise, Setup, Sight, faults};
use crate::Delivery;
use crate::devices::Published;

const PROMISES: &[Promise] = &[
    Promise::Once,
    Promise::ActsForHolder,
    Promise::Follows,
    Promise::Arrives,
];

/// A routine of the first site alone, with a command.
const REMOVED: Play = Play {
    acts: Some(Delivery::AtLeastOnce),
    until: Some(Until::Removed),
    ..PATIENT
};

/// A routine of both sites.
const KEPT: Play = Play {
    until: Some(Until::Adopts(1)),
    ..PATIENT
};

/// A routine of the second site alone, at the device that comes with it.
const ADDED: Play = Play {
    devices: &[2],
    since: 1,
    ..PATIENT
};

/// A routine is removed, and the leaders come from both generations.
const FORGETS: Setup = Setup {
    sites: &[
        Edition {
            devices: &[1],
            routines: &[1, 2],
        },
        Edition {
            devices: &[1],
            routines: &[2],
        },
    ],
    routines: &[REMOVED, KEPT],
    runs: &[1, 1],
    befalls: &[Fate::Lead(1)],
    lags: false,
    promises: PROMISES,
    sees: &[Sight::Executes, Sight::Follows],
    ..LOCKS
};

/// Device 2 takes the place of device 1, and a routine of it that of another.
const MOVES: Setup = Setup {
    sites: &[
        Edition {
            devices: &[1],
            routines: &[1],
        },
        Edition {
            devices: &[2],
            routines: &[2],
        },
    ],
    routines: &[REMOVED, ADDED],
    ..FORGETS
};

/// A device comes, and another one takes its place: some nodes have the site between.
const GOES: Setup = Setup {
    sites: &[
        Edition {
            devices: &[1],
            routines: &[1],
        },
        Edition {
            devices: &[1, 2],
            routines: &[1],
        },
        Edition {
            devices: &[1, 3],
            routines: &[1],
        },
    ],
    routines: &[Play {
        until: Some(Until::Adopts(2)),
        ..PATIENT
    }],
    runs: &[1],
    befalls: &[Fate::Lead(2), Fate::Lead(1), Fate::Lead(2)],
    lags: true,
    ..FORGETS
};

/// The only routine is removed.
const ALONE: &[Edition] = &[
    Edition {
        devices: &[1],
        routines: &[1],
    },
    Edition {
        devices: &[1],
        routines: &[],
    },
];

/// An earlier leader leads between two later ones.
const IN_TURN: &[Fate] = &[Fate::Lead(1), Fate::Lead(0), Fate::Lead(1)];

pub(super) fn quick() -> Vec<Scenario> {
    vec![
        holds("a routine is removed, a later leader", 39_277, FORGETS),
        holds(
            "a routine is removed, a later leader, a loss",
            102_304,
            Setup {
                bounds: faults(1, 0),
                ..FORGETS
            },
        ),
        holds(
            "a device takes the place of another, a later leader",
            1_545,
            MOVES,
        ),
        holds(
            "a device takes the place of another, a later leader, a loss, a copy",
            21_274,
            Setup {
                bounds: faults(1, 1),
                ..MOVES
            },
        ),
    ]
}

pub(super) fn deep() -> Vec<Scenario> {
    vec![
        holds(
            "a routine is removed, a later leader, time passes",
            389_491,
            Setup {
                lags: true,
                ..FORGETS
            },
        ),
        holds(
            "a routine is removed, a later, an earlier and a later leader",
            277_520,
            Setup {
                befalls: IN_TURN,
                ..FORGETS
            },
        ),
        holds(
            "a routine is removed, a later leader, a copy",
            271_068,
            Setup {
                bounds: faults(0, 1),
                ..FORGETS
            },
        ),
    ]
}

/// That an update which follows an older site than the state changes nothing.
pub(super) fn pairs() -> Vec<Scenario> {
    let rules = &[Published::AnyGeneration];
    let promise: &[Promise] = &[Promise::Follows];
    let cases = [
        Erratum {
            name: "a device takes the place of another, a leader of the site between",
            setup: GOES,
            states: 38_777,
            rules,
            promise,
            steps: 4,
        },
        Erratum {
            name: "a routine is removed, a copy of its lock reaches an earlier leader",
            setup: Setup {
                sites: ALONE,
                routines: &[Play {
                    acts: None,
                    ..REMOVED
                }],
                runs: &[1],
                befalls: IN_TURN,
                bounds: faults(0, 1),
                ..FORGETS
            },
            states: 982,
            rules,
            promise,
            steps: 5,
        },
    ];
    cases.into_iter().flat_map(Erratum::pair).collect()
}
