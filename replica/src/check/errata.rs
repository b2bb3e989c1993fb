//! Scenarios in which the paper's rules break, and this crate's do not.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::{Delta, Member};
use selvedge_sim::check::{Bounds, Erratum, Scenario};

use super::rivals::APART;
use super::setup::Ask::{Configure, Propose};
use super::setup::Setup;
use super::setup::Sight::{AllApplied, Configured, Leaders};
use crate::Published;

const THREE: &[u64] = &[1, 2, 3];
const ONE_FAILED: Delta = Delta::Failed(Member::new(1, 0));

/// Members 1 and 2 take each other for failed, and 3 has a report that 1 failed.
const APART_TOLD: &[(u64, Delta)] = &[
    (1, Delta::Failed(Member::new(2, 0))),
    (2, ONE_FAILED),
    (3, ONE_FAILED),
];

type Case = Erratum<Setup>;

pub(super) fn pairs() -> Vec<Scenario> {
    cases().into_iter().flat_map(Case::pair).collect()
}

fn cases() -> Vec<Case> {
    let tickless = Bounds {
        ticks: Some(0),
        ..Setup::CALM
    };
    let crash = Bounds {
        crashes: 1,
        ..tickless
    };
    let restart = Bounds {
        restarts: 1,
        ..crash
    };
    vec![
        Case {
            name: "G1: the leader is said to have failed, and another one leads",
            setup: Setup {
                led_by: Some(1),
                notified: APART_TOLD,
                bounds: tickless,
                ends_within: None,
                most_ballots: Some(2),
                sees: &[AllApplied(1), Leaders(2)],
                ..Setup::of(THREE, &[&[Propose(11)], &[Propose(22)]])
            },
            states: 140,
            rules: &[Published::AnyBallot],
            promise: (),
            steps: 8,
        },
        Case {
            name: "G3: a member that accepted forgets, and another one stands",
            setup: Setup {
                led_by: Some(1),
                first: &[(1, Propose(11)), (2, Propose(22))],
                notified: APART,
                ends: &[3],
                bounds: restart,
                ends_within: None,
                most_ballots: Some(2),
                sees: &[AllApplied(1)],
                ..Setup::of(THREE, &[])
            },
            states: 43_611,
            rules: &[Published::ForgetfulVotes],
            promise: (),
            steps: 8,
        },
        Case {
            name: "G2: the leader that applied an update crashes",
            setup: Setup {
                led_by: Some(1),
                ends: &[1],
                ends_late: true,
                bounds: crash,
                ends_within: None,
                sees: &[AllApplied(2), Leaders(2)],
                ..Setup::of(THREE, &[&[Propose(11)], &[Propose(22)]])
            },
            states: 37_985,
            rules: &[Published::AdoptsConfirmed],
            promise: (),
            steps: 11,
        },
        Case {
            name: "G4: the leader goes over to another configuration",
            setup: Setup {
                led_by: Some(1),
                first: &[(1, Configure(&[1])), (1, Propose(11)), (2, Propose(22))],
                notified: &[(2, ONE_FAILED), (3, ONE_FAILED)],
                bounds: tickless,
                ends_within: None,
                most_ballots: Some(2),
                sees: &[AllApplied(1), Configured(2)],
                ..Setup::of(THREE, &[])
            },
            states: 2_295,
            rules: &[Published::SeparateSuccessors],
            promise: (),
            steps: 4,
        },
    ]
}
