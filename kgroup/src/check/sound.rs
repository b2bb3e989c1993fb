//! Scenarios in which the rules of this crate hold.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_sim::check::{Scenario, holds};

use super::setup::{Network, Plan, Setup, Who};
use crate::Delivery;
use crate::routines::{Locking, Retrigger};

const ONE: &[Plan] = &[Plan::of(&[0]), Plan::of(&[0])];
const TWO: &[Plan] = &[Plan::of(&[0, 1]), Plan::of(&[1, 0])];
const HALF: &[Plan] = &[Plan::of(&[0, 1]), Plan::of(&[1])];
const ANY: &[Who] = &[
    Who::Routine(0),
    Who::Routine(1),
    Who::Cluster(0),
    Who::Cluster(1),
];

const fn optimistic(setup: Setup) -> Setup {
    Setup {
        locking: Locking::Optimistic,
        ..setup
    }
}

const fn delayed(setup: Setup) -> Setup {
    Setup {
        delays: true,
        ..setup
    }
}

const fn lossy(setup: Setup, drops: u8) -> Setup {
    Setup {
        network: Network::Loses(drops),
        ..setup
    }
}

const fn in_one_cluster(setup: Setup) -> Setup {
    Setup {
        one_cluster: true,
        ..setup
    }
}

pub(super) fn quick() -> Vec<Scenario> {
    let (one, two) = (Setup::of(1, ONE), Setup::of(2, TWO));
    let one_led_again = one.with_takeover(ANY);
    vec![
        holds("sequential, one device", 194, one),
        holds(
            "sequential, one device, another leader",
            29_605,
            one_led_again,
        ),
        holds(
            "sequential, one device, a loss, another leader, delays",
            107_894,
            delayed(lossy(one_led_again, 1)),
        ),
        holds("sequential, two devices", 4_440, two),
        holds("sequential, two devices, a loss", 3_041, lossy(two, 1)),
        holds("optimistic, one device", 516, optimistic(one)),
        holds(
            "optimistic, one device, a loss, another leader",
            39_666,
            optimistic(lossy(one_led_again, 1)),
        ),
        holds(
            "optimistic, two devices of which one is shared",
            3_357,
            optimistic(Setup::of(2, HALF)),
        ),
        holds("optimistic, two devices", 6_418, optimistic(lossy(two, 0))),
        holds(
            "optimistic, two devices, a loss",
            27_948,
            optimistic(lossy(two, 1)),
        ),
        holds(
            "a step with a condition, a loss, another leader, delays",
            13_918,
            delayed(lossy(Setup::of(2, CONDITION).with_takeover(ANY), 1)),
        ),
        holds(
            "two routines with conditions, a loss",
            3_096,
            lossy(in_one_cluster(Setup::of(2, CONDITIONS)), 1),
        ),
        holds(
            "a run that begins anew, another leader",
            34_030,
            lossy(Setup::of(2, RESTARTS).with_takeover(&[Who::Routine(0)]), 0),
        ),
        holds(
            "outcomes that are not waited for, a loss",
            10_857,
            Setup {
                timeouts: true,
                ..lossy(one, 1)
            },
        ),
        holds(
            "occurrences by three clocks of which one is wrong, another leader, delays",
            13_535,
            Setup {
                wrong_clock: true,
                ..delayed(lossy(
                    Setup::of(1, TIMED).with_takeover(&[Who::Routine(0)]),
                    0,
                ))
            },
        ),
        holds("a definition changes, two routines", 252_737, EDITIONS),
        holds(
            "a cluster begins anew, a clause becomes true",
            59_374,
            Setup {
                changes: Some(0),
                ..anew(lossy(Setup::of(2, SENSES), 0))
            },
        ),
        holds(
            "a clause becomes true, a loss, another leader, delays",
            80_085,
            Setup {
                changes: Some(0),
                ..delayed(lossy(Setup::of(2, SENSES).with_takeover(ANY), 1))
            },
        ),
    ]
}

/// The first step brings device 0 into state 1, and the second is done if it is in it.
const CONDITION: &[Plan] = &[Plan {
    condition: Some((1, 0, 1)),
    ..Plan::of(&[0, 1])
}];

