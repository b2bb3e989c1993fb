//! Rules of the paper that break a promise, beside the rules of this crate that hold.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_sim::check::{Erratum, Scenario};

use super::script::Play;
use super::sound::{BOTH_AT_ONCE, RIVALS};
use super::{Fate, LOCKS, PATIENT, Promise, Setup, Sight, WATCHER, faults};
use crate::devices::Published;

type Case = Erratum<Setup>;

pub(super) fn pairs() -> Vec<Scenario> {
    cases().into_iter().flat_map(Case::pair).collect()
}

fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "G5: a request comes twice",
            setup: Setup {
                bounds: faults(0, 1),
                ..LOCKS
            },
            states: 60,
            rules: &[Published::Unnumbered],
            promise: &[Promise::Progress],
            steps: 11,
        },
        Case {
            name: "G5: an answer to one run comes in the next",
            setup: Setup {
                runs: &[2, 1],
                bounds: faults(0, 1),
                ..RIVALS
            },
            states: 8_735,
            rules: &[Published::Unnumbered],
            promise: &[Promise::Exclusion],
            steps: 16,
        },
        Case {
            name: "G6: a request of one try comes behind its release",
            setup: Setup {
                devices: 2,
                routines: &[
                    BOTH_AT_ONCE,
                    Play {
                        devices: &[2],
                        ..PATIENT
                    },
                ],
                sees: &[Sight::Executes, Sight::ExecutesAgain],
                ..RIVALS
            },
            states: 9_316,
            rules: &[Published::Unlabelled],
            promise: &[Promise::Progress],
            steps: 18,
        },
        Case {
            name: "G6: an answer to one try comes in the next",
            setup: Setup {
                devices: 2,
                lags: false,
                routines: &[
                    BOTH_AT_ONCE,
                    PATIENT,
                    Play {
                        devices: &[2],
                        ..PATIENT
                    },
                ],
                runs: &[1, 1, 1],
                sees: &[Sight::Executes, Sight::ExecutesAgain],
                ..LOCKS
            },
            states: 36_930,
            rules: &[Published::Unlabelled],
            promise: &[Promise::Exclusion],
            steps: 19,
        },
        Case {
            name: "G8: the leader that took a report is replaced",
            setup: Setup {
                routines: &[WATCHER],
                befalls: &[Fate::Report(1), Fate::TakeOver],
                promises: &[Promise::Seen],
                sees: &[Sight::Seen(1)],
                ..LOCKS
            },
            states: 351,
            rules: &[Published::ToldOnce],
            promise: &[Promise::Seen],
            steps: 7,
        },
        Case {
            name: "G8: what a routine is told is lost",
            setup: Setup {
                routines: &[WATCHER],
                befalls: &[Fate::Report(1)],
                bounds: faults(1, 0),
                promises: &[Promise::Seen],
                sees: &[Sight::Seen(1)],
                ..LOCKS
            },
            states: 121,
            rules: &[Published::ToldOnce],
            promise: &[Promise::Seen],
            steps: 8,
        },
    ]
}
