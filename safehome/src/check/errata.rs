//! Scenarios in which the paper's rules break, and this crate's hold.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use selvedge_sim::check::{Erratum, Scenario};

use super::Happening::{Cancel, Fails, Restarts, Submit};
use super::Promise::{Invariants, LastWins, OneCommand, Patience, Serializable, Spared};
use super::{Algorithm1, Do, Happening, Search, Setup, Slot, holds};
use crate::Scheduler::{FirstCome, JustInTime, Timeline};
use crate::{Published, Scheduler};

pub(super) type Case = Erratum<Setup>;

pub(super) fn pairs() -> Vec<Scenario> {
    let cases = orders().into_iter().chain(rollbacks()).chain(commands());
    let cases = cases.chain(waits());
    let mut all: Vec<Scenario> = cases.flat_map(Case::pair).collect();
    all.extend(searches());
    all.extend(unbroken());
    all
}

pub(super) const fn home(
    devices: u64,
    scheduler: Scheduler,
    happenings: &'static [Happening],
) -> Setup {
    Setup {
        scheduler,
        ..Setup::home(devices, happenings)
    }
}

/// Routines in a cycle, and the memory of finished ones.
fn orders() -> [Case; 5] {
    const AB: &[Do] = &[Do::set(0, 1), Do::set(1, 1)];
    const BC: &[Do] = &[Do::set(1, 2), Do::set(2, 2)];
    const CA: &[Do] = &[Do::set(2, 3), Do::set(0, 3)];
    const ACB: &[Do] = &[Do::set(0, 1), Do::set(2, 1), Do::set(1, 1)];
    const A: &[Do] = &[Do::set(0, 2)];
    const AC: &[Do] = &[Do::set(0, 2), Do::set(2, 2)];
    const BA: &[Do] = &[Do::set(1, 3), Do::set(0, 3)];
    const CB: &[Do] = &[Do::set(1, 3), Do::set(2, 3)];
    const AD: &[Do] = &[Do::set(0, 1), Do::set(1, 1), Do::set(2, 1)];
    const FIVE: &[Do] = &[Do::set(0, 5)];
    const TWO: &[Do] = &[Do::set(0, 2), Do::set(1, 2)];
    [
        Case {
            name: "H1: three routines in a ring",
            setup: home(3, Timeline, const { &[Submit(AB), Submit(BC), Submit(CA)] }),
            states: 424,
            rules: &[Published::DirectOrder],
            promise: Invariants,
            steps: 3,
        },
        Case {
            name: "H2: a routine before a finished one is left out of the order",
            setup: home(
                3,
                JustInTime,
                const { &[Submit(ACB), Submit(A), Submit(BA)] },
            ),
            states: 298,
            rules: &[Published::Compacts],
            promise: Serializable,
            steps: 9,
        },
        Case {
            name: "H3: a finished routine leaves the order before those that it follows",
            setup: home(
                3,
                JustInTime,
                const { &[Submit(ACB), Submit(AC), Submit(CB)] },
            ),
            states: 461,
            rules: &[Published::Compacts],
            promise: Serializable,
            steps: 10,
        },
        Case {
            name: "H4: an older state is committed later",
            setup: home(
                3,
                FirstCome,
                const { &[Submit(AD), Submit(TWO), Submit(FIVE), Cancel(2)] },
            ),
            states: 563,
            rules: &[Published::Compacts, Published::CommitsCompacted],
            promise: Serializable,
            steps: 9,
        },
        Case {
            name: "H14: one routine commands a device twice",
            setup: home(
                2,
                FirstCome,
                const {
                    &[
                        Submit(const { &[Do::set(0, 1), Do::set(1, 1), Do::set(0, 2)] }),
                        Submit(const { &[Do::set(0, 3), Do::set(1, 3)] }),
                    ]
                },
            ),
            states: 27,
            rules: &[Published::ReleasesBetween],
            promise: Invariants,
            steps: 4,
        },
    ]
}