/// The same with another routine that brings device 0 into state 11, and has its second step passed
/// over, for that asks for state 1.
const CONDITIONS: &[Plan] = &[
    Plan {
        condition: Some((1, 0, 1)),
        ..Plan::of(&[0, 1])
    },
    Plan {
        condition: Some((1, 0, 1)),
        ..Plan::of(&[0, 1])
    },
];

/// A routine that runs twice, and gets another definition at any moment.
const EDITED: &[Plan] = &[
    Plan {
        triggers: 2,
        retrigger: Retrigger::QueueOnce,
        ..Plan::of(&[0, 1])
    },
    Plan::of(&[1]),
];

const EDITED_AT: &[Plan] = &[Plan {
    triggers: 2,
    retrigger: Retrigger::QueueOnce,
    ..Plan::of(&[0])
}];

/// No other routine, and another leader, of the first site.
pub(super) const EDITED_ALONE: Setup = Setup {
    editions: &[Plan::of(&[1])],
    network: Network::Loses(0),
    ..Setup::of(2, EDITED_AT).with_takeover(&[Who::Routine(0)])
};

pub(super) const EDITIONS: Setup = Setup {
    editions: &[Plan::of(&[1])],
    network: Network::Loses(0),
    ..Setup::of(2, EDITED)
};

/// The group of a cluster loses its memory at any moment, and begins anew.
const fn anew(setup: Setup) -> Setup {
    Setup {
        begins_anew: true,
        takeovers: 1,
        ..setup
    }
}

pub(super) const ANEW: Setup = anew(lossy(Setup::of(1, ONCE_ALONE), 0));

const ONCE_ALONE: &[Plan] = &[Plan {
    delivery: Delivery::AtMostOnce,
    ..Plan::of(&[0])
}];

const ONCE: &[Plan] = &[
    Plan {
        delivery: Delivery::AtMostOnce,
        ..Plan::of(&[0])
    },
    Plan::of(&[0]),
];

const SENSES: &[Plan] = &[Plan {
    clause: Some(0),
    triggers: 0,
    ..Plan::of(&[1])
}];

const TIMED: &[Plan] = &[Plan {
    triggers: 0,
    occurrences: 1,
    retrigger: Retrigger::QueueOnce,
    ..Plan::of(&[0])
}];

const RESTARTS: &[Plan] = &[Plan {
    triggers: 2,
    retrigger: Retrigger::Restart,
    holds: true,
    ..Plan::of(&[0, 1])
}];

pub(super) fn deep() -> Vec<Scenario> {
    let (one, two) = (Setup::of(1, ONE), Setup::of(2, TWO));
    let (one_led_again, two_led_anew) = (one.with_takeover(ANY), two.with_takeover(ANY));
    vec![
        holds(
            "sequential, one device, another leader, delays",
            215_669,
            delayed(one_led_again),
        ),
        holds(
            "optimistic, one device, another leader",
            84_913,
            optimistic(one_led_again),
        ),
        holds(
            "sequential, two devices, another leader",
            101_077,
            lossy(two_led_anew, 0),
        ),
        holds(
            "commands that are given once, a loss, another leader, delays",
            101_643,
            delayed(lossy(Setup::of(1, ONCE).with_takeover(ANY), 1)),
        ),
        holds(
            "outcomes that are not waited for, another leader",
            277_058,
            Setup {
                timeouts: true,
                ..lossy(one_led_again, 0)
            },
        ),
        holds(
            "sequential, two devices, a loss, another leader",
            442_840,
            lossy(two_led_anew, 1),
        ),
        holds(
            "optimistic, two devices of which one is shared, another leader",
            86_575,
            optimistic(lossy(Setup::of(2, HALF).with_takeover(ANY), 0)),
        ),
        holds(
            "optimistic, two devices, another leader of one routine",
            587_008,
            apart(&[Who::Routine(0)]),
        ),
        holds(
            "optimistic, two devices, another leader of the other routine",
            545_919,
            apart(&[Who::Routine(1)]),
        ),
        holds(
            "optimistic, two devices, another leader of a cluster",
            154_798,
            apart(&[Who::Cluster(0)]),
        ),
    ]
}

/// Two routines that ask for two devices at once.
const fn apart(may_change: &'static [Who]) -> Setup {
    optimistic(lossy(Setup::of(2, TWO).with_takeover(may_change), 0))
}
