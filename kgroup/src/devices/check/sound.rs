//! Scenarios in which the rules of this crate hold.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_sim::check::{Scenario, holds};

use super::script::Play;
use super::{Fate, HASTY, LOCKS, PATIENT, Promise, Setup, Sight, WATCHER, faults};
use crate::Delivery;

/// Two routines want the same.
pub(super) const RIVALS: Setup = Setup {
    routines: &[PATIENT, PATIENT],
    runs: &[1, 1],
    sees: &[Sight::Executes, Sight::Waits],
    ..LOCKS
};

const BOTH: Play = Play {
    devices: &[1, 2],
    ..PATIENT
};

pub(super) const BOTH_AT_ONCE: Play = Play {
    devices: &[1, 2],
    ..HASTY
};

const AT_ONCE: Setup = Setup {
    devices: 2,
    lags: false,
    routines: &[BOTH_AT_ONCE, BOTH_AT_ONCE],
    sees: &[Sight::Executes, Sight::ExecutesAgain],
    ..RIVALS
};

pub(super) fn quick() -> Vec<Scenario> {
    let mut all = locks();
    all.extend(acts());
    all.extend(watches());
    all
}

fn locks() -> Vec<Scenario> {
    vec![
        holds(
            "two routines, a loss, a copy",
            5_709,
            Setup {
                bounds: faults(1, 1),
                ..RIVALS
            },
        ),
        holds(
            "two routines, another leader, a copy",
            62_062,
            Setup {
                befalls: &[Fate::TakeOver],
                bounds: faults(0, 1),
                ..RIVALS
            },
        ),
        holds(
            "two routines, another leader, a loss",
            16_517,
            Setup {
                befalls: &[Fate::TakeOver],
                bounds: faults(1, 0),
                ..RIVALS
            },
        ),
        holds(
            "two routines that do not wait, another leader, a copy",
            80_501,
            Setup {
                routines: &[
                    HASTY,
                    Play {
                        attempts: 1,
                        ..HASTY
                    },
                ],
                befalls: &[Fate::TakeOver],
                bounds: faults(0, 1),
                sees: &[Sight::Executes, Sight::ExecutesAgain],
                ..RIVALS
            },
        ),
        holds("two routines, two devices at once", 85_384, AT_ONCE),
    ]
}

const ACTS: &[Promise] = &[
    Promise::Exclusion,
    Promise::Held,
    Promise::Progress,
    Promise::Once,
    Promise::ActsForHolder,
];

const ONCE: Play = Play {
    acts: Some(Delivery::AtMostOnce),
    ..PATIENT
};

const AGAIN: Play = Play {
    acts: Some(Delivery::AtLeastOnce),
    ..PATIENT
};

const HURRIED: Play = Play {
    hurries: true,
    ..AGAIN
};

const ALONE: Setup = Setup {
    routines: &[ONCE],
    befalls: &[Fate::TakeOver, Fate::TakeOver],
    promises: ACTS,
    sees: &[Sight::Executes, Sight::Orders],
    ..LOCKS
};

fn acts() -> Vec<Scenario> {
    let alone = ALONE;
    vec![
        holds(
            "a command that is given once, two other leaders",
            2_600,
            alone,
        ),
        holds(
            "a command that may be given again, two other leaders",
            4_017,
            Setup {
                routines: &[AGAIN],
                ..alone
            },
        ),
        holds(
            "a routine that does not wait for its command, another leader",
            92_326,
            Setup {
                routines: &[HURRIED, PATIENT],
                runs: &[1, 1],
                befalls: &[Fate::TakeOver],
                sees: &[Sight::Executes, Sight::Waits, Sight::Orders],
                ..alone
            },
        ),
        holds(
            "a command that is given once, another leader, a loss, a copy",
            5_363,
            Setup {
                befalls: &[Fate::TakeOver],
                bounds: faults(1, 1),
                ..alone
            },
        ),
        holds(
            "a command that is given once, a leader that leads again",
            11_420,
            Setup {
                returns: true,
                ..alone
            },
        ),
        holds(
            "two routines with a command each, another leader",
            41_071,
            Setup {
                routines: &[ONCE, AGAIN],
                runs: &[1, 1],
                befalls: &[Fate::TakeOver],
                sees: &[Sight::Executes, Sight::Waits, Sight::Orders],
                ..alone
            },
        ),
        holds(
            "two routines with a command each, a copy",
            8_960,
            Setup {
                routines: &[ONCE, AGAIN],
                runs: &[1, 1],
                befalls: &[],
                bounds: faults(0, 1),
                sees: &[Sight::Executes, Sight::Waits],
                ..alone
            },
        ),
    ]
}

const WATCH: Setup = Setup {
    routines: &[WATCHER],
    promises: &[Promise::Seen],
    sees: &[Sight::Seen(2)],
    ..LOCKS
};

fn watches() -> Vec<Scenario> {
    vec![holds(
        "a watch, a loss, a copy, another leader between two reports",
        31_441,
        Setup {
            befalls: &[Fate::Report(1), Fate::TakeOver, Fate::Report(2)],
            bounds: faults(1, 1),
            ..WATCH
        },
    )]
}

pub(super) fn deep() -> Vec<Scenario> {
    vec![
        holds(
            "two routines, two devices in order, a loss, a copy",
            182_611,
            Setup {
                devices: 2,
                routines: &[BOTH, BOTH],
                bounds: faults(1, 1),
                ..RIVALS
            },
        ),
        holds(
            "two routines, two devices at once, a loss",
            375_520,
            Setup {
                bounds: faults(1, 0),
                ..AT_ONCE
            },
        ),
        holds(
            "a routine that does not wait for its command, one that does, two other leaders",
            1_072_118,
            Setup {
                routines: &[HURRIED, AGAIN],
                runs: &[1, 1],
                sees: &[Sight::Executes, Sight::Waits, Sight::Orders],
                ..ALONE
            },
        ),
        holds(
            "two watches, a loss, another leader after two reports",
            378_550,
            Setup {
                routines: &[WATCHER, WATCHER],
                runs: &[1, 1],
                befalls: &[Fate::Report(1), Fate::Report(2), Fate::TakeOver],
                bounds: faults(1, 0),
                ..WATCH
            },
        ),
    ]
}