/// Rollbacks: their targets and their times.
fn rollbacks() -> [Case; 6] {
    const AB: &[Do] = &[Do::set(0, 1), Do::set(1, 1)];
    const A: &[Do] = &[Do::set(0, 2)];
    const A3: &[Do] = &[Do::set(0, 3)];
    [
        Case {
            name: "H5: the routine that holds a device has not changed it yet",
            setup: Setup {
                faults: 1,
                ..home(2, FirstCome, const { &[Submit(AB), Submit(A), Cancel(0)] })
            },
            states: 446,
            rules: &[Published::TouchedIsWritten],
            promise: Serializable,
            steps: 5,
        },
        Case {
            name: "H6: a rollback meets the next routine",
            setup: home(2, FirstCome, const { &[Submit(AB), Submit(A), Cancel(0)] }),
            states: 54,
            rules: &[Published::FreeRollback],
            promise: Serializable,
            steps: 6,
        },
        Case {
            name: "H7: a device fails before it is rolled back",
            setup: home(
                2,
                FirstCome,
                const { &[Submit(AB), Restarts(0), Cancel(0)] },
            ),
            states: 72,
            rules: &[Published::ForgetsRollback],
            promise: Serializable,
            steps: 3,
        },
        Case {
            name: "H8: what is to be brought back is undone too",
            setup: home(
                2,
                FirstCome,
                const {
                    &[
                        Submit(AB),
                        Submit(const { &[Do::set(0, 2), Do::set(1, 2)] }),
                        Restarts(0),
                        Cancel(0),
                        Cancel(1),
                    ]
                },
            ),
            states: 1613,
            rules: &[Published::TargetAtAbort],
            promise: Serializable,
            steps: 9,
        },
        Case {
            name: "H11: a routine is cancelled while its command is on its way",
            setup: home(1, FirstCome, const { &[Submit(A), Submit(A3), Cancel(0)] }),
            states: 28,
            rules: &[Published::DrainsNothing],
            promise: OneCommand,
            steps: 3,
        },
        Case {
            name: "H12: a lease ends while a command is on its way",
            setup: home(
                3,
                JustInTime,
                const {
                    &[
                        Submit(const { &[Do::set(1, 1), Do::set(0, 1)] }),
                        Submit(const { &[Do::set(0, 2), Do::set(2, 2), Do::set(0, 3)] }),
                    ]
                },
            ),
            states: 49,
            rules: &[Published::RevokesInFlight],
            promise: OneCommand,
            steps: 4,
        },
    ]
}

/// Outcomes of commands, and their visibility to others.
fn commands() -> [Case; 4] {
    const AB: &[Do] = &[Do::set(0, 1), Do::set(1, 1)];
    [
        Case {
            name: "H9: a command that may fail does",
            setup: Setup {
                faults: 1,
                ..home(
                    2,
                    FirstCome,
                    const {
                        &[
                            Submit(const { &[Do::maybe(0, 1), Do::set(1, 1)] }),
                            Submit(const { &[Do::set(0, 2), Do::set(1, 2)] }),
                            Cancel(1),
                        ]
                    },
                )
            },
            states: 799,
            rules: &[Published::SkipIsWritten],
            promise: Serializable,
            steps: 5,
        },
        Case {
            name: "H10: nobody knows whether a command was done",
            setup: Setup {
                faults: 1,
                ..home(2, FirstCome, const { &[Submit(AB)] })
            },
            states: 16,
            rules: &[Published::UnknownIsRefused],
            promise: Serializable,
            steps: 2,
        },
        Case {
            name: "H22: a command acts after it was given up",
            setup: Setup {
                faults: 1,
                lates: true,
                ..home(
                    1,
                    FirstCome,
                    const { &[Submit(const { &[Do::set(0, 1)] })] },
                )
            },
            states: 10,
            rules: &[Published::UnknownIsOver],
            promise: Serializable,
            steps: 4,
        },
        Case {
            name: "H13: a condition sees what is undone later",
            setup: home(
                3,
                FirstCome,
                const {
                    &[
                        Submit(AB),
                        Submit(
                            const {
                                &[Do {
                                    only_if: Some((0, 1)),
                                    ..Do::set(2, 1)
                                }]
                            },
                        ),
                        Cancel(0),
                    ]
                },
            ),
            states: 47,
            rules: &[Published::ReadsUncommitted],
            promise: Serializable,
            steps: 8,
        },
    ]
}

/// The order of waiting routines, and the failures that count.
const fn waits() -> [Case; 3] {
    [
        Case {
            name: "H18: others start where somebody has waited for too long",
            setup: Setup {
                in_order: true,
                ..home(
                    2,
                    JustInTime,
                    const {
                        &[
                            Submit(const { &[Do::long(0, 1)] }),
                            Submit(const { &[Do::set(0, 2), Do::set(1, 2)] }),
                            Submit(const { &[Do::set(1, 3)] }),
                        ]
                    },
                )
            },
            states: 50,
            rules: &[Published::LateIsMerelyFirst],
            promise: Patience,
            steps: 4,
        },
        Case {
            name: "H21: a device fails that a routine could do without",
            setup: home(
                2,
                Timeline,
                const {
                    &[
                        Submit(const { &[Do::maybe(0, 1), Do::set(1, 1), Do::maybe(0, 2)] }),
                        Fails(0),
                    ]
                },
            ),
            states: 19,
            rules: &[Published::AnyCommandAborts],
            promise: Spared,
            steps: 2,
        },
        Case {
            name: "H23: a routine goes before one that sets the same",
            setup: Setup {
                in_order: true,
                ..home(
                    2,
                    Timeline,
                    const {
                        &[
                            Submit(const { &[Do::set(1, 1), Do::set(0, 1)] }),
                            Submit(const { &[Do::long(0, 2)] }),
                            Submit(const { &[Do::set(0, 3)] }),
                        ]
                    },
                )
            },
            states: 21,
            rules: &[Published::AnyGap],
            promise: LastWins,
            steps: 8,
        },
    ]
}

