//! Runs of one key and urgent routines: plausible rules that break, and this crate's, which hold.

use alloc::format;
use alloc::vec::Vec;

use selvedge_sim::check::Scenario;

use super::Happening::{Cancel, Fails, Restarts, Resumes, Run, Submit};
use super::Promise::{LastWins, OneRun, Serializable, Straight, Urgent};
use super::errata::{Case, home};
use super::sound::ROWS;
use super::{As, Do, Setup, holds};
use crate::Published;
use crate::Scheduler::{JustInTime, Timeline};

/// On for a while, then off: the states are 1 and 2, so that the end differs from the beginning.
const LIGHT: &[Do] = &[Do::long(0, 1), Do::set(0, 2)];
const AGAIN: &[Do] = &[Do::long(0, 3), Do::set(0, 4)];
const ALL: &[Do] = &[Do::set(0, 5), Do::long(1, 5)];
const STOP: &[Do] = &[Do::set(0, 6), Do::set(1, 6)];
/// The hold may be cut short, and the routine needs no device after it.
const MOVIE: &[Do] = &[Do::set(1, 7), Do::cut(0, 7)];
/// A hold that may be cut short, by a routine that goes on with another device.
const GOES_ON: &[Do] = &[Do::cut(0, 8), Do::set(1, 8)];
const NIGHT: &[Do] = &[Do::set(0, 9)];
const ASKS: &[Do] = &[
    Do {
        only_if: Some((0, 0)),
        ..Do::set(1, 9)
    },
    Do::set(0, 9),
];

/// The numbers of states of each model: runs that restart and an urgent one; the same, with a
/// restart of the hub and no faults; queued ones; holds that are cut short, and a condition.
const STATES: [[usize; 4]; 7] = [
    [44_960, 1_851, 701, 2_369],
    [114_507, 4_151, 1_106, 3_310],
    [49_460, 1_879, 701, 2_521],
    [15_125, 897, 677, 2_110],
    [15_125, 897, 677, 2_269],
    [15_125, 897, 677, 2_269],
    [40_292, 1_345, 653, 3_048],
];

pub(super) fn all() -> Vec<Scenario> {
    let cases = modes().into_iter().chain(urgent());
    let mut all: Vec<Scenario> = cases.flat_map(Case::pair).collect();
    all.push(single());
    for (row, states) in ROWS.into_iter().zip(STATES) {
        let of = |happenings| Setup {
            visibility: row.0,
            scheduler: row.1,
            ..Setup::home(2, happenings)
        };
        let name = row.2;
        let setup = Setup {
            faults: 1,
            ..of(const {
                &[
                    Run(LIGHT, As::restart(1)),
                    Run(AGAIN, As::restart(1)),
                    Submit(ALL),
                    Run(STOP, As::urgent(1)),
                ]
            })
        };
        let of_restarts = format!("{name}: a run supersedes another, one is urgent");
        all.push(holds(&of_restarts, states[0], setup));
        let setup = of(const {
            &[
                Run(LIGHT, As::restart(1)),
                Run(AGAIN, As::restart(1)),
                Run(STOP, As::urgent(1)),
                Resumes,
            ]
        });
        let of_resumes =
            format!("{name}: a run supersedes another, one is urgent, the hub restarts");
        all.push(holds(&of_resumes, states[1], setup));
        let setup = of(const {
            &[
                Run(LIGHT, As::queued(1)),
                Run(NIGHT, As::queued(1)),
                Submit(NIGHT),
                Cancel(0),
                Resumes,
            ]
        });
        let of_queues = format!("{name}: queued runs, a cancel, the hub restarts");
        all.push(holds(&of_queues, states[2], setup));
        let setup = of(const {
            &[
                Submit(MOVIE),
                Submit(GOES_ON),
                Run(ASKS, As::urgent(2)),
                Restarts(0),
            ]
        });
        let of_holds = format!("{name}: holds are cut short for one that asks, a device restarts");
        all.push(holds(&of_holds, states[3], setup));
    }
    all
}

/// The effects of a new run on the others of its key.
fn modes() -> [Case; 4] {
    const BOTH: &[super::Happening] = &[
        Run(LIGHT, As::restart(1)),
        Run(AGAIN, As::restart(1)),
        Fails(1),
    ];
    [
        Case {
            name: "M1: a run supersedes another",
            setup: home(2, Timeline, BOTH),
            states: 74,
            rules: &[Published::KeepsFormer],
            promise: OneRun,
            steps: 2,
        },
        Case {
            name: "M2: a device is not brought back between two runs",
            setup: home(2, JustInTime, BOTH),
            states: 106,
            rules: &[Published::UndoesFirst],
            promise: Straight,
            steps: 3,
        },
        Case {
            name: "M3: a run waits for those before it",
            setup: home(
                2,
                Timeline,
                const {
                    &[
                        Run(ALL, As::queued(1)),
                        Run(NIGHT, As::queued(1)),
                        Cancel(0),
                    ]
                },
            ),
            states: 50,
            rules: &[Published::QueuesNothing],
            promise: OneRun,
            steps: 2,
        },
        Case {
            name: "M4: a routine sets the same as one that is held back",
            setup: Setup {
                in_order: true,
                ..home(
                    2,
                    Timeline,
                    const {
                        &[
                            Run(const { &[Do::set(1, 1)] }, As::queued(1)),
                            Run(NIGHT, As::queued(1)),
                            Submit(const { &[Do::set(0, 3)] }),
                        ]
                    },
                )
            },
            states: 10,
            rules: &[Published::OvertakesQueued],
            promise: LastWins,
            steps: 6,
        },
    ]
}

/// Urgent routines.
fn urgent() -> [Case; 2] {
    [
        Case {
            name: "U1: an urgent routine meets a hold",
            setup: home(
                2,
                Timeline,
                const { &[Submit(ALL), Submit(MOVIE), Run(STOP, As::urgent(1))] },
            ),
            states: 239,
            rules: &[Published::WaitsBehindHold],
            promise: Urgent,
            steps: 2,
        },
        Case {
            name: "U2: a preempted routine is undone",
            setup: home(
                2,
                Timeline,
                const { &[Submit(ALL), Run(NIGHT, As::urgent(1))] },
            ),
            states: 22,
            rules: &[Published::UndoOverwrites],
            promise: Serializable,
            steps: 5,
        },
    ]
}

/// A second run is refused while the first one is unfinished, and only then.
fn single() -> Scenario {
    let setup = home(
        1,
        Timeline,
        const {
            &[
                Run(LIGHT, As::single(1)),
                Run(NIGHT, As::single(1)),
                Resumes,
            ]
        },
    );
    holds("M5: a second run is refused", 65, setup)
}
