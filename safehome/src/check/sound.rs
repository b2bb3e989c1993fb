//! Homes in which the rules of this crate must hold.

use alloc::format;
use alloc::vec::Vec;

use selvedge_sim::check::Scenario;

use super::Happening::{Cancel, Fails, Restarts, Resumes, Submit};
use super::{Do, Setup, holds};
use crate::{Scheduler, Visibility};

const ALL: &[Do] = &[Do::set(0, 1), Do::set(1, 1), Do::set(2, 1)];
const TWICE: &[Do] = &[Do::set(1, 2), Do::set(2, 2), Do::set(1, 5)];
const BACK: &[Do] = &[Do::set(2, 3), Do::maybe(0, 3)];
const READS: &[Do] = &[
    Do {
        only_if: Some((1, 2)),
        ..Do::set(0, 4)
    },
    Do {
        undo: Some(9),
        ..Do::long(2, 4)
    },
];

/// The same devices as the second one.
const AGAIN: &[Do] = &[Do::set(2, 7), Do::long(1, 7)];

/// A model, its name, and the numbers of states of the scenarios.
#[derive(Clone, Copy)]
pub(super) struct Row(
    pub(super) Visibility,
    pub(super) Scheduler,
    pub(super) &'static str,
    [usize; 4],
);

pub(super) const ROWS: [Row; 7] = [
    Row(
        Visibility::Eventual,
        Scheduler::FirstCome,
        "eventual, first come first served",
        [227, 28_836, 163_389, 677_574],
    ),
    Row(
        Visibility::Eventual,
        Scheduler::JustInTime,
        "eventual, just in time",
        [646, 27_070, 272_799, 472_192],
    ),
    Row(
        Visibility::Eventual,
        Scheduler::Timeline,
        "eventual, timeline",
        [397, 27_117, 270_128, 770_198],
    ),
    Row(
        Visibility::PartitionedStrict,
        Scheduler::Timeline,
        "partitioned strict",
        [104, 8_320, 115_654, 694_797],
    ),
    Row(
        Visibility::GlobalStrict,
        Scheduler::Timeline,
        "global strict",
        [104, 8_320, 130_895, 797_477],
    ),
    Row(
        Visibility::StrongGlobalStrict,
        Scheduler::Timeline,
        "strong global strict",
        [104, 8_320, 275_264, 1_031_534],
    ),
    Row(
        Visibility::Weak,
        Scheduler::Timeline,
        "weak",
        [969, 25_753, 657_605, 525_126],
    ),
];

/// The numbers of states with commands that act late.
const LATES: [usize; 7] = [11_616, 12_013, 11_616, 10_324, 10_231, 12_572, 2_123];

/// The numbers of states if two routines set the same devices.
const SAMES: [usize; 7] = [1_435, 2_324, 1_569, 535, 535, 535, 2_338];

/// The numbers of states with restarts of the hub.
const RESUMES: [[usize; 3]; 7] = [
    [1_911, 9_561, 4_226],
    [5_343, 4_709, 4_927],
    [3_951, 9_622, 4_278],
    [434, 5_826, 3_629],
    [434, 5_826, 4_018],
    [434, 5_826, 4_018],
    [11_503, 15_515, 4_245],
];

pub(super) fn quick() -> Vec<Scenario> {
    let mut all = Vec::new();
    for Row(visibility, scheduler, name, [three, reads, ..]) in ROWS {
        let of = |happenings| Setup {
            visibility,
            scheduler,
            ..Setup::home(3, happenings)
        };
        let setup = of(const { &[Submit(ALL), Submit(TWICE), Submit(BACK)] });
        all.push(holds(&format!("{name}: 3 routines"), three, setup));
        let setup = Setup {
            faults: 1,
            ..of(const { &[Submit(ALL), Submit(READS), Submit(TWICE), Cancel(0)] })
        };
        let name = format!("{name}: a condition, a command that fails, a cancel");
        all.push(holds(&name, reads, setup));
    }
    all.push(echoes());
    all.extend(lates());
    all.extend(sames());
    all.extend(resumes());
    all
}