/// Searches for places: Algorithm 1 as printed, and homes in which this crate's search has the same
/// task.
fn searches() -> Vec<Scenario> {
    const FIRST: Algorithm1 = Algorithm1 {
        tests_first: true,
        ends: false,
    };
    const MENDED: Algorithm1 = Algorithm1 {
        ends: true,
        ..FIRST
    };
    // Another device, so that the rule for the same devices does not keep their order.
    const BAC: &[Do] = &[Do::long(1, 1), Do::long(0, 1), Do::set(2, 1)];
    const AB: &[Do] = &[Do::long(0, 2), Do::long(1, 2)];
    const ABC: &[Do] = &[Do::set(0, 3), Do::set(1, 3), Do::set(2, 3)];
    let printed = |name: &str, steps, rules, lineages: Vec<Vec<Slot>>, routine: Vec<_>, limit| {
        let model = move || Search::model(rules, lineages.clone(), routine.clone(), limit);
        Scenario::breaks(format!("safehome/{name}"), steps, model)
    };
    // Any place on device 0 before the other routine requires a place before it on device 1. Each
    // of two commands has two gaps: that makes ten calls at most.
    let ring = || vec![vec![Slot::new(0, 10, 20)], vec![Slot::new(0, 0, 10)]];
    // Three devices with three gaps each, one after the other, and a fourth on which no choice fits
    // as long as the first is before routine 99.
    let gaps = || {
        let slot = |device: u64, nth: u64| {
            let start = device * 1_000 + nth * 20 + 10;
            Slot::new(device * 100 + nth, start, start + 10)
        };
        let lineage = |device| (0..3).map(|nth| slot(device, nth)).collect::<Vec<_>>();
        let mut lineages: Vec<Vec<Slot>> = (0..3).map(lineage).collect();
        if let Some(first) = lineages.first_mut() {
            first.push(Slot::new(99, 900, 910));
        }
        lineages.push(vec![Slot::new(99, 0, 9_000)]);
        lineages
    };
    let four = vec![(0, 10), (1, 10), (2, 10), (3, 10)];
    let (endless, beyond, many) = (
        "H15: a search without success",
        "H16: the end of a routine",
        "H17: a search among many gaps",
    );
    vec![
        holds(
            endless,
            56,
            home(3, Timeline, const { &[Submit(BAC), Submit(AB)] }),
        ),
        printed(endless, 11, FIRST, ring(), vec![(0, 5), (1, 5)], 10),
        holds(
            beyond,
            3,
            home(1, Timeline, const { &[Submit(const { &[Do::set(0, 1)] })] }),
        ),
        printed(
            beyond,
            2,
            Algorithm1::default(),
            vec![Vec::new()],
            vec![(0, 5)],
            10,
        ),
        holds(
            many,
            539,
            Setup {
                search_limit: 2,
                ..home(
                    3,
                    Timeline,
                    const { &[Submit(BAC), Submit(AB), Submit(ABC)] },
                )
            },
        ),
        printed(many, 41, MENDED, gaps(), four, 40),
    ]
}

/// Unexpected behaviour that breaks no promise.
fn unbroken() -> [Scenario; 2] {
    const ABA: &[Do] = &[Do::set(0, 1), Do::long(1, 2), Do::set(0, 1)];
    const AB: &[Do] = &[Do::set(0, 2), Do::set(1, 2)];
    [
        holds(
            "H19: a lease before a routine that has its place and has not used it",
            248,
            home(
                2,
                JustInTime,
                const { &[Submit(ABA), Submit(AB), Submit(AB)] },
            ),
        ),
        holds(
            "H20: failures come in another order than they were noticed in",
            80,
            home(
                2,
                Timeline,
                const {
                    &[
                        Submit(const { &[Do::set(0, 1), Do::set(1, 1)] }),
                        Restarts(1),
                        Fails(0),
                    ]
                },
            ),
        ),
    ]
}