/// Devices report the effects of their commands; no report is a manual change.
fn echoes() -> Scenario {
    let setup = Setup {
        faults: 1,
        echoes: true,
        ..Setup::home(
            2,
            const {
                &[
                    Submit(const { &[Do::set(0, 1), Do::set(1, 1)] }),
                    Submit(const { &[Do::maybe(0, 2)] }),
                    Cancel(0),
                ]
            },
        )
    };
    holds("devices report what they were told to do", 769, setup)
}

/// Commands act late, devices fail and restart, the hub restarts, and a condition is evaluated.
fn lates() -> Vec<Scenario> {
    let rows = ROWS.into_iter().zip(LATES);
    let scenario = |(Row(visibility, scheduler, name, _), states)| {
        let setup = Setup {
            visibility,
            scheduler,
            faults: 1,
            lates: true,
            ..Setup::home(
                2,
                const {
                    &[
                        Submit(const { &[Do::maybe(0, 1), Do::set(1, 1)] }),
                        Submit(
                            const {
                                &[Do {
                                    only_if: Some((0, 1)),
                                    ..Do::set(1, 2)
                                }]
                            },
                        ),
                        Restarts(0),
                        Resumes,
                    ]
                },
            )
        };
        holds(&format!("{name}: commands act late"), states, setup)
    };
    rows.map(scenario).collect()
}

/// Two routines set the same devices, one after the other.
fn sames() -> Vec<Scenario> {
    let mut all = Vec::new();
    for (Row(visibility, scheduler, name, _), states) in ROWS.into_iter().zip(SAMES) {
        let setup = Setup {
            visibility,
            scheduler,
            ..Setup::home(
                3,
                const { &[Submit(ALL), Submit(TWICE), Submit(AGAIN), Cancel(0)] },
            )
        };
        let name = format!("{name}: two of 3 routines set the same, a cancel");
        all.push(holds(&name, states, setup));
    }
    all
}

/// The hub restarts at any moment, with commands in flight, long ones, rollbacks and devices that
/// are down.
fn resumes() -> Vec<Scenario> {
    let mut all = Vec::new();
    for (Row(visibility, scheduler, name, _), states) in ROWS.into_iter().zip(RESUMES) {
        let of = |happenings| Setup {
            visibility,
            scheduler,
            ..Setup::home(3, happenings)
        };
        let setup = of(const { &[Submit(ALL), Submit(TWICE), Submit(BACK), Resumes] });
        let of_routines = format!("{name}: 3 routines, the hub restarts");
        all.push(holds(&of_routines, states[0], setup));
        let setup = Setup {
            faults: 1,
            ..of(const { &[Submit(READS), Submit(TWICE), Cancel(0), Resumes, Resumes] })
        };
        let of_faults =
            format!("{name}: a condition, a command that fails, a cancel, the hub restarts twice");
        all.push(holds(&of_faults, states[1], setup));
        let setup = of(const { &[Submit(ALL), Submit(TWICE), Restarts(1), Resumes] });
        let of_devices = format!("{name}: 2 routines, a device and the hub restart");
        all.push(holds(&of_devices, states[2], setup));
    }
    all
}

pub(super) fn deep() -> Vec<Scenario> {
    let mut all = Vec::new();
    for Row(visibility, scheduler, name, [.., fails, restarts]) in ROWS {
        let of = |happenings| Setup {
            visibility,
            scheduler,
            faults: 1,
            ..Setup::home(3, happenings)
        };
        let setup = of(const {
            &[
                Submit(ALL),
                Submit(TWICE),
                Submit(BACK),
                Fails(0),
                Restarts(1),
            ]
        });
        let of_failures = format!("{name}: a device fails, one restarts, a command fails");
        all.push(holds(&of_failures, fails, setup));
        let setup = of(const {
            &[
                Submit(ALL),
                Submit(READS),
                Submit(BACK),
                Restarts(2),
                Restarts(1),
                Cancel(1),
            ]
        });
        let name = format!("{name}: a condition, two devices restart, a command fails, a cancel");
        all.push(holds(&name, restarts, setup));
    }
    all
}
